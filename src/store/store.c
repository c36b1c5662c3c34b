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
#include <unistd.h>

#define BATCH_MAX 256 /* bounds how long the first job of a batch waits for the last */

struct job {
    struct job *next;
    store_fn *fn;
    store_done_fn *done; /* NULL: a caller waits for `answered` */
    void *arg;
    struct err failed; /* ERR_NONE: it is kept */
    bool answered;
};

/* --- one batch --- */

static void fail_all(struct job *batch, const struct err *e)
{
    for (struct job *j = batch; j; j = j->next)
        j->failed = *e;
}

/* -1: the transaction is lost, and with it every job in it. */
static int run_job(struct store *s, struct job *j, struct err *e)
{
    struct db *db = s->db;
    size_t doomed = s->doomed_count;

    if (db->ops->savepoint(db, e) < 0)
        return -1;
    if (j->fn(db, j->arg, &j->failed) >= 0) {
        j->failed = (struct err){0}; /* it may have met one and known what to do */
        return db->ops->release(db, true, e);
    }
    assert(j->failed.kind != ERR_NONE);
    s->doomed_count = doomed; /* the rows it had taken away are there again */
    return db->ops->release(db, false, e);
}

/* With nobody beside it there is nothing to save: its failure is that of the transaction. */
static int run_alone(struct store *s, struct job *j, struct err *e)
{
    if (j->fn(s->db, j->arg, &j->failed) < 0) {
        assert(j->failed.kind != ERR_NONE);
        *e = j->failed;
        return -1;
    }
    j->failed = (struct err){0};
    return s->db->ops->commit(s->db, e);
}

static int run_jobs(struct store *s, struct job *batch, struct err *e)
{
    if (s->db->ops->begin(s->db, e) < 0)
        return -1;
    if (!batch->next)
        return run_alone(s, batch, e);
    for (struct job *j = batch; j; j = j->next)
        if (run_job(s, j, e) < 0)
            return -1;
    return s->db->ops->commit(s->db, e);
}

static void run_batch(struct store *s, struct job *batch)
{
    struct err e = {0};
    int rc = run_jobs(s, batch, &e);

    if (rc < 0) {
        s->db->ops->rollback(s->db);
        fail_all(batch, &e);
    }
    blobs_swept(s, rc == 0);
}

/* --- the thread --- */

/* Takes from the queue, in order. NULL: there is nothing, and there will be nothing more. */
static struct job *take_batch(struct store *s)
{
    struct job *batch, *rest, **cut = &s->first;

    pthread_mutex_lock(&s->mutex);
    while (!s->first && !s->closing)
        pthread_cond_wait(&s->more, &s->mutex);
    batch = s->first;
    for (size_t n = 0; *cut && n < BATCH_MAX; n++)
        cut = &(*cut)->next;
    rest = *cut;
    *cut = NULL;
    s->first = rest;
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

static void answer(struct store *s, struct job *batch)
{
    struct job *done = NULL, **end = &done;

    pthread_mutex_lock(&s->mutex);
    for (struct job *j = batch, *next; j; j = next) {
        next = j->next; /* a caller that waits takes its job away */
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

static void *run_thread(void *arg)
{
    struct store *s = arg;

    for (struct job *batch; (batch = take_batch(s));) {
        run_batch(s, batch);
        answer(s, batch);
        s->db->ops->tidy(s->db);
    }
    return NULL;
}

/* Signals are the loop's; none may land here. */
static int start_thread(struct store *s, struct err *e)
{
    sigset_t all, before;
    int rc;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    rc = pthread_create(&s->thread, NULL, run_thread, s);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = rc;
    if (rc != 0)
        return err_sys(e, "start the store's thread");
    pthread_setname_np(s->thread, "store");
    return 0;
}

/* --- asking --- */

static void push(struct store *s, struct job *j)
{
    assert(!s->closing);
    *s->end = j;
    s->end = &j->next;
    pthread_cond_signal(&s->more);
}

void store_run(struct store *s, store_fn *fn, store_done_fn *done, void *arg)
{
    struct job *j = mem_zalloc(sizeof(*j));

    assert(s->loop && done);
    *j = (struct job){.fn = fn, .done = done, .arg = arg};
    pthread_mutex_lock(&s->mutex);
    push(s, j);
    pthread_mutex_unlock(&s->mutex);
}

int store_call(struct store *s, store_fn *fn, void *arg, struct err *e)
{
    struct job j = {.fn = fn, .arg = arg};

    if (!s->loop) {
        run_batch(s, &j);
        s->db->ops->tidy(s->db);
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

static int open_parts(struct store *s, const char *dir, struct err *e)
{
    char path[4096];

    if ((size_t)snprintf(path, sizeof(path), "%s/retort.db", dir) >= sizeof(path))
        return err_set(e, ERR_CALLER, "the path is too long");
    if (make_dirs(dir, e) < 0)
        return -1;
    s->dir = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (s->dir < 0)
        return err_sys(e, "open");
    if (s->loop && lock_alone(s, e) < 0)
        return -1;
    if (blobs_open(s, s->loop != NULL, e) < 0)
        return -1;
    s->db = sqlite_open(path, e);
    if (!s->db)
        return -1;
    return s->loop ? start_thread(s, e) : 0;
}

static void close_parts(struct store *s)
{
    if (s->db)
        s->db->ops->close(s->db);
    blobs_close(s);
    fd_closep(&s->lock);
    fd_closep(&s->dir);
    pthread_mutex_destroy(&s->mutex);
    pthread_cond_destroy(&s->more);
    pthread_cond_destroy(&s->answered);
    free(s);
}

struct store *store_open(struct loop *l, const struct store_config *config, struct err *e)
{
    struct store *s = mem_zalloc(sizeof(*s));

    *s = (struct store){.loop = l, .dir = -1, .lock = -1, .blobs = -1, .reserve = config->reserve};
    s->end = &s->first;
    pthread_mutex_init(&s->mutex, NULL);
    pthread_mutex_init(&s->naming, NULL);
    pthread_cond_init(&s->more, NULL);
    pthread_cond_init(&s->answered, NULL);
    if (open_parts(s, config->dir, e) == 0)
        return s;
    err_wrap(e, "store in '%s'", config->dir);
    close_parts(s);
    return NULL;
}

void store_close(struct store *s)
{
    if (!s)
        return;
    if (s->loop) {
        pthread_mutex_lock(&s->mutex);
        s->closing = true;
        pthread_cond_signal(&s->more);
        pthread_mutex_unlock(&s->mutex);
        pthread_join(s->thread, NULL);
    }
    close_parts(s);
}
