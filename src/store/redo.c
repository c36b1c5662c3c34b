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
 * took more than 29 ms. The file is made when a job waits for the first time.
 *
 * Jobs that need not wait are noted in memory only. When one that waits comes behind them, they go
 * into the file in front of it: it may need what they have written, as an upload needs its session.
 *
 * What is long is not noted, nor is what names many blobs or large ones: such a job leaves a gap. A
 * later job that needs what it wrote would be put back without it. Such a job names something by an
 * id that the earlier one has named, too. So a gap is kept by the ids of its job, and who names one
 * of them waits for flush.c, and is a gap itself, until flush.c has brought the first to the disk.
 *
 * The log has two halves. When one is full the other begins anew, once flush.c has brought all that
 * is in it to the disk. Where the log cannot take something that was noted (both halves are full,
 * the disk refuses), that job and all that were noted behind it wait for flush.c, and nothing is
 * written here before they are on the disk.
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

#define LOG_SIZE    (16 * MiB)
#define LOG_SHARE   32 /* of a small disk */
#define NOTED_MAX   (2 * MiB)
#define NOTED_BLOBS 8 /* of a job that does not wait */
#define NEW_NAME    REDO_NAME ".new"
#define TRY_S       60 /* after which the file may be tried to be made once more */

struct half {
    size_t at;     /* where the next entry begins; 0: it has never begun */
    uint64_t last; /* the number of the entry before it */
    uint8_t seed[REDO_SEED];
};

struct entries {
    struct redo_entry *first, **end;
};

struct redo {
    pthread_t thread;
    bool running;
    int fd;      /* owned: the thread's, or -1: there is none; like the next four */
    size_t size; /* of a half */
    struct half halves[2];
    unsigned current;
    int64_t tried_us;    /* when the file was last tried to be made */
    atomic_size_t takes; /* the largest blob; 0: the log takes nothing yet, or never */

    struct redo_entry *running_job; /* owned: the store's thread's, like the next two */
    struct entries batch;           /* of the transaction that runs */
    uint64_t number;                /* the last that was given */

    pthread_mutex_t mutex; /* for what is below */
    pthread_cond_t more;
    struct entries noted; /* committed, and not in the file */
    size_t noted_bytes;
    bool is_waited_for; /* by a job among them */
    bool is_wanted;     /* a job has waited elsewhere, as there is no file */
    uint64_t committed; /* the number of the last job that is */
    uint64_t flushed;   /* and of the last that the log need not have */
    uint64_t missed;    /* and of the last that it could not take */
    bool flush_failed;  /* since then */
    bool closing;
    uint64_t gaps[REDO_IDS]; /* by id: the number of the last job that names it and was not noted */
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

/* --- gaps; with the mutex held --- */

static bool names(const struct redo_entry *n, unsigned id)
{
    return n->ids[id / 64] >> id % 64 & 1;
}

static void note_gap(struct redo *r, const struct redo_entry *n)
{
    for (unsigned i = 0; i < REDO_IDS; i++)
        if (names(n, i))
            r->gaps[i] = n->number;
}

static bool is_behind_gap(const struct redo *r, const struct redo_entry *n)
{
    bool is = false;

    for (unsigned i = 0; i < REDO_IDS && !is; i++)
        is = names(n, i) && r->gaps[i] > r->flushed;
    return is;
}

/* --- on the store's thread --- */

void redo_job_begin(struct store *s)
{
    if (!s->redo)
        return;
    redo_entry_free(s->redo->running_job);
    s->db->redo = s->redo->running_job = redo_entry_new();
}

/* 32 bits of it go into the database, where 0 is none. */
static uint64_t next_number(struct redo *r)
{
    r->number += (uint32_t)(r->number + 1) == 0 ? 2 : 1;
    return r->number;
}

/* Whether the job can be noted. */
static bool judge(struct redo *r, const struct redo_entry *n, bool waits)
{
    bool fits = r->takes && !n->statements.full && (waits || n->blob_count <= NOTED_BLOBS);

    pthread_mutex_lock(&r->mutex);
    fits = fits && !is_behind_gap(r, n);
    if (!fits)
        note_gap(r, n);
    r->is_wanted |= waits && !r->takes;
    pthread_mutex_unlock(&r->mutex);
    return fits;
}

/* A job that has read waits as well, where all do: it may have read what another has written. */
void redo_job_end(struct store *s, struct job *j, bool kept)
{
    struct redo *r = s->redo;
    struct redo_entry *n = r ? take_ptr(&r->running_job) : NULL;
    bool waits = s->power || j->must_sync;

    s->db->redo = NULL;
    if (n && n->writes)
        n->number = next_number(r);
    if (!n || !kept || !(n->writes || waits) || !judge(r, n, waits)) {
        redo_entry_free(n);
        return;
    }
    n->job = waits ? j : NULL;
    j->redone = waits;
    append(&r->batch, n);
}

int redo_stamp(struct store *s, struct err *e)
{
    if (!s->redo || !s->redo->batch.first)
        return 0;
    return s->db->ops->stamp(s->db, (uint32_t)s->redo->number, e);
}

static size_t size_of(const struct redo_entry *n)
{
    return n->statements.n + n->blob_bytes;
}

/* With the mutex held. Where nobody waits for them, all of them become gaps: each may need what one
 * before it has written. */
static void limit_noted(struct redo *r)
{
    if (r->is_waited_for || r->noted_bytes <= NOTED_MAX)
        return;
    for (const struct redo_entry *n = r->noted.first; n; n = n->next)
        note_gap(r, n);
    free_all(&r->noted);
    r->noted_bytes = 0;
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
        r->noted_bytes += size_of(n);
        append(&r->noted, n);
    }
    limit_noted(r);
    r->committed = r->number;
    if (r->is_waited_for || r->is_wanted)
        pthread_cond_signal(&r->more);
    pthread_mutex_unlock(&r->mutex);
}

/* --- what flush.c tells --- */

uint64_t redo_committed(struct store *s)
{
    uint64_t number = 0;

    if (!s->redo)
        return 0;
    pthread_mutex_lock(&s->redo->mutex);
    number = s->redo->committed;
    pthread_mutex_unlock(&s->redo->mutex);
    return number;
}

void redo_flushed(struct store *s, uint64_t number, bool well)
{
    struct redo *r = s->redo;

    if (!r)
        return;
    pthread_mutex_lock(&r->mutex);
    if (well)
        r->flushed = number;
    r->flush_failed = !well;
    while (r->noted.first && !r->noted.first->job && r->noted.first->number <= r->flushed) {
        struct redo_entry *n = take_first(&r->noted);
        r->noted_bytes -= size_of(n);
        redo_entry_free(n);
    }
    pthread_cond_signal(&r->more);
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

static void take_file(struct redo *r, int fd, size_t size)
{
    r->fd = fd;
    r->size = size / 2;
    r->takes = r->size / 4 < REDO_BLOB_MAX ? r->size / 4 : REDO_BLOB_MAX;
}

/* The one of a server before. What it had is put back, see redo_put_back(). */
static void open_file(struct store *s)
{
    AUTO_CLOSE int fd = openat(s->dir, REDO_NAME, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    off_t size = fd < 0 ? 0 : lseek(fd, 0, SEEK_END);

    if (size >= (off_t)(256 * KiB))
        take_file(s->redo, take_fd(&fd), (size_t)size);
}

/* Called and returns with the mutex held. */
static void make_wanted(struct store *s)
{
    struct redo *r = s->redo;
    struct err e = {0};
    size_t size;
    int fd = -1;

    r->is_wanted = false;
    if (r->fd >= 0 || (r->tried_us && time_mono_us() - r->tried_us < TRY_S * INT64_C(1000000)))
        return;
    r->tried_us = time_mono_us();
    pthread_mutex_unlock(&r->mutex);
    size = wanted_size(s);
    if (size > 0)
        fd = make_file(s, size, &e);
    if (fd >= 0)
        take_file(r, fd, size);
    else if (size > 0)
        log_warn("there is no %s, so what must be on the disk waits for all that is written "
                 "there: %s",
                 REDO_NAME, e.text);
    pthread_mutex_lock(&r->mutex);
}

/* --- the thread --- */

static bool is_flushed(struct redo *r, uint64_t number)
{
    bool is;

    pthread_mutex_lock(&r->mutex);
    is = number <= r->flushed;
    pthread_mutex_unlock(&r->mutex);
    return is;
}

static bool begin_half(struct redo *r, unsigned i)
{
    struct half *h = &r->halves[i];

    random_bytes(h->seed, sizeof(h->seed));
    h->at = REDO_SEED;
    return pwrite(r->fd, h->seed, REDO_SEED, (off_t)(i * r->size)) == (ssize_t)REDO_SEED;
}

/* Where n bytes can go, or NULL. */
static struct half *half_for(struct redo *r, size_t n)
{
    struct half *h = &r->halves[r->current];

    if ((h->at == 0 || is_flushed(r, h->last)) && !begin_half(r, r->current))
        return NULL;
    if (h->at + n <= r->size)
        return h;
    h = &r->halves[!r->current];
    if (n > r->size - REDO_SEED || (h->at > 0 && !is_flushed(r, h->last)) ||
        !begin_half(r, !r->current))
        return NULL;
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
    redo_entry_seal(&b, h->seed);
    if (pwrite(r->fd, b.p, b.n, (off_t)(r->current * r->size + h->at)) != (ssize_t)b.n)
        return false;
    h->at += b.n - REDO_END;
    h->last = n->number;
    return true;
}

/* What it has taken since the last time is on the disk. If not, what it has taken at all may have
 * holes, and it takes nothing more before it begins anew. */
static bool sync_log(struct redo *r)
{
    if (fdatasync(r->fd) == 0)
        return true;
    for (unsigned i = 0; i < COUNT(r->halves); i++)
        if (r->halves[i].at > 0)
            r->halves[i].at = r->size;
    return false;
}

/* Jobs that have their entry, and jobs that wait for flush.c: each in order. */
struct written {
    struct job *in, **in_end;
    struct job *out, **out_end;
    uint64_t missed; /* the number of the last that has none, or 0 */
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

static void write_one(struct store *s, struct written *w, const struct redo_entry *n)
{
    bool is_in = n->number && is_flushed(s->redo, n->number);

    is_in = is_in || (!w->missed && write_entry(s, n));
    if (!is_in)
        w->missed = n->number ? n->number : w->missed;
    sort(w, n->job, is_in);
}

/* Returns the number of the last that could not be written, or 0. */
static uint64_t write_entries(struct store *s, struct entries *l, uint64_t missed)
{
    struct written w = {.in_end = &w.in, .out_end = &w.out, .missed = missed};
    uint64_t last = 0;

    for (struct redo_entry *n; (n = take_first(l));) {
        last = n->number ? n->number : last;
        write_one(s, &w, n);
        redo_entry_free(n);
    }
    if (w.in && !sync_log(s->redo)) {
        *w.out_end = w.in; /* flush.c finds out what the disk has */
        w.in = NULL;
        w.missed = last;
    }
    if (w.in)
        jobs_answer(s, w.in, NULL);
    if (w.out)
        flush_rows(s, w.out);
    return w.missed;
}

/* Called and returns with the mutex held. */
static void write_noted(struct store *s)
{
    struct redo *r = s->redo;
    uint64_t missed = r->missed > r->flushed ? r->missed : 0;
    struct entries l;

    entries_init(&l);
    for (struct redo_entry *n; (n = take_first(&r->noted));)
        append(&l, n);
    r->noted_bytes = 0;
    r->is_waited_for = false;
    pthread_mutex_unlock(&r->mutex);
    missed = write_entries(s, &l, missed);
    pthread_mutex_lock(&r->mutex);
    if (missed) {
        r->missed = missed;
        r->flush_failed = false;
    }
}

/* With the mutex held. What was missed is on its way to the disk: who comes now waits for that, and
 * need not wait for the next one. Unless that fails, as theirs would. */
static bool may_write(const struct redo *r)
{
    return r->is_waited_for && (r->missed <= r->flushed || r->flush_failed || r->closing);
}

static void *run_redo(void *arg)
{
    struct store *s = arg;
    struct redo *r = s->redo;

    pthread_mutex_lock(&r->mutex);
    while (r->is_waited_for || !r->closing) {
        if (may_write(r))
            write_noted(s);
        else if (r->is_wanted)
            make_wanted(s);
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
    uint32_t number = 0;

    r->fd = -1;
    entries_init(&r->batch);
    entries_init(&r->noted);
    pthread_mutex_init(&r->mutex, NULL);
    pthread_cond_init(&r->more, NULL);
    if (s->db->ops->stamped(s->db, &number, e) < 0)
        return -1;
    r->number = r->committed = r->flushed = number;
    open_file(s);
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
    for (unsigned i = 0; i < COUNT(r->halves); i++)
        if (r->halves[i].at > 0 && is_flushed(r, r->halves[i].last))
            (void)!redo_empty_half(r->fd, i * r->size);
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
