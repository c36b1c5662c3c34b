/* The store's thread: order, batches, what a failure undoes, what a crash leaves. */
#include "loop/loop.h"
#include "shop.h"

#include <pthread.h>
#include <signal.h>

#define JOBS_MAX 700

/* A server's store: with a loop and a thread. */
struct server {
    struct scratch dir;
    struct loop *loop;
    struct store *store;
    struct db_ops ops; /* a copy to change, after tap() */
    int gate[2];       /* holds the thread up so that jobs wait together */
    int at_gate[2];    /* it has come there */
    size_t ran, done, failed, awaited;
    int order_ran[2 * JOBS_MAX], order_done[2 * JOBS_MAX];
    struct err why; /* of the last that failed */
    struct err e;
};

#define CONFIG(dir) ((struct store_config[]){engine_config(dir)}[0])

static struct server *sv; /* of the test that runs */
static size_t begun;
static int (*true_begin)(struct db *, struct err *);

static int open_server(void **state)
{
    static struct server s;
    struct store_config config = {0};

    s = (struct server){0};
    *state = sv = &s;
    begun = 0;
    if (scratch_open(&s.dir) < 0 || pipe2(s.gate, O_CLOEXEC) < 0 || pipe2(s.at_gate, O_CLOEXEC) < 0)
        return -1;
    engine_reset();
    config = engine_config(s.dir.path);
    s.loop = loop_new(&(struct err){0});
    s.store = store_open(s.loop, &config, &s.e);
    return s.store ? 0 : -1;
}

static int close_server(void **state)
{
    struct server *s = *state;

    store_close(s->store);
    loop_free(s->loop);
    for (int i = 0; i < 2; i++) {
        fd_closep(&s->gate[i]);
        fd_closep(&s->at_gate[i]);
    }
    return shop_remove(&s->dir);
}

struct task {
    int number;
    bool fail;
};

static int run_task(struct db *db, void *arg, struct err *e)
{
    struct task *t = arg;

    sv->order_ran[sv->ran++] = t->number;
    if (numbered_put(db, t->number, e) < 0)
        return -1;
    return t->fail ? err_set(e, ERR_CALLER, "task %d does not want to", t->number) : 0;
}

static void on_done(void *arg, const struct err *failed)
{
    struct task *t = arg;

    sv->order_done[sv->done++] = t->number;
    if (failed) {
        sv->failed++;
        sv->why = *failed;
    }
    if (sv->done == sv->awaited)
        loop_stop(sv->loop);
}

static void on_nothing(void *arg, const struct err *failed)
{
    (void)arg;
    (void)failed;
}

static int wait_at_gate(struct db *db, void *arg, struct err *e)
{
    char byte;

    (void)db;
    (void)arg;
    (void)e;
    return write(sv->at_gate[1], "x", 1) == 1 && read(sv->gate[0], &byte, 1) == 1 ? 0 : -1;
}

/* What is queued after this is in the next batch, together. */
static void shut_gate(void)
{
    char byte;

    store_run(sv->store, wait_at_gate, on_nothing, NULL);
    assert_int_equal(read(sv->at_gate[0], &byte, 1), 1);
}

static void open_gate(void)
{
    assert_int_equal(write(sv->gate[1], "x", 1), 1);
}

/* Queues the tasks while the thread waits, then runs the loop until all are answered. */
static void run_together(struct task *tasks, size_t count)
{
    shut_gate();
    for (size_t i = 0; i < count; i++)
        store_run(sv->store, run_task, on_done, &tasks[i]);
    sv->awaited = sv->done + count;
    open_gate();
    loop_run(sv->loop);
    assert_int_equal(sv->done, sv->awaited);
}

struct look {
    int number;
    bool there;
};

static int look(struct db *db, void *arg, struct err *e)
{
    struct look *k = arg;

    (void)e;
    k->there = numbered_is_there(db, k->number);
    return 0;
}

static bool is_there(struct server *s, int number)
{
    struct look k = {.number = number};

    assert_ok(s, store_call(s->store, look, &k, &s->e));
    return k.there;
}

static int take_ops(struct db *db, void *arg, struct err *e)
{
    struct server *s = arg;

    (void)e;
    s->ops = *db->ops;
    db->ops = &s->ops;
    return 0;
}

/* From now on the test may change what the database does between two calls. */
static void tap(struct server *s)
{
    assert_ok(s, store_call(s->store, take_ops, s, &s->e));
}

/* --- order and batches --- */

static void test_order(void **state)
{
    struct task tasks[JOBS_MAX];

    (void)state;
    for (int i = 0; i < JOBS_MAX; i++)
        tasks[i] = (struct task){.number = i};
    run_together(tasks, JOBS_MAX);
    for (int i = 0; i < JOBS_MAX; i++) {
        assert_int_equal(sv->order_ran[i], i);
        assert_int_equal(sv->order_done[i], i);
    }
    assert_int_equal(sv->failed, 0);
}

static int count_begin(struct db *db, struct err *e)
{
    begun++;
    return true_begin(db, e);
}

static void test_what_waits_together_is_committed_together(void **state)
{
    struct server *s = *state;
    struct task tasks[JOBS_MAX];

    for (int i = 0; i < JOBS_MAX; i++)
        tasks[i] = (struct task){.number = i};
    tap(s);
    true_begin = s->ops.begin;
    s->ops.begin = count_begin;
    run_together(tasks, JOBS_MAX);
    assert_int_equal(begun, 1 + 3); /* the gate; 256, 256 and the rest */
    begun = 0;
    run_together(tasks, 100);
    assert_int_equal(begun, 1 + 1);
}

static int note_thread(struct db *db, void *arg, struct err *e)
{
    pthread_t *on = arg;
    sigset_t mask;

    (void)db;
    *on = pthread_self();
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    if (!sigismember(&mask, SIGTERM) || !sigismember(&mask, SIGCHLD) || !sigismember(&mask, SIGINT))
        return err_set(e, ERR_HOST, "a signal could land here");
    return 0;
}

static void test_a_thread_of_its_own(void **state)
{
    struct server *s = *state;
    sigset_t mask;
    pthread_t on = pthread_self();

    assert_ok(s, store_call(s->store, note_thread, &on, &s->e));
    assert_false(pthread_equal(on, pthread_self()));
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    assert_false(sigismember(&mask, SIGTERM)); /* ours is as it was */
}

/* --- failures --- */

static void test_a_job_that_fails_undoes_itself(void **state)
{
    struct server *s = *state;
    struct task tasks[] = {
        {1, false},
        {2, true },
        {3, false}
    };

    run_together(tasks, COUNT(tasks));
    assert_int_equal(s->failed, 1);
    assert_int_equal(s->why.kind, ERR_CALLER);
    assert_string_equal(s->why.text, "task 2 does not want to");
    assert_true(is_there(s, 1));
    assert_false(is_there(s, 2));
    assert_true(is_there(s, 3));
}

static int put_and_ignore(struct db *db, void *arg, struct err *e)
{
    struct session_row r = {.id = "sess_9", .tenant = mem_strdup("other"), .pool = mem_strdup("p")};

    (void)arg;
    if (numbered_put(db, 9, e) < 0)
        return -1;
    (void)!db_session_put(db, &r, e); /* another tenant's */
    session_row_done(&r);
    (void)!numbered_put(db, 10, e);
    return 0;
}

/* An engine may tell of the failure only when the job is through, so no job can get over it. */
static void test_a_write_that_fails_fails_its_job(void **state)
{
    struct server *s = *state;
    struct task tasks[] = {
        {1, false},
        {3, false}
    };

    assert_refused(s, store_call(s->store, put_and_ignore, NULL, &s->e), ERR_CONFLICT);
    shut_gate();
    store_run(s->store, run_task, on_done, &tasks[0]);
    store_run(s->store, put_and_ignore, on_nothing, NULL);
    store_run(s->store, run_task, on_done, &tasks[1]);
    s->awaited = 2;
    open_gate();
    loop_run(s->loop);
    assert_int_equal(s->failed, 0);
    assert_false(is_there(s, 9) || is_there(s, 10));
    assert_true(is_there(s, 1) && is_there(s, 3));
}

static int refuse(struct db *db, struct err *e)
{
    (void)db;
    return err_set(e, ERR_HOST, "the disk is full");
}

static void test_a_commit_that_fails_fails_them_all(void **state)
{
    struct server *s = *state;
    struct task tasks[] = {
        {1, false},
        {2, true },
        {3, false}
    };

    tap(s);
    s->ops.commit = refuse;
    run_together(tasks, COUNT(tasks));
    assert_int_equal(s->failed, 3);
    assert_int_equal(s->why.kind, ERR_HOST);
    assert_refused(s, store_call(s->store, look, &(struct look){0}, &s->e), ERR_HOST);
    store_close(s->store);
    s->store = store_open(s->loop, &CONFIG(s->dir.path), &s->e);
    assert_false(is_there(s, 1) || is_there(s, 2) || is_there(s, 3));
}

static void test_a_begin_that_fails_runs_nothing(void **state)
{
    struct server *s = *state;
    struct task tasks[] = {
        {1, false},
        {2, false}
    };
    size_t ran;

    tap(s);
    ran = s->ran;
    true_begin = s->ops.begin;
    s->ops.begin = refuse;
    for (size_t i = 0; i < COUNT(tasks); i++)
        store_run(s->store, run_task, on_done, &tasks[i]);
    s->awaited = COUNT(tasks);
    loop_run(s->loop);
    assert_int_equal(s->failed, 2);
    assert_int_equal(s->ran, ran);
    assert_refused(s, store_call(s->store, look, &(struct look){0}, &s->e), ERR_HOST);
    s->ops.begin = true_begin;
    assert_false(is_there(s, 1));
}

/* As SQLite does by itself when the disk is full. */
static int lose_all(struct db *db, void *arg, struct err *e)
{
    (void)arg;
    db->ops->rollback(db);
    return err_set(e, ERR_HOST, "lost");
}

static void test_a_lost_transaction_fails_them_all(void **state)
{
    struct server *s = *state;
    struct task tasks[] = {
        {1, false},
        {2, false}
    };

    shut_gate();
    store_run(s->store, run_task, on_done, &tasks[0]);
    store_run(s->store, lose_all, on_nothing, NULL);
    store_run(s->store, run_task, on_done, &tasks[1]);
    s->awaited = 2;
    open_gate();
    loop_run(s->loop);
    assert_int_equal(s->failed, 2);
    assert_false(is_there(s, 1));
    assert_false(is_there(s, 2));
    assert_int_equal(s->ran, 1); /* the second was not even tried */
    run_together(tasks, 2);      /* and the store goes on */
    assert_true(is_there(s, 1) && is_there(s, 2));
}

/* --- the end --- */

static void test_close_runs_what_was_asked_for(void **state)
{
    struct server *s = *state;
    struct task tasks[100];

    shut_gate();
    for (int i = 0; i < 100; i++) {
        tasks[i] = (struct task){.number = i};
        store_run(s->store, run_task, on_done, &tasks[i]);
    }
    s->awaited = 100;
    open_gate();
    store_close(s->store);
    assert_int_equal(s->ran, 100);
    assert_int_equal(s->done, 0); /* answers come from the loop, also now */
    loop_run(s->loop);
    assert_int_equal(s->done, 100);
    s->store = store_open(s->loop, &CONFIG(s->dir.path), &s->e);
    assert_non_null(s->store);
    assert_true(is_there(s, 0) && is_there(s, 99));
}

static int do_nothing(struct db *db, void *arg, struct err *e)
{
    (void)db;
    (void)arg;
    (void)e;
    return 0;
}

static void close_store(void *arg, const struct err *failed)
{
    struct server *s = arg;

    assert_null(failed);
    store_close(s->store);
    s->store = NULL;
}

static void test_close_from_an_answer(void **state)
{
    struct server *s = *state;
    struct task late = {.number = 1};

    shut_gate();
    store_run(s->store, do_nothing, close_store, s);
    store_run(s->store, run_task, on_done, &late);
    s->awaited = 1;
    open_gate();
    loop_run(s->loop);
    assert_int_equal(s->done, 1);
    assert_null(s->store);
}

/* --- without a loop --- */

static void test_call_on_the_callers_thread(void **state)
{
    struct shop *s = *state;
    pthread_t on;
    int number = 5;

    (void)!store_call(s->store, note_thread, &on, &s->e);
    assert_true(pthread_equal(on, pthread_self()));
    assert_ok(s, store_call(s->store, numbered_job, &number, &s->e));
    assert_true(numbered_is_there(s->db, 5));
}

static int put_and_fail(struct db *db, void *arg, struct err *e)
{
    (void)arg;
    if (numbered_put(db, 6, e) < 0)
        return -1;
    return err_set(e, ERR_BUSY, "later");
}

static void test_call_that_fails(void **state)
{
    struct shop *s = *state;

    assert_refused(s, store_call(s->store, put_and_fail, NULL, &s->e), ERR_BUSY);
    assert_false(numbered_is_there(s->db, 6));
}

static int put_many(struct db *db, void *arg, struct err *e)
{
    for (int i = 0; i < 4; i++)
        if (numbered_put(db, ++*(int *)arg, e) < 0)
            return -1;
    return 0;
}

/* What is written counts until the disk has it, and from then on not. */
static void test_what_the_disk_has_not_is_counted(void **state)
{
    struct shop *s = *state;
    const struct db_ops *ops = s->db->ops;
    size_t before, after;
    int number = 0;

    if (!ops->unsynced) /* PostgreSQL has a disk of its own */
        return;
    assert_ok(s, ops->sync(s->db, &s->e));
    assert_int_equal(ops->unsynced(s->db), 0);
    for (int i = 0; i < 10; i++)
        assert_ok(s, store_call(s->store, put_many, &number, &s->e));
    before = ops->unsynced(s->db);
    assert_true(before >= 10);
    assert_ok(s, ops->sync(s->db, &s->e));
    assert_int_equal(ops->unsynced(s->db), 0);
    assert_int_equal(ops->tidy(s->db), 0); /* the log begins anew */
    assert_ok(s, store_call(s->store, put_many, &number, &s->e));
    after = ops->unsynced(s->db);
    assert_true(after > 0 && after < before);
}

static void test_directories_are_made(void **state)
{
    struct shop *s = *state;
    char path[64];
    struct stat st;
    struct store *deep;

    snprintf(path, sizeof(path), "%s/var/lib/retort/", s->dir.path);
    deep = store_open(NULL, &CONFIG(path), &s->e);
    assert_non_null(deep);
    store_close(deep);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    scratch_put(&s->dir, "file", STR(""));
    snprintf(path, sizeof(path), "%s/file/x", s->dir.path);
    assert_null(store_open(NULL, &CONFIG(path), &s->e));
    assert_has(s->e.text, path);
    store_close(NULL);
}

#define SERVED(f) cmocka_unit_test_setup_teardown(f, open_server, close_server)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SERVED(test_order),
        SERVED(test_what_waits_together_is_committed_together),
        SERVED(test_a_thread_of_its_own),
        SERVED(test_a_job_that_fails_undoes_itself),
        SERVED(test_a_write_that_fails_fails_its_job),
        SERVED(test_a_commit_that_fails_fails_them_all),
        SERVED(test_a_begin_that_fails_runs_nothing),
        SERVED(test_a_lost_transaction_fails_them_all),
        SERVED(test_close_runs_what_was_asked_for),
        SERVED(test_close_from_an_answer),
        IN_SHOP(test_call_on_the_callers_thread),
        IN_SHOP(test_call_that_fails),
        IN_SHOP(test_what_the_disk_has_not_is_counted),
        IN_SHOP(test_directories_are_made),
    };

    return RUN(tests);
}
