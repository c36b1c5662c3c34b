/*
 * The store's thread. It takes what is queued, up to BATCH_MAX jobs, and runs it as
 * one transaction with a savepoint around each job, so a job that fails undoes
 * itself and nothing else. When the transaction is committed, one message to the
 * loop answers the whole batch; what was queued meanwhile is the next batch. The
 * busier it is, the fewer commits there are for a job.
 *
 * With no loop there is no thread, and a call is a batch of one.
 */
#include "loop/loop.h"
#include "store/store_int.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define BATCH_MAX     256 /* bounds how long the first job of a batch waits for the last */
#define DISK_AGAIN_MS 500
#define LOOK_MS       250 /* how soon the end of an idle connection is noticed */
#define SOON_MS       20

/* --- one batch --- */

static void fail_all(struct job *batch, const struct err *e)
{
    for (struct job *j = batch; j; j = j->next)
        j->failed = *e;
}

/* A write that failed is the failure of its job, whatever the job has made of it. */
static int run_fn(struct db *db, struct job *j)
{
    db->must_sync = false;
    db->write_failed = (struct err){0};
    if (j->fn(db, j->arg, &j->failed) < 0) {
        assert(j->failed.kind != ERR_NONE);
        return -1;
    }
    j->failed = db->write_failed; /* of what it has read it may have met one and known what to do */
    j->must_sync = db->must_sync;
    return j->failed.kind ? -1 : 0;
}

/* -1: the transaction is lost, and with it every job in it. */
static int run_job(struct store *s, struct job *j, struct err *e)
{
    struct db *db = s->db;
    size_t doomed = s->doomed_count;
    int rc;

    if (db->ops->savepoint(db, e) < 0)
        return -1;
    redo_job_begin(s);
    if (run_fn(db, j) == 0) {
        db->syncs |= j->must_sync;
        rc = db->ops->release(db, true, &j->failed, e);
        redo_job_end(s, j, rc == 0);
        if (rc <= 0)
            return rc;
    } else if (db->ops->release(db, false, NULL, e) < 0) {
        return -1;
    }
    assert(j->failed.kind != ERR_NONE);
    s->doomed_count = doomed; /* the rows it had taken away are there again */
    return 0;
}

/* 1: something was written. */
static int commit(struct store *s, struct err *e)
{
    if (redo_stamp(s, e) < 0)
        return -1;
    if (s->db->names_blobs && flush_named(s, e) < 0)
        return -1;
    return s->db->ops->commit(s->db, e);
}

/* With nobody beside it there is nothing to save: its failure is that of the transaction. */
static int run_alone(struct store *s, struct job *j, struct err *e)
{
    redo_job_begin(s);
    if (run_fn(s->db, j) < 0) {
        *e = j->failed;
        return -1;
    }
    s->db->syncs = j->must_sync;
    redo_job_end(s, j, true);
    return commit(s, e);
}

static int run_jobs(struct store *s, struct job *batch, struct err *e)
{
    s->db->names_blobs = s->db->syncs = false;
    s->db->holds[0] = '\0';
    if (s->db->ops->begin(s->db, e) < 0)
        return -1;
    if (!batch->next)
        return run_alone(s, batch, e);
    for (struct job *j = batch; j; j = j->next)
        if (run_job(s, j, e) < 0)
            return -1;
    return commit(s, e);
}

static void count_batch(struct store *s, const struct job *batch, int64_t from_us)
{
    pthread_mutex_lock(&s->disk_mutex);
    s->counts.batches++;
    s->counts.batch_us += (uint64_t)(time_mono_us() - from_us);
    for (const struct job *j = batch; j; j = j->next)
        s->counts.jobs++;
    pthread_mutex_unlock(&s->disk_mutex);
}

/* Returns whether something was written. */
static bool run_batch(struct store *s, struct job *batch)
{
    struct err e = {0};
    int64_t from_us;
    int rc;

    disk_look(s);
    from_us = time_mono_us();
    rc = run_jobs(s, batch, &e);
    count_batch(s, batch, from_us);

    if (rc < 0) {
        s->db->ops->rollback(s->db);
        fail_all(batch, &e);
        disk_failed(s, &e);
    }
    for (const struct job *j = batch; rc >= 0 && j; j = j->next)
        disk_failed(s, &j->failed);
    blobs_swept(s, rc >= 0);
    return rc > 0;
}

/* --- the thread --- */

static void look(struct store *s)
{
    struct err e = {0};

    if (s->db->ops->look(s->db, &e) < 0)
        disk_failed(s, &e);
}

/* With the mutex held. While the disk is not well, it is tried again. Returns whether it was. */
static bool wait_for_more(struct store *s)
{
    bool well = disk_is_well(s);
    struct timespec until;

    if (well && !s->db->ops->look)
        return pthread_cond_wait(&s->more, &s->mutex) != 0;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += (well ? LOOK_MS : DISK_AGAIN_MS) * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    if (pthread_cond_timedwait(&s->more, &s->mutex, &until) != ETIMEDOUT)
        return false;
    pthread_mutex_unlock(&s->mutex);
    if (well)
        look(s);
    else
        disk_try_again(s);
    pthread_mutex_lock(&s->mutex);
    return false;
}

/* Takes from the queue, in order. NULL: there is nothing, and there will be nothing more. */
static struct job *take_batch(struct store *s)
{
    struct job *batch, *rest, **cut = &s->first;

    pthread_mutex_lock(&s->mutex);
    while (!(s->first && s->hurry) && !s->closing && !wait_for_more(s))
        ;
    batch = s->first;
    for (size_t n = 0; *cut && n < BATCH_MAX; n++)
        cut = &(*cut)->next;
    rest = *cut;
    *cut = NULL;
    s->first = rest;
    s->hurry = rest != NULL;
    if (!rest)
        s->end = &s->first;
    pthread_mutex_unlock(&s->mutex);
    return batch;
}

/* From the loop. The store may be closed by now, or by one of these. */
static void on_done(void *arg)
{
    for (struct job *j = arg; j;) {
        struct job *next = j->next;
        j->done(j->arg, j->failed.kind == ERR_NONE ? NULL : &j->failed);
        free(j);
        j = next;
    }
}

void jobs_answer(struct store *s, struct job *jobs, const struct err *failed)
{
    struct job *done = NULL, **end = &done;

    pthread_mutex_lock(&s->mutex);
    for (struct job *j = jobs, *next; j; j = next) {
        next = j->next; /* a caller that waits takes its job away */
        if (failed && j->failed.kind == ERR_NONE)
            j->failed = *failed;
        if (j->logged)
            record_log_settle(s, j->failed.kind == ERR_NONE);
        if (j->done) {
            *end = j;
            end = &j->next;
        } else {
            j->answered = true;
        }
    }
    *end = NULL;
    pthread_cond_broadcast(&s->answered);
    pthread_mutex_unlock(&s->mutex);
    if (done)
        loop_post(s->loop, on_done, done);
}

/* Those that need not wait for the disk are answered. Of the others the redo log has most; returns
 * the rest, in order. */
static struct job *answer_most(struct store *s, struct job *batch)
{
    struct job *now = NULL, **now_end = &now, *later = NULL, **later_end = &later;

    for (struct job *j = batch; j; j = j->next) {
        struct job ***end = (s->power || j->must_sync) && !j->failed.kind ? &later_end : &now_end;
        if (j->redone)
            continue;
        **end = j;
        *end = &j->next;
    }
    *now_end = *later_end = NULL;
    if (now)
        jobs_answer(s, now, NULL);
    return later;
}

static void answer_batch(struct store *s, struct job *batch, bool wrote)
{
    if (!wrote || s->db->ops->commits_to_disk) {
        redo_batch_end(s, false);
        jobs_answer(s, batch, NULL);
        return;
    }
    flush_rows(s, answer_most(s, batch));
    redo_batch_end(s, true);
}

static void *run_thread(void *arg)
{
    struct store *s = arg;
    int64_t tried_us = 0;

    for (struct job *batch; (batch = take_batch(s));) {
        flush_begin(s);
        answer_batch(s, batch, run_batch(s, batch));
        flush_end(s);
        if (!disk_is_well(s) && time_mono_us() - tried_us > DISK_AGAIN_MS * INT64_C(1000)) {
            disk_try_again(s);
            tried_us = time_mono_us();
        }
    }
    return NULL;
}

int thread_start(pthread_t *ret, const char *name, void *(*run)(void *), void *arg, struct err *e)
{
    sigset_t all, before;
    int rc;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    rc = pthread_create(ret, NULL, run, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = rc;
    if (rc != 0)
        return err_sys(e, "start the thread '%s'", name);
    pthread_setname_np(*ret, name);
    return 0;
}

/* --- asking --- */

/* With the mutex held. */
static void hurry(struct store *s)
{
    s->hurry = true;
    pthread_cond_signal(&s->more);
}

static void push(struct store *s, struct job *j)
{
    assert(!s->closing);
    *s->end = j;
    s->end = &j->next;
    if (!j->soon)
        hurry(s);
}

static void run(struct store *s, const struct job *like)
{
    struct job *j = mem_zalloc(sizeof(*j));

    assert(s->loop && like->done);
    *j = *like;
    pthread_mutex_lock(&s->mutex);
    push(s, j);
    pthread_mutex_unlock(&s->mutex);
}

void store_run(struct store *s, store_fn *fn, store_done_fn *done, void *arg)
{
    run(s, &(struct job){.fn = fn, .done = done, .arg = arg});
}

static void on_soon(void *arg)
{
    struct store *s = arg;

    s->soon_is_set = false;
    pthread_mutex_lock(&s->mutex);
    hurry(s);
    pthread_mutex_unlock(&s->mutex);
}

void store_run_soon(struct store *s, bool logged, store_fn *fn, store_done_fn *done, void *arg)
{
    run(s, &(struct job){.fn = fn, .done = done, .arg = arg, .soon = true, .logged = logged});
    if (!s->soon_is_set)
        timer_set(s->soon, SOON_MS);
    s->soon_is_set = true;
}

void db_must_sync(struct db *db)
{
    db->must_sync = true;
}

/* With no thread: the blobs are synced before the rows, all of it before the return. */
static void call_here(struct store *s, struct job *j)
{
    struct err e = {0};

    if (flush_blobs(s, &e) < 0 ||
        (run_batch(s, j) && (s->power || j->must_sync) && s->db->ops->sync(s->db, &e) < 0))
        j->failed = e;
    if (s->db->ops->is_untidy(s->db, false))
        flush_tidy(s);
}

int store_call(struct store *s, store_fn *fn, void *arg, struct err *e)
{
    struct job j = {.fn = fn, .arg = arg};

    if (!s->loop) {
        call_here(s, &j);
    } else {
        pthread_mutex_lock(&s->mutex);
        push(s, &j);
        while (!j.answered)
            pthread_cond_wait(&s->answered, &s->mutex);
        pthread_mutex_unlock(&s->mutex);
    }
    if (j.failed.kind == ERR_NONE)
        return 0;
    *e = j.failed;
    return -1;
}

/* --- nodes --- */

bool store_has_nodes(const struct store *s)
{
    return s->has_nodes;
}

const char *store_node(const struct store *s)
{
    return s->has_nodes ? postgres_writer(s->db) : "";
}

void store_lease(struct store *s, int64_t until_us)
{
    s->lease_us = until_us;
}

bool store_lease_holds(struct store *s, struct err *e)
{
    if (!s->has_nodes || time_mono_us() < s->lease_us)
        return true;
    err_set(e, ERR_AWAY, "this node has not reached the database for longer than its lease");
    e->retry_s = 1;
    return false;
}

bool store_is_fenced(struct store *s)
{
    return s->has_nodes && postgres_is_fenced(s->db);
}

/* --- opening and closing --- */

static int make_dirs(const char *path, struct err *e)
{
    AUTO_FREE char *part = mem_strdup(path);

    for (char *p = part + 1; *part && *p; p++) {
        if (*p != '/')
            continue;
        *p = '\0';
        if (mkdir(part, 0700) < 0 && errno != EEXIST)
            return err_sys(e, "make '%s'", part);
        *p = '/';
    }
    if (mkdir(part, 0700) < 0 && errno != EEXIST)
        return err_sys(e, "make '%s'", part);
    return 0;
}

/* Two servers would each take the other's sessions for those of a dead process. A record lock, as
 * children must not inherit it and live on with it. */
static int lock_alone(struct store *s, struct err *e)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

    s->lock = openat(s->dir, "retort.lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (s->lock < 0)
        return err_sys(e, "open retort.lock");
    if (fcntl(s->lock, F_SETLK, &whole) == 0)
        return 0;
    if (errno == EACCES || errno == EAGAIN)
        return err_set(e, ERR_HOST, "another retort serves from this directory");
    return err_sys(e, "lock retort.lock");
}

/* A server writes now and then for as long as it runs, so this is when the time was last known. */
static void begin_clock(const struct store *s)
{
    static const char *const written[] = {"retort.db", "retort.db-wal"};
    int64_t last_s = 0;

    for (size_t i = 0; i < COUNT(written); i++) {
        struct stat st;
        if (fstatat(s->dir, written[i], &st, 0) == 0 && st.st_mtim.tv_sec > last_s)
            last_s = st.st_mtim.tv_sec;
    }
    time_sure_begin(last_s * 1000);
}

static struct db *open_db(struct store *s, const struct store_config *config, struct err *e)
{
    char path[4096];

    if (config->node && (!config->url || !config->s3)) {
        err_set(e, ERR_CALLER, "nodes share a database and a bucket: a store and blobs are needed");
        return NULL;
    }
    if (config->url)
        return postgres_open(config, s->loop != NULL, e);
    if ((size_t)snprintf(path, sizeof(path), "%s/retort.db", config->dir) < sizeof(path))
        return sqlite_open(path, e);
    err_set(e, ERR_CALLER, "the path is too long");
    return NULL;
}

static int open_parts(struct store *s, const struct store_config *config, struct err *e)
{
    const char *dir = config->dir;

    if (make_dirs(dir, e) < 0)
        return -1;
    s->dir = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (s->dir < 0)
        return err_sys(e, "open");
    if (s->loop && lock_alone(s, e) < 0)
        return -1;
    if (!config->url) /* else the database tells */
        begin_clock(s);
    if (config->s3 && s3_blobs_open(s, config->s3, e) < 0)
        return -1;
    if (blobs_open(s, s->loop != NULL, e) < 0)
        return -1;
    s->db = open_db(s, config, e);
    if (!s->db || copy_refuse_half(s->db, e) < 0 || flush_start(s, e) < 0)
        return -1;
    s->db->blobs = s->blobs;
    s->db->store = s;
    if (s->loop && !config->url &&
        (redo_put_back(s->dir, s->db, e) < 0 || record_log_put_back(s->dir, s->db, e) < 0))
        return -1;
    if (s->loop)
        disk_try_again(s);
    /* That the files are there at all must be on the disk before anything in them counts. */
    if (fsync(s->dir) < 0)
        return err_sys(e, "sync");
    if (!s->loop)
        return 0;
    if (s->db->ops->stamp && redo_start(s, e) < 0)
        return -1;
    if (thread_start(&s->thread, "store", run_thread, s, e) < 0)
        return -1;
    s->running = true;
    s->soon = timer_new(s->loop, on_soon, s);
    if (!config->url)
        record_log_open(s);
    return s->remote ? s->remote->start(s, e) : 0;
}

static void close_parts(struct store *s)
{
    if (s->remote)
        s->remote->stop(s);
    if (s->running) {
        pthread_mutex_lock(&s->mutex);
        s->closing = true;
        pthread_cond_signal(&s->more);
        pthread_mutex_unlock(&s->mutex);
        pthread_join(s->thread, NULL);
    }
    redo_stop(s);
    flush_stop(s);
    redo_free(s);
    if (s->db)
        s->db->ops->close(s->db);
    if (s->remote)
        s->remote->close(s);
    blobs_close(s);
    timer_free(s->soon);
    record_log_close(s);
    fd_closep(&s->lock);
    fd_closep(&s->dir);
    pthread_mutex_destroy(&s->mutex);
    pthread_mutex_destroy(&s->disk_mutex);
    pthread_cond_destroy(&s->more);
    pthread_cond_destroy(&s->answered);
    free(s);
}

struct store *store_open(struct loop *l, const struct store_config *config, struct err *e)
{
    struct store *s = mem_zalloc(sizeof(*s));
    pthread_condattr_t clock;

    *s = (struct store){.loop = l,
                        .dir = -1,
                        .lock = -1,
                        .blobs = -1,
                        .log = {.fd = -1},
                        .reserve = config->reserve,
                        .has_nodes = config->node != NULL,
                        .power = config->durability == DURABLE_POWER};
    s->end = &s->first;
    pthread_mutex_init(&s->mutex, NULL);
    pthread_mutex_init(&s->naming, NULL);
    pthread_mutex_init(&s->disk_mutex, NULL);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&s->more, &clock);
    pthread_condattr_destroy(&clock);
    pthread_cond_init(&s->answered, NULL);
    if (open_parts(s, config, e) == 0)
        return s;
    err_wrap(e, "store in '%s'", config->url ? config->url : config->dir);
    close_parts(s);
    return NULL;
}

void store_close(struct store *s)
{
    if (s)
        close_parts(s);
}
