/*
 * Brings what was written to the disk. A commit and a blob are safe from the death of this
 * process as soon as they are written; a power cut takes what the kernel still holds. A thread
 * of its own syncs it in groups: FLUSH_MS after the first write of a group, or at once when a
 * job waits for the disk. Keys, approvals and uploads always wait; with DURABLE_POWER every job
 * that wrote something does.
 *
 * A row must not reach the disk before the blob that it names: the row may have taken
 * the place of one whose blob is there. So the blobs that are written are synced before the log of
 * the database is, twice: when the second round begins, the gate is closed, and a transaction that
 * names blobs syncs what has come since then before it commits (flush_named).
 *
 * The blobs here are few. Who saves many files brings them to the disk in the middle of that work,
 * before any row names them (blobs_settle): neither a commit nor the log ever waits for them. The
 * writes of a group are begun all together, so that one commit of the file system's journal serves
 * all of them.
 *
 * A log that is long moves into the database here as well, behind the same gate, for it is synced
 * by that.
 */
#include "loop/loop.h"
#include "store/store_int.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define FLUSH_MS  100  /* with the time that the disk takes, it is over within 200 ms */
#define BLOBS_MAX 1024 /* held open until they are synced; with more, everybody waits */
#define SHARDS    256

#define BEHIND_PAGES 2000 /* 8 MiB: a few hundredths of a second for most disks */

#define LAST_PAGES 200 /* of the log: no transaction begins while so few of them are moved */
#define MOVES_MAX  8

/* Blobs that are written and not synced. */
struct blob_group {
    int fds[BLOBS_MAX]; /* owned */
    size_t count;
    bool shards[SHARDS];
};

struct flush {
    pthread_t thread;
    bool running;          /* there is a thread */
    pthread_mutex_t mutex; /* for what is below */
    pthread_cond_t work, log_done, group_taken, settle_done;
    struct blob_group blobs;
    bool rows;             /* committed and not synced */
    int64_t since_us;      /* the first of all this was written */
    struct job *jobs;      /* wait for the disk; in order */
    struct job **jobs_end; /* where the next one is put */
    bool flushing, closing;
    bool syncing, gate_closed, in_hand; /* log_done tells when they end, */
    bool writing, paused;               /* and these: a transaction runs; none may begin */
    bool is_settling;                   /* the file system is being synced: */
    uint64_t settling, settled; /* how often that has begun, and the last time that it ended well */
    uint64_t groups, failures;
};

/* --- blobs --- */

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
    for (size_t i = 0; i < g->count; i++) /* only to be quick: what fails here fails below */
        (void)!sync_file_range(g->fds[i], 0, 0, SYNC_FILE_RANGE_WRITE);
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
    struct blob_group group;
    int rc = 0;

    while (f->in_hand)
        pthread_cond_wait(&f->log_done, &f->mutex);
    if (f->blobs.count == 0)
        return 0;
    group = f->blobs;
    f->blobs = (struct blob_group){0};
    f->in_hand = true;
    pthread_cond_broadcast(&f->group_taken);
    pthread_mutex_unlock(&f->mutex);
    rc = sync_group(s, &group, e);
    pthread_mutex_lock(&f->mutex);
    f->in_hand = false;
    pthread_cond_broadcast(&f->log_done);
    return rc;
}

static void note_write(struct flush *f)
{
    if (!f->since_us)
        f->since_us = time_mono_us();
    pthread_cond_signal(&f->work);
}

/* With the mutex held. Without a thread nobody else would sync them. */
static void wait_for_room(struct store *s)
{
    struct flush *f = s->flush;
    struct err ignored;

    if (!f->running && f->blobs.count == BLOBS_MAX)
        (void)!sync_blobs(s, &ignored);
    while (f->blobs.count == BLOBS_MAX)
        pthread_cond_wait(&f->group_taken, &f->mutex);
}

void flush_blob(struct store *s, int fd, unsigned shard)
{
    struct flush *f = s->flush;

    pthread_mutex_lock(&f->mutex);
    wait_for_room(s);
    f->blobs.shards[shard] = true;
    f->blobs.fds[f->blobs.count++] = fd;
    note_write(f);
    pthread_mutex_unlock(&f->mutex);
}

/* With the mutex held. One that has begun before may have passed by what was kept since then, so
 * the next one counts; it serves all who have come by then. */
static int settle(struct store *s, struct err *e)
{
    struct flush *f = s->flush;
    uint64_t wanted = f->settling + 1;
    int rc = 0;

    while (f->is_settling && f->settled < wanted)
        pthread_cond_wait(&f->settle_done, &f->mutex);
    if (f->settled >= wanted)
        return 0;
    f->is_settling = true;
    f->settling++;
    pthread_mutex_unlock(&f->mutex);
    rc = syncfs(s->blobs) < 0 ? err_sys(e, "sync the blobs") : 0;
    pthread_mutex_lock(&f->mutex);
    if (rc == 0)
        f->settled = f->settling;
    f->is_settling = false;
    pthread_cond_broadcast(&f->settle_done);
    return rc;
}

int blobs_settle(struct store *s, struct err *e)
{
    struct flush *f = s->flush;
    int rc;

    if (s->remote)
        return 0;
    work_wait_begin();
    pthread_mutex_lock(&f->mutex);
    rc = settle(s, e);
    pthread_mutex_unlock(&f->mutex);
    work_wait_end();
    if (rc < 0) {
        (void)!disk_blame(e);
        disk_failed(s, e);
    }
    return rc;
}

/* --- rows --- */

int flush_named(struct store *s, struct err *e)
{
    struct flush *f = s->flush;
    int rc = 0;

    pthread_mutex_lock(&f->mutex);
    if (f->gate_closed || s->db->ops->commits_to_disk)
        rc = sync_blobs(s, e);
    pthread_mutex_unlock(&f->mutex);
    return rc < 0 ? disk_blame(e) : 0;
}

void flush_begin(struct store *s)
{
    struct flush *f = s->flush;

    pthread_mutex_lock(&f->mutex);
    while (f->paused)
        pthread_cond_wait(&f->log_done, &f->mutex);
    f->writing = true;
    pthread_mutex_unlock(&f->mutex);
}

void flush_end(struct store *s)
{
    struct flush *f = s->flush;

    pthread_mutex_lock(&f->mutex);
    f->writing = false;
    pthread_cond_broadcast(&f->log_done);
    pthread_mutex_unlock(&f->mutex);
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

static void pause_writing(struct flush *f, bool paused)
{
    pthread_mutex_lock(&f->mutex);
    f->paused = paused;
    while (paused && f->writing)
        pthread_cond_wait(&f->log_done, &f->mutex);
    pthread_cond_broadcast(&f->log_done);
    pthread_mutex_unlock(&f->mutex);
}

/* The log begins anew only when all of it has been moved, and it grows meanwhile. So when it is
 * long, all but the last of it is moved first, and nothing is written while that is. */
static void move_log(struct store *s)
{
    const struct db_ops *ops = s->db->ops;
    size_t left = ops->tidy(s->db);

    for (unsigned i = 0; i < MOVES_MAX && left > LAST_PAGES; i++)
        left = ops->tidy(s->db);
    if (left == 0 || !ops->is_untidy(s->db, true))
        return;
    pause_writing(s->flush, true);
    (void)ops->tidy(s->db);
    pause_writing(s->flush, false);
}

/* Called and returns with the mutex held. *e is the first that failed. */
static int sync_all(struct store *s, struct err *e)
{
    struct flush *f = s->flush;
    struct err later;
    uint64_t number;
    int rc;

    while (f->syncing) /* who comes second must not find the blobs of the first unsynced */
        pthread_cond_wait(&f->log_done, &f->mutex);
    f->syncing = true;
    number = redo_committed(s);
    rc = sync_blobs(s, e);
    f->gate_closed = true;
    if (sync_blobs(s, rc < 0 ? &later : e) < 0)
        rc = -1;
    pthread_mutex_unlock(&f->mutex);
    if (record_log_sync(s, rc < 0 ? &later : e) < 0)
        rc = -1;
    if (s->db->ops->sync(s->db, rc < 0 ? &later : e) < 0)
        rc = -1;
    redo_flushed(s, number, rc == 0);
    if (rc == 0 && s->db->ops->is_untidy(s->db, false))
        move_log(s);
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

static bool is_behind(struct store *s)
{
    return s->db->ops->unsynced && s->db->ops->unsynced(s->db) > BEHIND_PAGES;
}

bool store_is_behind(struct store *s)
{
    return is_behind(s) && disk_is_well(s);
}

/* Waits for the group to be due. Called and returns with the mutex held. */
static void wait_for_work(struct store *s)
{
    struct flush *f = s->flush;

    while (!f->closing && !f->since_us)
        pthread_cond_wait(&f->work, &f->mutex);
    while (!f->closing && !f->jobs && !is_behind(s)) {
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
        wait_for_work(s);
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
    pthread_cond_init(&f->group_taken, NULL);
    pthread_cond_init(&f->settle_done, NULL);
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
    assert(!f->jobs && f->blobs.count == 0);
    pthread_mutex_destroy(&f->mutex);
    pthread_cond_destroy(&f->work);
    pthread_cond_destroy(&f->log_done);
    pthread_cond_destroy(&f->group_taken);
    pthread_cond_destroy(&f->settle_done);
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
