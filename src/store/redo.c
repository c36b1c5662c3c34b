/*
 * The redo log: whoever waits for the disk waits for this file, and for nothing of others.
 *
 * The database and the blobs reach the disk in groups (flush.c), and the log of a database is one:
 * to sync one row of it, all that was written before must be on the disk, the files of all other
 * sessions among it. That can take seconds. So what a job has written that must be on the disk is
 * appended here as well, its statements and its small blobs, and synced. The file has its size from
 * the beginning, and every block of it has been written once. To write over such blocks changes
 * nothing in the file system, so its journal has nothing to commit, and no bytes of others go
 * with it: while a syncfs() of a hundred thousand small files took eleven seconds, no such write
 * took more than 29 ms.
 *
 * Jobs that need not wait are noted in memory only. When one that waits comes behind them, they go
 * into the file in front of it: it may need what they have written, as an upload needs its session.
 *
 * The log has two halves. When one is full the other begins anew, once flush.c has brought all that
 * is in it to the disk. Until then, and wherever else the log does not take something (it is too
 * long, a blob is too large, the disk refuses), the job waits for flush.c.
 *
 * One thread writes the log; what it shares stands below its mutex.
 */
#include "store/store_int.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define LOG_SIZE  (16 * MiB)
#define LOG_SHARE 32 /* of a small disk */
#define NOTED_MAX (4 * MiB)
#define NEW_NAME  REDO_NAME ".new"

struct half {
    size_t at;     /* where the next entry begins */
    uint32_t last; /* the number of the one before it */
};

struct entries {
    struct redo_entry *first, **end;
};

struct redo {
    pthread_t thread;
    bool running;
    int fd;      /* owned: the thread's, or -1: there is none */
    size_t size; /* of a half; the thread's, like the next two */
    struct half halves[2];
    unsigned current;
    atomic_size_t takes; /* the largest blob; 0: the log takes nothing yet, or never */

    struct redo_entry *running_job; /* owned: the store's thread's, like the next two */
    struct entries batch;           /* of the transaction that runs */
    uint32_t number;                /* the last that was given */

    pthread_mutex_t mutex; /* for what is below */
    pthread_cond_t more;
    struct entries noted; /* committed, and not in the file */
    size_t noted_bytes;
    bool is_waited_for; /* by a job among them */
    uint32_t committed; /* the number of the last job that is */
    uint32_t flushed;   /* and of the last that the log need not have */
    uint32_t dropped;   /* and of the last that there was no room for among them */
    bool closing;
};

/* --- lists --- */

static void entries_init(struct entries *l)
{
    l->first = NULL;
    l->end = &l->first;
}

static void append(struct entries *l, struct redo_entry *n)
{
    n->next = NULL;
    *l->end = n;
    l->end = &n->next;
}

static struct redo_entry *take_first(struct entries *l)
{
    struct redo_entry *n = l->first;

    if (n && !(l->first = n->next))
        l->end = &l->first;
    return n;
}

static void free_all(struct entries *l)
{
    for (struct redo_entry *n; (n = take_first(l));)
        redo_entry_free(n);
}

/* --- on the store's thread --- */

void redo_job_begin(struct store *s)
{
    if (!s->redo)
        return;
    redo_entry_free(s->redo->running_job);
    s->db->redo = s->redo->running_job = s->redo->takes ? redo_entry_new() : NULL;
}

/* 0 is none. */
static uint32_t next_number(struct redo *r)
{
    r->number += r->number == UINT32_MAX ? 2 : 1;
    return r->number;
}

/* A job that has read waits as well, where all do: it may have read what another has written. */
void redo_job_end(struct store *s, struct job *j, bool kept)
{
    struct redo *r = s->redo;
    struct redo_entry *n = r ? take_ptr(&r->running_job) : NULL;
    bool waits = s->power || j->must_sync;

    s->db->redo = NULL;
    if (!n || !kept || n->statements.full ||
        (!waits && (n->statements.n == 0 || n->blob_count > 0))) {
        redo_entry_free(n);
        return;
    }
    if (n->statements.n > 0)
        n->number = next_number(r);
    n->job = waits ? j : NULL;
    j->redone = waits;
    append(&r->batch, n);
}

int redo_stamp(struct store *s, struct err *e)
{
    return s->redo && s->redo->batch.first ? s->db->ops->stamp(s->db, s->redo->number, e) : 0;
}

/* With the mutex held. The oldest give way: who needed them waits for flush.c. */
static void limit_noted(struct redo *r)
{
    while (!r->is_waited_for && r->noted_bytes > NOTED_MAX) {
        struct redo_entry *n = take_first(&r->noted);
        r->noted_bytes -= n->statements.n;
        r->dropped = n->number;
        redo_entry_free(n);
    }
}

void redo_batch_end(struct store *s, bool committed)
{
    struct redo *r = s->redo;

    if (!r)
        return;
    if (!committed)
        return free_all(&r->batch);
    pthread_mutex_lock(&r->mutex);
    for (struct redo_entry *n; (n = take_first(&r->batch));) {
        r->is_waited_for |= n->job != NULL;
        r->noted_bytes += n->statements.n;
        append(&r->noted, n);
    }
    limit_noted(r);
    r->committed = r->number;
    if (r->is_waited_for)
        pthread_cond_signal(&r->more);
    pthread_mutex_unlock(&r->mutex);
}

/* --- what flush.c tells --- */

uint32_t redo_committed(struct store *s)
{
    uint32_t number = 0;

    if (!s->redo)
        return 0;
    pthread_mutex_lock(&s->redo->mutex);
    number = s->redo->committed;
    pthread_mutex_unlock(&s->redo->mutex);
    return number;
}

void redo_flushed(struct store *s, uint32_t number)
{
    struct redo *r = s->redo;

    if (!r)
        return;
    pthread_mutex_lock(&r->mutex);
    r->flushed = number;
    while (r->noted.first && !r->noted.first->job &&
           !redo_is_later(r->noted.first->number, number)) {
        struct redo_entry *n = take_first(&r->noted);
        r->noted_bytes -= n->statements.n;
        redo_entry_free(n);
    }
    pthread_mutex_unlock(&r->mutex);
}

bool redo_takes(struct store *s, uint64_t size)
{
    return s->redo && size <= s->redo->takes;
}

/* --- the file --- */

static int write_zeros(int fd, size_t size, struct err *e)
{
    static const char zeros[64 * KiB];

    for (size_t at = 0; at < size; at += sizeof(zeros))
        if (fd_write_all(fd, (struct str){zeros, sizeof(zeros)}, e) < 0)
            return -1;
    return fdatasync(fd) < 0 ? err_sys(e, "sync") : 0;
}

/* Under its name it has its whole size. */
static int make_file(struct store *s, size_t size, struct err *e)
{
    AUTO_CLOSE int fd = openat(s->dir, NEW_NAME, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    if (fd < 0)
        return err_sys(e, "make");
    if (write_zeros(fd, size, e) < 0) {
        (void)!unlinkat(s->dir, NEW_NAME, 0);
        return -1;
    }
    if (renameat(s->dir, NEW_NAME, s->dir, REDO_NAME) < 0 || fsync(s->dir) < 0)
        return err_sys(e, "name");
    return take_fd(&fd);
}

/* Room for it, and as much again for others. */
static size_t wanted_size(struct store *s)
{
    struct statvfs disk;
    uint64_t size;

    if (fstatvfs(s->dir, &disk) < 0)
        return 0;
    size = disk.f_blocks / LOG_SHARE * disk.f_frsize;
    size = (size < LOG_SIZE ? size : LOG_SIZE) / (128 * KiB) * (128 * KiB);
    return disk.f_bavail * disk.f_frsize < 3 * size ? 0 : (size_t)size;
}

/* What it had is put back, see redo_put_back(). */
static int open_file(struct store *s, struct err *e)
{
    struct redo *r = s->redo;
    AUTO_CLOSE int fd = openat(s->dir, REDO_NAME, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    off_t size = fd < 0 ? 0 : lseek(fd, 0, SEEK_END);

    if (size < (off_t)(256 * KiB)) {
        fd_closep(&fd);
        size = (off_t)wanted_size(s);
        if (size == 0)
            return 0;
        fd = make_file(s, (size_t)size, e);
    }
    if (fd < 0)
        return -1;
    r->fd = take_fd(&fd);
    r->size = (size_t)size / 2;
    r->takes = r->size / 4 < REDO_BLOB_MAX ? r->size / 4 : REDO_BLOB_MAX;
    return 0;
}

/* --- the thread --- */

static bool is_flushed(struct redo *r, uint32_t number)
{
    bool is;

    pthread_mutex_lock(&r->mutex);
    is = !redo_is_later(number, r->flushed);
    pthread_mutex_unlock(&r->mutex);
    return is;
}

static struct half *half_for(struct redo *r, size_t n)
{
    struct half *h = &r->halves[r->current];

    if (h->at > 0 && is_flushed(r, h->last))
        h->at = 0;
    if (h->at + n <= r->size)
        return h;
    h = &r->halves[!r->current];
    if (n > r->size || (h->at > 0 && !is_flushed(r, h->last)))
        return NULL;
    h->at = 0;
    r->current = !r->current;
    return h;
}

static bool write_entry(struct store *s, const struct redo_entry *n)
{
    struct redo *r = s->redo;
    AUTO(buf_done) struct buf b = BUF(r->size);
    struct half *h;

    if (n->number == 0)
        return true;
    if (!redo_entry_put(&b, n, s->blobs) || !(h = half_for(r, b.n)))
        return false;
    if (pwrite(r->fd, b.p, b.n, (off_t)(r->current * r->size + h->at)) != (ssize_t)b.n)
        return false;
    h->at += b.n - REDO_END;
    h->last = n->number;
    return true;
}

/* Jobs that have their entry, and jobs that wait for flush.c: each in order. */
struct written {
    struct job *in, **in_end;
    struct job *out, **out_end;
};

static void sort(struct written *w, struct job *j, bool is_in)
{
    struct job ***end = is_in ? &w->in_end : &w->out_end;

    if (!j)
        return;
    j->next = NULL;
    **end = j;
    *end = &j->next;
}

static void write_entries(struct store *s, struct entries *l, bool all)
{
    struct written w = {.in_end = &w.in, .out_end = &w.out};

    for (struct redo_entry *n; (n = take_first(l));) {
        bool flushed = n->number && is_flushed(s->redo, n->number);
        sort(&w, n->job, flushed || (write_entry(s, n) && all));
        redo_entry_free(n);
    }
    if (w.in && fdatasync(s->redo->fd) < 0) {
        *w.out_end = w.in; /* flush.c finds out what the disk has */
        w.in = NULL;
    }
    if (w.in)
        jobs_answer(s, w.in, NULL);
    if (w.out)
        flush_rows(s, w.out);
}

/* Called and returns with the mutex held. */
static void write_noted(struct store *s)
{
    struct redo *r = s->redo;
    bool all = !redo_is_later(r->dropped, r->flushed);
    struct entries l;

    entries_init(&l);
    for (struct redo_entry *n; (n = take_first(&r->noted));)
        append(&l, n);
    r->noted_bytes = 0;
    r->is_waited_for = false;
    pthread_mutex_unlock(&r->mutex);
    write_entries(s, &l, all);
    pthread_mutex_lock(&r->mutex);
}

static void *run_redo(void *arg)
{
    struct store *s = arg;
    struct redo *r = s->redo;
    struct err e = {0};

    if (open_file(s, &e) < 0)
        log_warn("there is no %s, so what must be on the disk waits for all that is written "
                 "there: %s",
                 REDO_NAME, e.text);
    pthread_mutex_lock(&r->mutex);
    while (r->is_waited_for || !r->closing) {
        if (r->is_waited_for)
            write_noted(s);
        else
            pthread_cond_wait(&r->more, &r->mutex);
    }
    pthread_mutex_unlock(&r->mutex);
    return NULL;
}

/* --- beginning and end --- */

int redo_start(struct store *s, struct err *e)
{
    struct redo *r = s->redo = mem_zalloc(sizeof(*r));

    r->fd = -1;
    entries_init(&r->batch);
    entries_init(&r->noted);
    pthread_mutex_init(&r->mutex, NULL);
    pthread_cond_init(&r->more, NULL);
    if (s->db->ops->stamped(s->db, &r->number, e) < 0)
        return -1;
    r->committed = r->flushed = r->dropped = r->number;
    if (thread_start(&r->thread, "redo", run_redo, s, e) < 0)
        return -1;
    r->running = true;
    return 0;
}

void redo_stop(struct store *s)
{
    struct redo *r = s->redo;

    if (!r || !r->running)
        return;
    pthread_mutex_lock(&r->mutex);
    r->closing = true;
    pthread_cond_signal(&r->more);
    pthread_mutex_unlock(&r->mutex);
    pthread_join(r->thread, NULL);
}

/* When all is on the disk the next server has nothing to look for. */
static void leave_file(struct redo *r)
{
    static const char end[REDO_END];

    for (unsigned i = 0; i < COUNT(r->halves); i++)
        if (r->halves[i].at > 0 && is_flushed(r, r->halves[i].last))
            (void)!pwrite(r->fd, end, sizeof(end), (off_t)(i * r->size));
    fd_closep(&r->fd);
}

void redo_free(struct store *s)
{
    struct redo *r = s->redo;

    if (!r)
        return;
    leave_file(r);
    free_all(&r->batch);
    free_all(&r->noted);
    redo_entry_free(r->running_job);
    pthread_mutex_destroy(&r->mutex);
    pthread_cond_destroy(&r->more);
    mem_freep(&s->redo);
}
