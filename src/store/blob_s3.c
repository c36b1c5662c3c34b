/*
 * Blobs in S3, for one node or many with one database.
 *
 * A blob is in S3 before anything else happens with it, so a row can name it at once. Reading goes
 * through the cache of the node (blob_cache.c).
 *
 * Removal. A sweep must not remove an object that a row names, or will name, and S3 knows no
 * transactions: between the look at the database and the DELETE another node may put the same bytes
 * and name them. What decides is a row in the database for each removal:
 *
 *   announced  Somebody removes the object, now.
 *   done       The object was removed. The row is kept for REMOVAL_KNOWN_MS.
 *
 * Each announcement has a ticket, a new one every time. The sweep of a node
 *   1. lists objects that nobody has put for SPARE_S, by the clock of S3;
 *   2. in one transaction: announces those that no row names;
 *   3. deletes each of them, with one request that it does not repeat;
 *   4. in one transaction: turns what still has its ticket to done, unless a DELETE of it may still
 *      be under way.
 * Who puts a blob
 *   a. reads the ticket of a removal that is done, if any; waits while one is announced;
 *   b. puts the object, and notes the hash with this ticket and the time when it began;
 *   c. names it in a transaction, which is refused unless
 *        - the note is younger than NOTE_US, and there is no removal, or one that is done and has
 *          the ticket of the note; or
 *        - another row names the blob already.
 *
 * Why no row ever names an object that is gone: transactions of 2 and of c come one after the other
 * (lock_removals where the database does not see to that).
 *   - c before 2: the row is there, and 2 leaves the blob alone.
 *   - 2 before c: c finds a removal. Announced: refused. Done: since a done removal is remembered
 *     for longer than a note is good for, c finds the last removal after the put at the latest; its
 *     ticket is that of the note only if the put began after that removal was done. With another
 *     ticket it is refused, and whoever has the bytes puts them again.
 *   - named already: 2 announces nothing while that row is there.
 * A DELETE whose answer is lost may still be under way. Its removal stays announced, and somebody
 * takes it over with a new ticket after TAKE_OVER_MS. By then S3 refuses the old request: it
 * carries the time of S3 at the listing, and S3 takes no request that is a quarter of an hour old.
 * The same keeps back a node that was stopped between 2 and 3 and wakes up late.
 *
 * The thread probes S3 while it is away, sweeps, and trims the cache.
 */
#include "store/s3_int.h"

#include "loop/loop.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define SPARE_S          (INT64_C(6) * 3600)
#define NOTE_US          (INT64_C(2) * 3600 * 1000000)
#define FRESH_US         (INT64_C(1800) * 1000000) /* put so lately that it need not be put again */
#define REMOVAL_KNOWN_MS (INT64_C(3) * 3600 * 1000)
#define TAKE_OVER_MS     (INT64_C(20) * 60 * 1000)
#define ABORT_S          (INT64_C(24) * 3600)
#define ABORT_EVERY_US   (INT64_C(3600) * 1000000)
#define PROBE_MS         1000
#define SETS             1024
#define BATCH            100 /* removals announced by one job */
#define WAIT_MS          200 /* for a removal to be done, so many times: */
#define WAITS            25
#define KIND             "blob-removal"
#define ANNOUNCED        "announced"
#define DONE             "done"

static_assert(REMOVAL_KNOWN_MS * 1000 > NOTE_US, "a removal outlives the notes made before it");
static_assert(SPARE_S * 1000000 > 2 * NOTE_US, "what was just put is not swept");

/* What this node has put. */
struct put_note {
    char hash[HASH_HEX];
    char ticket[ID_MAX]; /* of the removal that was done before, or "" */
    int64_t at_us;
};

struct put_note_set {
    struct put_note *at; /* owned */
    size_t count;
};

struct s3_blobs {
    struct s3 *s3; /* owned */
    pthread_t thread;
    bool running;
    pthread_mutex_t mutex; /* for what is below */
    pthread_cond_t more;
    bool closing, sweep_due;
    struct put_note_set notes[SETS];
    /* The thread's. */
    char after[S3_KEY_MAX]; /* where the next sweep begins */
    int64_t aborted_us;
};

/* --- notes --- */

static struct put_note_set *set_of(struct s3_blobs *b, const char *hash)
{
    char top[5] = {hash[0], hash[1], hash[2], hash[3], '\0'};

    return &b->notes[strtoul(top, NULL, 16) % SETS];
}

/* With the mutex held. What is too old goes. */
static void forget_old(struct put_note_set *set, const char *also)
{
    int64_t now = time_mono_us();
    size_t kept = 0;

    for (size_t i = 0; i < set->count; i++)
        if (now - set->at[i].at_us < NOTE_US && (!also || strcmp(set->at[i].hash, also) != 0))
            set->at[kept++] = set->at[i];
    set->count = kept;
}

static void note_put(struct s3_blobs *b, const struct put_note *n)
{
    struct put_note_set *set = set_of(b, n->hash);

    pthread_mutex_lock(&b->mutex);
    forget_old(set, n->hash);
    set->at = mem_realloc(set->at, (set->count + 1) * sizeof(*set->at));
    set->at[set->count++] = *n;
    pthread_mutex_unlock(&b->mutex);
}

static void note_drop(struct s3_blobs *b, const char *hash)
{
    pthread_mutex_lock(&b->mutex);
    forget_old(set_of(b, hash), hash);
    pthread_mutex_unlock(&b->mutex);
}

static bool note_get(struct s3_blobs *b, const char *hash, int64_t younger_us, struct put_note *ret)
{
    struct put_note_set *set = set_of(b, hash);
    bool found = false;

    pthread_mutex_lock(&b->mutex);
    for (size_t i = 0; i < set->count && !found; i++)
        if (strcmp(set->at[i].hash, hash) == 0) {
            *ret = set->at[i];
            found = time_mono_us() - ret->at_us < younger_us;
        }
    pthread_mutex_unlock(&b->mutex);
    return found;
}

/* --- removals, as rows --- */

struct removal {
    char hash[HASH_HEX];
    char ticket[ID_MAX];
    bool done;
    int64_t at_ms;
    bool unsure; /* the thread's: S3 was asked to delete it, and has not said that it did */
};

static void removal_from(const struct item_row *row, struct removal *ret)
{
    *ret = (struct removal){.done = strcmp(row->parent, DONE) == 0, .at_ms = row->updated_ms};
    snprintf(ret->hash, sizeof(ret->hash), "%s", row->id);
    snprintf(ret->ticket, sizeof(ret->ticket), "%s", row->body);
}

/* 1, 0, -1. */
static int removal_get(struct db *db, const char *hash, struct removal *ret, struct err *e)
{
    struct item_row row = {0};
    int rc = db_item_get(db, "", KIND, hash, &row, e);

    if (rc > 0)
        removal_from(&row, ret);
    item_row_done(&row);
    return rc;
}

static int removal_put(struct db *db, struct removal *r, struct err *e)
{
    int64_t now = time_sure_ms();
    struct item_row row = {.id = r->hash,
                           .tenant = (char *)"",
                           .kind = (char *)KIND,
                           .owner = (char *)"",
                           .parent = (char *)(r->done ? DONE : ANNOUNCED),
                           .body = r->ticket,
                           .created_ms = now,
                           .updated_ms = now,
                           .expires_ms = r->done ? now + REMOVAL_KNOWN_MS : 0};

    return db_item_put(db, &row, e);
}

static int lock(struct db *db, bool shared, struct err *e)
{
    return db->ops->lock_removals ? db->ops->lock_removals(db, shared, e) : 0;
}

/* --- putting --- */

struct removal_question {
    const char *hash;
    struct removal found;
    int rc;
};

static int ask(struct db *db, void *arg, struct err *e)
{
    struct removal_question *q = arg;

    q->rc = removal_get(db, q->hash, &q->found, e);
    return q->rc < 0 ? -1 : 0;
}

static int is_going(struct err *e)
{
    err_set(e, ERR_AWAY, "the same bytes are being removed just now; send them again");
    e->retry_s = 1;
    return -1;
}

static void sleep_ms(long ms)
{
    const struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

    work_wait_begin();
    nanosleep(&t, NULL);
    work_wait_end();
}

/* Step a. */
static int read_ticket(struct store *s, const char *hash, char ret[ID_MAX], struct err *e)
{
    for (int i = 0; i < WAITS; i++) {
        struct removal_question q = {.hash = hash};
        int rc;
        work_wait_begin();
        rc = store_call(s, ask, &q, e);
        work_wait_end();
        if (rc < 0)
            return -1;
        if (q.rc == 0 || q.found.done) {
            snprintf(ret, ID_MAX, "%s", q.rc ? q.found.ticket : "");
            return 0;
        }
        sleep_ms(WAIT_MS);
    }
    return is_going(e);
}

static int put(struct store *s, int fd, const char *hash, uint64_t size, struct err *e)
{
    struct put_note n = {.at_us = time_mono_us()};

    if (note_get(s->s3, hash, FRESH_US, &n))
        return 0;
    n = (struct put_note){.at_us = time_mono_us()};
    memcpy(n.hash, hash, HASH_HEX);
    if (s3_is_away(s->s3->s3, e) || read_ticket(s, hash, n.ticket, e) < 0 ||
        s3_put(s->s3->s3, fd, hash, size, e) < 0)
        return -1;
    note_put(s->s3, &n);
    return 0;
}

/* Step c. */
static int name(struct db *db, const char *hash, struct err *e)
{
    struct s3_blobs *b = db->store->s3;
    struct removal r = {0};
    struct put_note n;
    int removed, named;

    if (strcmp(db->holds, hash) == 0)
        return 0;
    if (lock(db, true, e) < 0)
        return -1;
    removed = removal_get(db, hash, &r, e);
    if (removed < 0)
        return -1;
    if (note_get(b, hash, NOTE_US, &n) && (!removed || (r.done && strcmp(r.ticket, n.ticket) == 0)))
        return 0;
    named = db_blob_named(db, hash, e);
    if (named != 0)
        return named < 0 ? -1 : 0;
    note_drop(b, hash);
    return is_going(e);
}

/* --- getting --- */

static int on_body(void *arg, struct str bytes, struct err *e)
{
    return blob_write(arg, bytes, e);
}

static int get(struct store *s, const char *hash, struct blob *b, struct err *e)
{
    return s3_get(s->s3->s3, hash, on_body, b, e);
}

static void is_damaged(struct store *s, const char *hash)
{
    note_drop(s->s3, hash);
}

/* --- the sweep --- */

struct removal_batch {
    struct removal at[BATCH];
    size_t count;
    bool take_over; /* of those that others have announced and not done */
};

/* Step 2. What is named, or somebody else's affair, is taken out of the batch. */
static int announce(struct db *db, void *arg, struct err *e)
{
    struct removal_batch *w = arg;
    int64_t now = time_sure_ms();
    size_t kept = 0;

    /* The rows that named these must not come back after a power cut: the objects would not. */
    db_must_sync(db);
    if (lock(db, false, e) < 0)
        return -1;
    for (size_t i = 0; i < w->count; i++) {
        struct removal r = w->at[i], before = {0};
        int named = db_blob_named(db, r.hash, e),
            known = named < 0 ? -1 : removal_get(db, r.hash, &before, e);
        if (known < 0)
            return -1;
        if (named || (known && !before.done && now - before.at_ms < TAKE_OVER_MS))
            continue;
        r.done = false;
        id_make(r.ticket, "gone_");
        if (removal_put(db, &r, e) < 0)
            return -1;
        w->at[kept++] = r;
    }
    w->count = kept;
    return 0;
}

/* Step 4. What was announced and then not even tried is as good as done: the object is there, for
 * the next sweep, and who puts it meanwhile finds a new ticket. */
static int conclude(struct db *db, void *arg, struct err *e)
{
    struct removal_batch *w = arg;

    for (size_t i = 0; i < w->count; i++) {
        struct removal now = {0};
        int known = w->at[i].unsure ? 0 : removal_get(db, w->at[i].hash, &now, e);
        if (known < 0)
            return -1;
        if (!known || strcmp(now.ticket, w->at[i].ticket) != 0)
            continue;
        now.done = true;
        if (removal_put(db, &now, e) < 0)
            return -1;
    }
    return 0;
}

/* Steps 2 to 4. date: that of S3 when the batch was listed, or earlier. */
static int remove_batch(struct store *s, struct removal_batch *w, const char *date, struct err *e)
{
    struct err failed = {0};

    if (w->count == 0)
        return 0;
    if (store_call(s, announce, w, e) < 0)
        return -1;
    for (size_t i = 0; i < w->count && !failed.kind; i++)
        w->at[i].unsure = s3_delete(s->s3->s3, w->at[i].hash, date, &failed) < 0;
    if (store_call(s, conclude, w, e) < 0)
        return -1;
    if (failed.kind)
        *e = failed;
    return failed.kind ? -1 : 0;
}

/* Removals that were announced and never done: their node has died, or S3 gave no answer. */
static int find_stale(struct db *db, void *arg, struct err *e)
{
    struct removal_batch *w = arg;
    struct item_row *rows = NULL;
    size_t count = 0;
    int rc = db_item_everybodys(db, NULL, KIND, ANNOUNCED, BATCH, &rows, &count, e);

    for (size_t i = 0; i < count; i++) {
        removal_from(&rows[i], &w->at[w->count]);
        w->count += time_sure_ms() - rows[i].updated_ms >= TAKE_OVER_MS;
        item_row_done(&rows[i]);
    }
    free(rows);
    return rc;
}

static int sweep_page(struct store *s, const struct s3_page *page, struct err *e)
{
    struct removal_batch w = {0};

    if (store_call(s, find_stale, &w, e) < 0 || remove_batch(s, &w, page->date, e) < 0)
        return -1;
    w.count = 0;
    for (size_t i = 0; i < page->count; i++) {
        if (page->date_s - page->at[i].modified_s > SPARE_S) {
            w.at[w.count] = (struct removal){0};
            memcpy(w.at[w.count++].hash, page->at[i].hash, HASH_HEX);
        }
        if ((w.count == BATCH || i + 1 == page->count) && remove_batch(s, &w, page->date, e) < 0)
            return -1;
        if (w.count == BATCH || i + 1 == page->count)
            w.count = 0;
    }
    return 0;
}

/* A page at a time: of a large bucket each sweep looks at a part. */
static int sweep(struct store *s, struct err *e)
{
    struct s3_blobs *b = s->s3;
    struct s3_page page;
    int rc;

    if (s3_list(b->s3, b->after, &page, e) < 0)
        return -1;
    memcpy(b->after, page.last, sizeof(b->after));
    rc = page.date_s ? sweep_page(s, &page, e) : 0;
    s3_page_done(&page);
    if (rc == 0 && time_mono_us() - b->aborted_us > ABORT_EVERY_US) {
        b->aborted_us = time_mono_us();
        rc = s3_abort_old(b->s3, ABORT_S, e);
    }
    return rc;
}

/* --- the thread --- */

static void wait_for_work(struct s3_blobs *b)
{
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += PROBE_MS / 1000;
    while (!b->closing && !b->sweep_due &&
           pthread_cond_timedwait(&b->more, &b->mutex, &until) != ETIMEDOUT)
        ;
}

static void *run(void *arg)
{
    struct store *s = arg;
    struct s3_blobs *b = s->s3;
    struct err e = {0};
    int status;

    pthread_mutex_lock(&b->mutex);
    for (;;) {
        bool due;
        wait_for_work(b);
        if (b->closing)
            break;
        due = b->sweep_due;
        b->sweep_due = false;
        pthread_mutex_unlock(&b->mutex);
        if (s3_is_away(b->s3, &e))
            (void)!s3_probe(b->s3, &status, &e);
        else if (due && sweep(s, &e) < 0)
            log_warn("cleaning up: %s", e.text);
        cache_trim(s);
        pthread_mutex_lock(&b->mutex);
    }
    pthread_mutex_unlock(&b->mutex);
    return NULL;
}

static void ask_for_sweep(struct store *s)
{
    pthread_mutex_lock(&s->s3->mutex);
    s->s3->sweep_due = true;
    pthread_cond_signal(&s->s3->more);
    pthread_mutex_unlock(&s->s3->mutex);
}

static bool is_away(struct store *s, struct err *e)
{
    return s3_is_away(s->s3->s3, e);
}

/* --- beginning and end --- */

static int start(struct store *s, struct err *e)
{
    struct s3_blobs *b = s->s3;
    int status;

    /* S3 may be down while we start, and come back later. But who is refused has a wrong key, or
     * bucket, and hears of it at once. */
    if (s3_probe(b->s3, &status, e) < 0 && status / 100 == 4) {
        e->kind = ERR_CALLER;
        return -1;
    }
    b->running = thread_start(&b->thread, "s3", run, s, e) == 0;
    return b->running ? 0 : -1;
}

static void stop(struct store *s)
{
    struct s3_blobs *b = s->s3;

    s3_stop(b->s3);
    pthread_mutex_lock(&b->mutex);
    b->closing = true;
    pthread_cond_signal(&b->more);
    pthread_mutex_unlock(&b->mutex);
    if (b->running)
        pthread_join(b->thread, NULL);
    b->running = false;
}

static void close_s3(struct store *s)
{
    struct s3_blobs *b = take_ptr(&s->s3);

    for (size_t i = 0; i < SETS; i++)
        free(b->notes[i].at);
    pthread_cond_destroy(&b->more);
    pthread_mutex_destroy(&b->mutex);
    s3_free(b->s3);
    free(b);
    s->remote = NULL;
}

int s3_blobs_open(struct store *s, const struct s3_config *c, struct err *e)
{
    static const struct blob_ops ops = {.start = start,
                                        .stop = stop,
                                        .put = put,
                                        .get = get,
                                        .is_damaged = is_damaged,
                                        .name = name,
                                        .sweep = ask_for_sweep,
                                        .is_away = is_away,
                                        .close = close_s3};
    struct s3_blobs *b;
    pthread_condattr_t clock;
    struct s3 *s3;

    if (s3_config_check(c, e) < 0 || !(s3 = s3_new(c, e)))
        return -1;
    s->s3 = b = mem_zalloc(sizeof(*b));
    b->s3 = s3;
    pthread_mutex_init(&b->mutex, NULL);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&b->more, &clock);
    pthread_condattr_destroy(&clock);
    s->cache_bytes = c->cache_bytes;
    s->remote = &ops;
    return 0;
}
