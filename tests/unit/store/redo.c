/* The redo log: a power cut is a copy of the database as it was, and of the log as it is. */
#include "loop/loop.h"
#include "shop.h"

#include <fcntl.h>
#include <unistd.h>

struct place {
    struct scratch here, there;
    struct loop *loop;
    struct store *store;
    struct err e;
};

static void reopen(struct place *p, const struct scratch *in)
{
    const struct store_config config = {.dir = in->path};

    store_close(p->store);
    p->store = store_open(p->loop, &config, &p->e);
    if (!p->store)
        fail_msg("%s", p->e.text);
}

static void wait_for_log(struct place *p)
{
    for (int i = 0; i < 10000 && !redo_takes(p->store, 1); i++)
        usleep(1000);
    assert_true(redo_takes(p->store, 1));
}

static void copy_file(struct place *p, const char *name)
{
    AUTO_CLOSE int from = openat(p->here.fd, name, O_RDONLY | O_CLOEXEC);
    AUTO_CLOSE int to = openat(p->there.fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    char bytes[64 * KiB];
    ssize_t n;

    while ((n = read(from, bytes, sizeof(bytes))) > 0)
        assert_int_equal(write(to, bytes, (size_t)n), n);
    assert_int_equal(n, 0);
}

static void write_item(struct place *p, int number, size_t n);
static void wait_flushed(struct place *p);

static int open_place(void **state)
{
    static struct place p;

    p = (struct place){0};
    *state = &p;
    if (scratch_open(&p.here) < 0 || scratch_open(&p.there) < 0)
        return -1;
    p.loop = loop_new(&p.e);
    reopen(&p, &p.here);
    assert_false(redo_takes(p.store, 1));
    write_item(&p, -1, 1); /* the first that waits, so the log is made */
    wait_for_log(&p);
    wait_flushed(&p);
    store_close(take_ptr(&p.store));
    copy_file(&p, "retort.db"); /* all of it: its own log is gone */
    reopen(&p, &p.here);
    assert_true(redo_takes(p.store, 1));
    return 0;
}

static int close_place(void **state)
{
    struct place *p = *state;

    store_close(p->store);
    loop_free(p->loop);
    return shop_remove(&p->here) | shop_remove(&p->there);
}

/* What was committed since open_place() is lost, but for what is in the log. */
static void cut(struct place *p)
{
    copy_file(p, REDO_NAME);
    reopen(p, &p->there);
}

/* --- jobs --- */

#define PATH ((struct str){"a\nb", 3})

static char path[] = "a\nb";

struct upload {
    char hash[HASH_HEX];
    bool waits;
};

static int put_file(struct db *db, void *arg, struct err *e)
{
    struct upload *u = arg;
    struct space_row r = {.path = path, .size = 1, .mode = 0644};

    memcpy(r.hash, u->hash, sizeof(r.hash));
    if (u->waits)
        db_must_sync(db);
    return db_space_put(db, "sess_1", &r, e);
}

static void upload(struct place *p, struct str bytes, bool waits)
{
    struct upload u = {.waits = waits};
    struct blob *b = blob_new(p->store, UINT64_MAX, &p->e);
    uint64_t size;

    assert_non_null(b);
    assert_ok(p, blob_write(b, bytes, &p->e));
    assert_ok(p, blob_keep(b, BLOB_NOW, u.hash, &size, &p->e));
    assert_ok(p, store_call(p->store, put_file, &u, &p->e));
}

static void make_session(struct place *p)
{
    int number = 1;

    assert_ok(p, store_call(p->store, numbered_job, &number, &p->e));
}

static int get_file(struct db *db, void *arg, struct err *e)
{
    return db_space_get(db, "sess_1", PATH, arg, e) < 0 ? -1 : 0;
}

/* NULL: there is no such file. */
static void expect_file(struct place *p, const char *text)
{
    struct space_row r = {0};
    char bytes[16] = "";
    AUTO_CLOSE int fd = -1;

    assert_ok(p, store_call(p->store, get_file, &r, &p->e));
    if (text) {
        fd = blob_open(p->store, r.hash, &p->e);
        assert_ok(p, fd);
        assert_true(read(fd, bytes, sizeof(bytes) - 1) >= 0);
        assert_string_equal(bytes, text);
    } else {
        assert_null(r.path);
    }
    space_row_done(&r);
}

static int count_sessions(struct db *db, void *arg, struct err *e)
{
    return db_session_count(db, NULL, arg, e);
}

static uint64_t sessions(struct place *p)
{
    uint64_t n = 0;

    assert_ok(p, store_call(p->store, count_sessions, &n, &p->e));
    return n;
}

struct item {
    int number;
    size_t n; /* of its body */
    bool found;
};

static int put_item(struct db *db, void *arg, struct err *e)
{
    struct item *i = arg;
    AUTO_FREE char *body = mem_zalloc(i->n + 1);
    char id[16], text[] = "t";
    struct item_row r = {.tenant = text, .kind = text, .owner = text, .parent = text, .body = body};

    snprintf(id, sizeof(id), "%d", i->number);
    r.id = id;
    memset(body, 'x', i->n);
    db_must_sync(db);
    return db_item_put(db, &r, e);
}

static int find_item(struct db *db, void *arg, struct err *e)
{
    struct item *i = arg;
    struct item_row r = {0};
    char id[16];
    int rc;

    snprintf(id, sizeof(id), "%d", i->number);
    rc = db_item_get(db, "t", "t", id, &r, e);
    i->found = rc == 1 && strlen(r.body) == i->n;
    item_row_done(&r);
    return rc < 0 ? -1 : 0;
}

static void write_item(struct place *p, int number, size_t n)
{
    struct item i = {.number = number, .n = n};

    assert_ok(p, store_call(p->store, put_item, &i, &p->e));
}

static bool has_item(struct place *p, int number, size_t n)
{
    struct item i = {.number = number, .n = n};

    assert_ok(p, store_call(p->store, find_item, &i, &p->e));
    return i.found;
}

/* --- tests --- */

static void test_an_upload_is_there_with_its_bytes_and_its_session(void **state)
{
    struct place *p = *state;

    make_session(p); /* which nobody waited for */
    upload(p, STR("sent"), true);
    cut(p);
    assert_int_equal(sessions(p), 1);
    expect_file(p, "sent");
    reopen(p, &p->there);
    expect_file(p, "sent");
}

static void test_what_nobody_waited_for_costs_no_sync(void **state)
{
    struct place *p = *state;

    make_session(p);
    cut(p);
    assert_int_equal(sessions(p), 0);
}

static void test_what_the_database_has_is_not_put_back(void **state)
{
    struct place *p = *state;

    make_session(p);
    upload(p, STR("old"), true);
    copy_file(p, REDO_NAME);
    upload(p, STR("new"), false);
    store_close(take_ptr(&p->store));
    copy_file(p, "retort.db");
    assert_int_equal(renameat(p->here.fd, "blobs", p->there.fd, "blobs"), 0);
    reopen(p, &p->there);
    expect_file(p, "new");
}

static void test_a_server_that_ends_leaves_an_empty_log(void **state)
{
    struct place *p = *state;
    AUTO_CLOSE int fd = openat(p->here.fd, REDO_NAME, O_RDONLY | O_CLOEXEC);
    uint64_t size = 0;

    write_item(p, 1, 10);
    assert_int_equal(pread(fd, &size, sizeof(size), REDO_SEED), sizeof(size));
    assert_true(size > 0);
    store_close(take_ptr(&p->store));
    assert_int_equal(pread(fd, &size, sizeof(size), REDO_SEED), sizeof(size));
    assert_int_equal(size, 0);
    reopen(p, &p->here);
    assert_true(has_item(p, 1, 10));
}

/* An entry that was interrupted anywhere loses itself, and nothing before it. */
static void test_what_is_torn_is_left_out(void **state)
{
    struct place *p = *state;
    AUTO_CLOSE int fd = openat(p->here.fd, REDO_NAME, O_RDWR | O_CLOEXEC);
    char bytes[4096];
    uint64_t size;
    ssize_t second;

    make_session(p);
    upload(p, STR("sent"), true);
    write_item(p, 1, 50);
    assert_int_equal(pread(fd, bytes, sizeof(bytes), 0), sizeof(bytes));
    for (second = (ssize_t)REDO_SEED; memcpy(&size, bytes + second, sizeof(size)), size > 0;)
        second += (ssize_t)(REDO_END + size);
    assert_int_equal(pwrite(fd, "?", 1, second - 1), 1); /* the last byte of the last entry */
    cut(p);
    expect_file(p, "sent");
    assert_false(has_item(p, 1, 50));
}

static void wait_flushed(struct place *p)
{
    for (int i = 0; i < 10000 && store_counts(p->store).unflushed; i++)
        usleep(1000);
    assert_false(store_counts(p->store).unflushed);
}

/* A blob that holds an entry, as the log would have it but for the seed, is not taken for one where
 * a power cut has left it as the next. */
static void test_nobody_can_upload_an_entry(void **state)
{
    struct place *p = *state;
    AUTO_CLOSE int fd = openat(p->here.fd, REDO_NAME, O_RDWR | O_CLOEXEC);
    char entry[4096];
    uint64_t size = 0;

    write_item(p, 1, 50);
    assert_int_equal(pread(fd, entry, sizeof(entry), REDO_SEED), sizeof(entry));
    wait_flushed(p);
    write_item(p, 2, 50); /* the log begins anew */
    assert_int_equal(pread(fd, &size, sizeof(size), REDO_SEED), sizeof(size));
    assert_int_equal(pwrite(fd, entry, sizeof(entry), (off_t)(REDO_SEED + REDO_END + (size_t)size)),
                     sizeof(entry));
    cut(p);
    assert_true(has_item(p, 2, 50));
    assert_false(has_item(p, 1, 50));
}

/* The row was on the disk before the blob: the log has that. */
static void test_a_blob_is_put_back_to_the_row_that_is_there(void **state)
{
    struct place *p = *state;

    make_session(p);
    upload(p, STR("sent"), true);
    copy_file(p, REDO_NAME);
    store_close(take_ptr(&p->store));
    copy_file(p, "retort.db");
    reopen(p, &p->there);
    expect_file(p, "sent");
}

static int make_long(struct db *db, void *arg, struct err *e)
{
    AUTO_FREE char *metadata = mem_zalloc(300 * KiB + 1);
    char tenant[] = "t", pool[] = "p";
    struct session_row r = {.tenant = tenant, .pool = pool, .metadata = metadata};

    memset(metadata, 'x', 300 * KiB);
    memcpy(r.id, arg, sizeof(r.id));
    return db_session_add(db, &r, e);
}

static int put_into(struct db *db, void *arg, struct err *e)
{
    struct space_row r = {.path = path, .size = 1, .mode = 0644};

    db_must_sync(db);
    return db_space_put(db, arg, &r, e);
}

/* Who needs what is not in the log waits for the database, and is not put back without it. */
static void test_behind_a_gap(void **state)
{
    struct place *p = *state;
    uint64_t flushes;
    char id[ID_MAX];

    id_make(id, "sess_");
    flushes = store_counts(p->store).flushes;
    assert_ok(p, store_call(p->store, make_long, id, &p->e));
    assert_ok(p, store_call(p->store, put_into, id, &p->e));
    assert_true(store_counts(p->store).flushes > flushes);
    write_item(p, 1, 10);
    cut(p);
    assert_int_equal(sessions(p), 0);
    assert_true(has_item(p, 1, 10));
}

/* More than the log holds, so its halves take turns, or some wait for the database. */
static void test_it_begins_anew_when_the_disk_has_the_rest(void **state)
{
    struct place *p = *state;
    const size_t n = 200 * KiB;
    int last = 120;

    for (int i = 0; i < last; i++) {
        write_item(p, i, n);
        if (i % 40 == 39) /* that fills a half, and the next may begin anew */
            wait_flushed(p);
    }
    write_item(p, last, n);
    cut(p);
    assert_true(has_item(p, last, n));
    assert_false(has_item(p, last - 1, n)); /* the database had it, and the log need not */
}

static void test_what_is_long_waits_for_the_database(void **state)
{
    struct place *p = *state;
    AUTO_FREE char *bytes = mem_zalloc(REDO_BLOB_MAX + 1);

    assert_false(redo_takes(p->store, REDO_BLOB_MAX + 1));
    make_session(p);
    upload(p, (struct str){bytes, REDO_BLOB_MAX + 1}, true);
    write_item(p, 1, 400 * KiB);
    write_item(p, 2, 10);
    cut(p);
    assert_false(has_item(p, 1, 400 * KiB));
    assert_true(has_item(p, 2, 10));
    expect_file(p, NULL);
}

#define IN_PLACE(f) cmocka_unit_test_setup_teardown(f, open_place, close_place)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_PLACE(test_an_upload_is_there_with_its_bytes_and_its_session),
        IN_PLACE(test_what_nobody_waited_for_costs_no_sync),
        IN_PLACE(test_what_the_database_has_is_not_put_back),
        IN_PLACE(test_a_server_that_ends_leaves_an_empty_log),
        IN_PLACE(test_what_is_torn_is_left_out),
        IN_PLACE(test_nobody_can_upload_an_entry),
        IN_PLACE(test_a_blob_is_put_back_to_the_row_that_is_there),
        IN_PLACE(test_behind_a_gap),
        IN_PLACE(test_it_begins_anew_when_the_disk_has_the_rest),
        IN_PLACE(test_what_is_long_waits_for_the_database),
    };

    log_set_level(LOG_ERROR);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
