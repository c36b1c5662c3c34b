/* The record log: what is in it is in the database when the store opens again, and nothing else. */
#include "loop/loop.h"
#include "shop.h"

#include <fcntl.h>
#include <unistd.h>

struct place {
    struct scratch dir;
    struct loop *loop;
    struct store *store;
    struct err e, why; /* why: of the last job that failed */
    size_t done;
};

static void reopen_as(struct place *p, enum durability durability)
{
    const struct store_config config = {.dir = p->dir.path, .durability = durability};

    store_close(p->store);
    p->store = store_open(p->loop, &config, &p->e);
    if (!p->store)
        fail_msg("%s", p->e.text);
}

static void reopen(struct place *p)
{
    reopen_as(p, DURABLE_PROCESS);
}

static int open_place(void **state)
{
    static struct place p;

    p = (struct place){0};
    *state = &p;
    if (scratch_open(&p.dir) < 0)
        return -1;
    p.loop = loop_new(&p.e);
    reopen(&p);
    return 0;
}

static int close_place(void **state)
{
    struct place *p = *state;

    store_close(p->store);
    loop_free(p->loop);
    return shop_remove(&p->dir);
}

/* --- rows --- */

static struct exec_row row_of(int number, char *code)
{
    static char text[] = "", tenant[] = "t", session[] = "sess_1", status[] = "ok",
                outcome[] = "{\"a\":\"\\u00fc\"}", events[] = "[]";
    struct exec_row r = {.tenant = tenant,
                         .session = session,
                         .pool = text,
                         .request = tenant,
                         .door = tenant,
                         .kind = tenant,
                         .status = status,
                         .outcome = outcome,
                         .events = events,
                         .code = code,
                         .created_ms = number,
                         .started_ms = -1,
                         .ended_ms = INT64_MAX};

    snprintf(r.id, sizeof(r.id), "exec_%d", number);
    return r;
}

static bool log_it(struct place *p, int number, char *code, int64_t executions)
{
    struct exec_row r = row_of(number, code);
    struct session_row n = {.executions = executions, .used_ms = 10 * executions};

    return store_log_exec(p->store, &r, &n);
}

static char plain[] = "print('\xc3\xbc')";

struct find {
    int number;
    int found;
    struct exec_row row;
};

static int find(struct db *db, void *arg, struct err *e)
{
    struct find *f = arg;
    char id[ID_MAX];

    snprintf(id, sizeof(id), "exec_%d", f->number);
    f->found = db_exec_get(db, "t", id, &f->row, e);
    return f->found < 0 ? -1 : 0;
}

static bool is_there(struct place *p, int number)
{
    struct find f = {.number = number};

    assert_ok(p, store_call(p->store, find, &f, &p->e));
    exec_row_done(&f.row);
    return f.found == 1;
}

/* --- jobs --- */

static int write_row(struct db *db, void *arg, struct err *e)
{
    struct exec_row r = row_of(*(int *)arg, plain);

    return db_exec_put(db, &r, e);
}

static int refuse(struct db *db, void *arg, struct err *e)
{
    (void)db;
    (void)arg;
    return err_set(e, ERR_FULL, "no");
}

static struct place *place; /* of the test that runs */

static void on_done(void *arg, const struct err *failed)
{
    (void)arg;
    place->done++;
    if (failed)
        place->why = *failed;
    loop_stop(place->loop);
}

static void run_soon(struct place *p, store_fn *fn, int *number)
{
    place = p;
    store_run_soon(p->store, true, fn, on_done, number);
}

/* --- tests --- */

static void test_what_no_job_has_written_is_there_after_the_next_start(void **state)
{
    struct place *p = *state;
    struct find f = {.number = 7};

    assert_true(log_it(p, 7, plain, 1));
    assert_true(log_it(p, 9, NULL, 2)); /* which no database takes */
    assert_true(log_it(p, 8, plain, 3));
    assert_false(is_there(p, 7));
    reopen(p);
    assert_ok(p, store_call(p->store, find, &f, &p->e));
    assert_int_equal(f.found, 1);
    assert_string_equal(f.row.code, plain);
    assert_string_equal(f.row.pool, "");
    assert_null(f.row.key);
    assert_string_equal(f.row.outcome, "{\"a\":\"\\u00fc\"}");
    assert_int_equal(f.row.started_ms, -1);
    assert_true(f.row.ended_ms == INT64_MAX);
    exec_row_done(&f.row);
    assert_true(is_there(p, 8) && !is_there(p, 9));
}

static int put_session(struct db *db, void *arg, struct err *e)
{
    struct session_row *r = arg;

    return db_session_put(db, r, e);
}

static int get_session(struct db *db, void *arg, struct err *e)
{
    return db_session_get(db, "t", "sess_1", arg, e) < 0 ? -1 : 0;
}

static bool log_session(struct place *p, const char *id, char *name, int64_t executions)
{
    char tenant[] = "t", metadata[] = "{\"a\":\"\u00fc\"}";
    struct session_row r = {.tenant = tenant,
                            .pool = tenant,
                            .name = name,
                            .metadata = metadata,
                            .executions = executions,
                            .idle_ms = 7};

    snprintf(r.id, sizeof(r.id), "%s", id);
    return store_log_session(p->store, &r);
}

static void test_a_new_session_is_there_after_the_next_start(void **state)
{
    struct place *p = *state;
    struct session_row found = {0};
    char name[] = "taken, perhaps";

    assert_false(log_session(p, "sess_2", name, 0));
    assert_true(log_session(p, "sess_1", NULL, 0));
    assert_true(log_it(p, 1, plain, 3));
    reopen(p);
    assert_ok(p, store_call(p->store, get_session, &found, &p->e));
    assert_string_equal(found.id, "sess_1");
    assert_string_equal(found.metadata, "{\"a\":\"\u00fc\"}");
    assert_null(found.name);
    assert_int_equal(found.idle_ms, 7);
    assert_int_equal(found.executions, 3);
    session_row_done(&found);
}

/* What came of a session since then is not undone by the entry of its beginning. */
static void test_a_session_that_is_there_stays_as_it_is(void **state)
{
    struct place *p = *state;
    char tenant[] = "t", name[] = "new";
    struct session_row r = {
        .id = "sess_1", .tenant = tenant, .pool = tenant, .name = name, .executions = 5};
    struct session_row found = {0};

    assert_true(log_session(p, "sess_1", NULL, 0));
    assert_ok(p, store_call(p->store, put_session, &r, &p->e));
    reopen(p);
    assert_ok(p, store_call(p->store, get_session, &found, &p->e));
    assert_string_equal(found.name, "new");
    assert_int_equal(found.executions, 5);
    session_row_done(&found);
}

static void test_a_session_that_is_struck_out_does_not_come_back(void **state)
{
    struct place *p = *state;
    struct session_row found = {0};
    int number = 4;

    assert_true(log_session(p, "sess_1", NULL, 0));
    assert_true(log_it(p, 3, plain, 1));
    store_log_strike(p->store, "sess_1");
    reopen(p);
    assert_ok(p, store_call(p->store, get_session, &found, &p->e));
    assert_string_equal(found.id, "");
    assert_true(is_there(p, 3));

    /* Where its entry was, there is another now. */
    assert_true(log_session(p, "sess_1", NULL, 0));
    run_soon(p, write_row, &number);
    loop_run(p->loop);
    assert_true(log_it(p, 5, plain, 1));
    store_log_strike(p->store, "sess_1");
    reopen(p);
    assert_true(is_there(p, 5));
}

/* A name that was given since then stays. A session that was deleted is not there again. */
static void test_the_figures_of_a_session_only_grow(void **state)
{
    struct place *p = *state;
    char tenant[] = "t", name[] = "new";
    struct session_row r = {.id = "sess_1",
                            .tenant = tenant,
                            .pool = tenant,
                            .name = name,
                            .executions = 5,
                            .used_ms = 20};
    struct session_row found = {0};

    assert_true(log_it(p, 1, plain, 4));
    reopen(p);
    assert_ok(p, store_call(p->store, get_session, &found, &p->e));
    assert_string_equal(found.id, "");
    assert_true(log_it(p, 2, plain, 4));
    assert_ok(p, store_call(p->store, put_session, &r, &p->e));
    reopen(p);
    assert_ok(p, store_call(p->store, get_session, &found, &p->e));
    assert_int_equal(found.executions, 5);
    assert_int_equal(found.used_ms, 40);
    assert_string_equal(found.name, "new");
    session_row_done(&found);
}

static void test_a_job_that_nobody_waits_for_runs_by_itself(void **state)
{
    struct place *p = *state;
    int number = 3;

    assert_true(log_it(p, 3, plain, 1));
    run_soon(p, write_row, &number);
    loop_run(p->loop);
    assert_int_equal(p->done, 1);
    assert_true(is_there(p, 3));
}

static void test_nobody_reads_the_database_without_it(void **state)
{
    struct place *p = *state;
    int number = 3;

    assert_true(log_it(p, 3, plain, 1));
    run_soon(p, write_row, &number);
    assert_true(is_there(p, 3));
    loop_run(p->loop);
}

static int open_log(struct place *p)
{
    char path[256];

    snprintf(path, sizeof(path), "%s/retort.records", p->dir.path);
    return open(path, O_RDWR | O_CLOEXEC);
}

static uint32_t first_size(struct place *p)
{
    AUTO_CLOSE int fd = open_log(p);
    uint32_t size = 1;

    assert_int_equal(pread(fd, &size, sizeof(size), 0), sizeof(size));
    return size;
}

static void test_when_all_is_written_the_log_is_empty(void **state)
{
    struct place *p = *state;
    int numbers[] = {3, 4};

    assert_true(log_it(p, 3, plain, 1));
    assert_true(log_it(p, 4, plain, 2));
    run_soon(p, write_row, &numbers[0]);
    assert_true(is_there(p, 3));
    assert_true(first_size(p) > 0);
    run_soon(p, write_row, &numbers[1]);
    assert_true(is_there(p, 4));
    assert_int_equal(first_size(p), 0);
    loop_run(p->loop);
}

static void test_what_a_job_could_not_write_stays(void **state)
{
    struct place *p = *state;
    int number = 3;

    assert_true(log_it(p, 3, plain, 1));
    run_soon(p, refuse, &number);
    loop_run(p->loop);
    assert_int_equal(p->why.kind, ERR_FULL);
    assert_true(first_size(p) > 0);
    assert_false(log_it(p, 4, plain, 1));
    reopen(p);
    assert_true(is_there(p, 3));
    assert_false(is_there(p, 4));
}

static void test_it_goes_on_when_that_is_written_in_another_way(void **state)
{
    struct place *p = *state;
    int number = 3;

    assert_true(log_it(p, 3, plain, 1));
    run_soon(p, refuse, &number);
    loop_run(p->loop);
    store_log_mend(p->store);
    assert_int_equal(first_size(p), 0);
    assert_true(log_it(p, 4, plain, 1));
    reopen(p);
    assert_false(is_there(p, 3));
    assert_true(is_there(p, 4));
}

static void test_what_is_long_waits_for_the_database(void **state)
{
    struct place *p = *state;
    size_t n = 40 * KiB;
    AUTO_FREE char *code = mem_zalloc(n + 1);

    memset(code, 'x', n);
    assert_false(log_it(p, 1, code, 1));
    n = 20 * KiB;
    code[n] = '\0';
    for (int i = 0; i < 50; i++)
        assert_true(log_it(p, i, code, 1));
    assert_false(log_it(p, 50, code, 1)); /* 1 MiB */
    reopen(p);
    assert_true(is_there(p, 49));
    assert_false(is_there(p, 50));
}

#define FRONT 20 /* the seed with its head, and the head of the first entry */

/* Up to the end of the first entry. */
static size_t read_first(int fd, char bytes[4096])
{
    uint16_t size;

    assert_int_equal(pread(fd, bytes, 4096, 0), 4096);
    memcpy(&size, bytes + FRONT - 8, sizeof(size));
    return FRONT + (size_t)size;
}

/* An append that was interrupted anywhere loses itself, and nothing before it. */
static void test_what_is_torn_is_left_out(void **state)
{
    struct place *p = *state;
    AUTO_CLOSE int fd = open_log(p);
    char bytes[4096];

    for (int cut = 1; cut < 200; cut += 7) {
        assert_true(log_it(p, 2 * cut, plain, 1));
        assert_true(log_it(p, 2 * cut + 1, plain, 1));
        size_t end = read_first(fd, bytes) + (size_t)cut;
        memset(bytes + end, 0x55, sizeof(bytes) - end);
        assert_int_equal(pwrite(fd, bytes, sizeof(bytes), 0), sizeof(bytes));
        reopen(p);
        assert_true(is_there(p, 2 * cut));
        assert_false(is_there(p, 2 * cut + 1));
    }
}

/* The end was not written, and behind it is an entry of a log before, whole. */
static void test_what_is_of_another_log_is_left_out(void **state)
{
    struct place *p = *state;
    AUTO_CLOSE int fd = open_log(p);
    char old[4096], bytes[4096];
    size_t end, n;
    int number = 1;

    assert_true(log_it(p, 2, plain, 1));
    n = read_first(fd, old) - FRONT + 8;
    run_soon(p, write_row, &number);
    loop_run(p->loop);
    assert_true(log_it(p, 3, plain, 1));
    end = read_first(fd, bytes);
    assert_int_equal(pwrite(fd, old + FRONT - 8, n, (off_t)end), n);
    reopen(p);
    assert_true(is_there(p, 3));
    assert_false(is_there(p, 2));
}

/* Without a seed. */
static void test_what_an_older_version_has_left_is_there(void **state)
{
    struct place *p = *state;
    AUTO_CLOSE int fd = open_log(p);
    uint32_t check = 2166136261U;
    char bytes[4096];
    size_t end;

    assert_true(log_it(p, 2, plain, 1));
    end = read_first(fd, bytes);
    for (size_t i = FRONT; i < end; i++)
        check = (check ^ (uint8_t)bytes[i]) * 16777619U;
    memcpy(bytes + FRONT - 4, &check, sizeof(check));
    assert_int_equal(pwrite(fd, bytes + FRONT - 8, end - FRONT + 16, 0), end - FRONT + 16);
    reopen(p);
    assert_true(is_there(p, 2));
}

static void test_with_power_all_wait_for_the_disk(void **state)
{
    struct place *p = *state;

    assert_true(log_it(p, 1, plain, 1));
    reopen_as(p, DURABLE_POWER);
    assert_true(is_there(p, 1));
    assert_false(log_it(p, 2, plain, 1));
}

#define IN_PLACE(f) cmocka_unit_test_setup_teardown(f, open_place, close_place)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_PLACE(test_what_no_job_has_written_is_there_after_the_next_start),
        IN_PLACE(test_a_new_session_is_there_after_the_next_start),
        IN_PLACE(test_a_session_that_is_there_stays_as_it_is),
        IN_PLACE(test_a_session_that_is_struck_out_does_not_come_back),
        IN_PLACE(test_the_figures_of_a_session_only_grow),
        IN_PLACE(test_a_job_that_nobody_waits_for_runs_by_itself),
        IN_PLACE(test_nobody_reads_the_database_without_it),
        IN_PLACE(test_when_all_is_written_the_log_is_empty),
        IN_PLACE(test_what_a_job_could_not_write_stays),
        IN_PLACE(test_it_goes_on_when_that_is_written_in_another_way),
        IN_PLACE(test_what_is_long_waits_for_the_database),
        IN_PLACE(test_what_is_torn_is_left_out),
        IN_PLACE(test_what_is_of_another_log_is_left_out),
        IN_PLACE(test_what_an_older_version_has_left_is_there),
        IN_PLACE(test_with_power_all_wait_for_the_disk),
    };

    log_set_level(LOG_ERROR);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
