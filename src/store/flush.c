/*
 * Brings what was written to the disk. A commit and a blob are safe from the death of this
 * process as soon as they are written; a power cut takes what the kernel still holds. A thread
 * of its own syncs it in groups: FLUSH_MS after the first write of a group, or at once when a
 * job waits for the disk. Keys, approvals and uploads always wait; with DURABLE_POWER every job
 * that wrote something does.
 *
 * A row must not reach the disk before the blob that it names: the row may have taken
 * the place of one whose blob is there. So a transaction that names blobs waits with its
 * commit (flush_gate) while the log of the database is synced, and the blobs that were
 * written until then are synced before the log is. Most of them have been before that wait
 * begins. Blobs that come during it are named by no row yet.
 *
 * A log that is long moves into the database here as well, behind the same gate.
 */
#include "store/store_int.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define FLUSH_MS  100 /* with the time that the disk takes, it is over within 200 ms */
#define BLOBS_MAX 8   /* held open until they are synced; with more, the file system is */
#define SHARDS    256

/* Blobs that are written and not synced. */
struct blob_group {
    int fds[BLOBS_MAX]; /* owned */
    size_t count;
    bool too_many; /* not all of them are here */
    bool shards[SHARDS];
};

struct flush {
    pthread_t thread;
    bool running;          /* there is a thread */
    pthread_mutex_t mutex; /* for what is below */
    pthread_cond_t work, log_done;
    struct blob_group blobs;
    bool rows;             /* committed and not synced */
    int64_t since_us;      /* the first of all this was written */
    struct job *jobs;      /* wait for the disk; in order */
    struct job **jobs_end; /* where the next one is put */
    bool flushing, closing;
    bool syncing, gate_closed; /* log_done tells when they end */
    uint64_t groups, failures;
};

/* --- blobs --- */

static bool has_blobs(const struct blob_group *g)
{
    return g->count > 0 || g->too_many;
}

static int sync_shards(struct store *s, const struct blob_group *g, struct err *e)
{
    for (unsigned i = 0; i < SHARDS; i++) {
        AUTO_CLOSE int dir = -1;
        char top[3];
        if (!g->shards[i])
            continue;
        snprintf(top, sizeof(top), "%02x", i);
        dir = openat(s->blobs, top, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (dir < 0 || fsync(dir) < 0)
            return err_sys(e, "sync a directory of blobs");
    }
    return fsync(s->blobs) < 0 ? err_sys(e, "sync the directory of blobs") : 0;
}

static int sync_files(struct store *s, const struct blob_group *g, struct err *e)
{
    if (g->too_many)
        return syncfs(s->blobs) < 0 ? err_sys(e, "sync the disk") : 0;
    for (size_t i = 0; i < g->count; i++)
        if (fdatasync(g->fds[i]) < 0)
            return err_sys(e, "sync a blob");
    return sync_shards(s, g, e);
}

static int sync_group(struct store *s, struct blob_group *g, struct err *e)
{
    int rc = sync_files(s, g, e);

    for (size_t i = 0; i < g->count; i++)
        fd_closep(&g->fds[i]);
    *g = (struct blob_group){0};
    return rc;
}

/* Those that are there now. Called and returns with the mutex held. */
static int sync_blobs(struct store *s, struct err *e)
{
    struct flush *f = s->flush;
    struct blob_group group = f->blobs;
    int rc = 0;

    if (!has_blobs(&f->blobs))
        return 0;
    f->blobs = (struct blob_group){0};
    pthread_mutex_unlock(&f->mutex);
    rc = sync_group(s, &group, e);
    pthread_mutex_lock(&f->mutex);
    return rc;
}

static void note_write(struct flush *f)
{
    if (!f->since_us)
        f->since_us = time_mono_us();
    pthread_cond_signal(&f->work);
}

void flush_blob(struct store *s, int fd, unsigned shard)
{
    struct flush *f = s->flush;

    pthread_mutex_lock(&f->mutex);
    f->blobs.shards[shard] = true;
    if (f->blobs.count < BLOBS_MAX)
        f->blobs.fds[f->blobs.count++] = take_fd(&fd);
    else
        f->blobs.too_many = true;
    note_write(f);
    pthread_mutex_unlock(&f->mutex);
    fd_closep(&fd);
}

/* --- rows --- */

void flush_gate(struct store *s)
{
    struct flush *f = s->flush;

    pthread_mutex_lock(&f->mutex);
    while (f->gate_closed)
        pthread_cond_wait(&f->log_done, &f->mutex);
    pthread_mutex_unlock(&f->mutex);
}

int flush_named(struct store *s, struct err *e)
{
    struct flush *f = s->flush;
    int rc;

    pthread_mutex_lock(&f->mutex);
    while (f->syncing) /* it may have them in its hands */
        pthread_cond_wait(&f->log_done, &f->mutex);
    f->syncing = true;
    rc = sync_blobs(s, e);
    f->syncing = false;
    pthread_cond_broadcast(&f->log_done);
    pthread_mutex_unlock(&f->mutex);
    return rc < 0 ? disk_blame(e) : 0;
}

void flush_rows(struct store *s, struct job *waiting)
{
    struct flush *f = s->flush;

    pthread_mutex_lock(&f->mutex);
    f->rows = true;
    *f->jobs_end = waiting;
    while (*f->jobs_end)
        f->jobs_end = &(*f->jobs_end)->next;
    note_write(f);
    pthread_mutex_unlock(&f->mutex);
}

int flush_blobs(struct store *s, struct err *e)
{
    int rc;

    pthread_mutex_lock(&s->flush->mutex);
    rc = sync_blobs(s, e);
    pthread_mutex_unlock(&s->flush->mutex);
    return rc;
}

/* --- the log --- */

/* Called and returns with the mutex held. *e is the first that failed. */
static int sync_all(struct store *s, struct err *e)
{
    struct flush *f = s->flush;
    struct err later;
    int rc;

    while (f->syncing) /* who comes second must not find the blobs of the first unsynced */
        pthread_cond_wait(&f->log_done, &f->mutex);
    f->syncing = true;
    rc = sync_blobs(s, e);
    f->gate_closed = true;
    if (sync_blobs(s, rc < 0 ? &later : e) < 0)
        rc = -1;
    pthread_mutex_unlock(&f->mutex);
    if (s->db->ops->sync(s->db, rc < 0 ? &later : e) < 0)
        rc = -1;
    if (rc == 0 && s->db->ops->is_untidy(s->db, false))
        s->db->ops->tidy(s->db);
    pthread_mutex_lock(&f->mutex);
    f->syncing = f->gate_closed = false;
    pthread_cond_broadcast(&f->log_done);
    return rc;
}

void flush_tidy(struct store *s)
{
    struct err ignored;

    pthread_mutex_lock(&s->flush->mutex);
    (void)!sync_all(s, &ignored);
    pthread_mutex_unlock(&s->flush->mutex);
}

/* --- the thread --- */

/* Called and returns with the mutex held. */
static void flush_group(struct store *s)
{
    struct flush *f = s->flush;
    struct job *jobs = f->jobs;
    struct err e = {0};
    int rc;

    f->jobs = NULL;
    f->jobs_end = &f->jobs;
    f->rows = false;
    f->since_us = 0;
    f->flushing = true;
    rc = sync_all(s, &e);
    f->flushing = false;
    f->groups++;
    f->failures += rc < 0;
    pthread_mutex_unlock(&f->mutex);
    (void)!disk_blame(&e);
    disk_failed(s, &e);
    if (rc < 0)
        log_error("what was written is not safe from a power cut: %s", e.text);
    if (jobs)
        jobs_answer(s, jobs, rc < 0 ? &e : NULL);
    pthread_mutex_lock(&f->mutex);
}

/* Waits for the group to be due. Called and returns with the mutex held. */
static void wait_for_work(struct flush *f)
{
    while (!f->closing && !f->since_us)
        pthread_cond_wait(&f->work, &f->mutex);
    while (!f->closing && !f->jobs) {
        int64_t due_us = f->since_us + FLUSH_MS * INT64_C(1000);
        struct timespec due = {.tv_sec = due_us / 1000000, .tv_nsec = due_us % 1000000 * 1000};
        if (time_mono_us() >= due_us)
            break;
        pthread_cond_timedwait(&f->work, &f->mutex, &due);
    }
}

static void *run_flushes(void *arg)
{
    struct store *s = arg;
    struct flush *f = s->flush;

    pthread_mutex_lock(&f->mutex);
    for (;;) {
        wait_for_work(f);
        if (f->closing && !f->since_us)
            break;
        flush_group(s);
    }
    pthread_mutex_unlock(&f->mutex);
    return NULL;
}

/* --- beginning and end --- */

int flush_start(struct store *s, struct err *e)
{
    struct flush *f = s->flush = mem_zalloc(sizeof(*f));
    pthread_condattr_t clock;

    f->jobs_end = &f->jobs;
    pthread_mutex_init(&f->mutex, NULL);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&f->work, &clock);
    pthread_condattr_destroy(&clock);
    pthread_cond_init(&f->log_done, NULL);
    if (s->loop && thread_start(&f->thread, "flush", run_flushes, s, e) < 0)
        return -1;
    f->running = s->loop != NULL;
    return 0;
}

void flush_stop(struct store *s)
{
    struct flush *f = s->flush;
    struct err ignored;

    if (!f)
        return;
    pthread_mutex_lock(&f->mutex);
    f->closing = true;
    pthread_cond_signal(&f->work);
    if (!f->running)
        (void)!sync_blobs(s, &ignored);
    pthread_mutex_unlock(&f->mutex);
    if (f->running)
        pthread_join(f->thread, NULL);
    assert(!f->jobs && !has_blobs(&f->blobs));
    pthread_mutex_destroy(&f->mutex);
    pthread_cond_destroy(&f->work);
    pthread_cond_destroy(&f->log_done);
    mem_freep(&s->flush);
}

struct store_counts store_counts(struct store *s)
{
    struct flush *f = s->flush;
    struct store_counts c;

    pthread_mutex_lock(&s->disk_mutex);
    c = s->counts;
    pthread_mutex_unlock(&s->disk_mutex);
    pthread_mutex_lock(&f->mutex);
    c.flushes = f->groups;
    c.flush_failures = f->failures;
    c.unflushed = f->since_us || f->flushing;
    pthread_mutex_unlock(&f->mutex);
    return c;
}
