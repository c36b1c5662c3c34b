/* A store in a directory of its own, without a loop: its database is the test's to call. */
#pragma once

#include "scratch.h"

#include "engine.h"
#include "store/store_int.h"

struct shop {
    struct scratch dir;
    struct store *store;
    struct db *db; /* borrowed */
    struct err e;
};

static inline void shop_reopen(struct shop *s)
{
    struct store_config config = engine_config(s->dir.path);

    store_close(s->store);
    s->store = store_open(NULL, &config, &s->e);
    if (!s->store)
        fail_msg("%s", s->e.text);
    s->db = s->store->db;
}

static inline int shop_open(void **state)
{
    static struct shop s;

    s = (struct shop){0};
    *state = &s;
    if (scratch_open(&s.dir) < 0)
        return -1;
    engine_reset();
    shop_reopen(&s);
    return 0;
}

/* A test that has written over the name must not make us remove something else. */
static inline int shop_remove(struct scratch *d)
{
    static const char ours[] = "/tmp/retort-unit.";

    return strncmp(d->path, ours, sizeof(ours) - 1) == 0 ? scratch_close(d) : -1;
}

static inline int shop_close(void **state)
{
    struct shop *s = *state;

    store_close(s->store);
    return shop_remove(&s->dir);
}

#define IN_SHOP(f) cmocka_unit_test_setup_teardown(f, shop_open, shop_close)

/* Sessions of tenant "t", told apart by a number. */

static inline void numbered_id(int number, char id[ID_MAX])
{
    snprintf(id, ID_MAX, "sess_%d", number);
}

static inline int numbered_put(struct db *db, int number, struct err *e)
{
    struct session_row r = {.tenant = mem_strdup("t"), .pool = mem_strdup("p"), .created_ms = 1};
    int rc;

    numbered_id(number, r.id);
    rc = db_session_put(db, &r, e);
    session_row_done(&r);
    return rc;
}

/* The same as a job. */
static inline int numbered_job(struct db *db, void *arg, struct err *e)
{
    int *number = arg;

    return numbered_put(db, *number, e);
}

static inline bool numbered_is_there(struct db *db, int number)
{
    struct session_row r = {0};
    struct err e;
    char id[ID_MAX];
    int rc;

    numbered_id(number, id);
    rc = db_session_get(db, "t", id, &r, &e);
    session_row_done(&r);
    return rc == 1;
}

/* Fails the test with what went wrong. */
#define assert_ok(s, call)                                                                         \
    do {                                                                                           \
        if ((call) < 0)                                                                            \
            fail_msg("%s", (s)->e.text);                                                           \
    } while (0)

/* The call fails, by whose fault, and says so. */
#define assert_refused(s, call, why)                                                               \
    do {                                                                                           \
        (s)->e = (struct err){0};                                                                  \
        assert_int_equal(call, -1);                                                                \
        assert_int_equal((s)->e.kind, why);                                                        \
        assert_true(*(s)->e.text);                                                                 \
    } while (0)

#define HASH_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define HASH_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
