/*
 * Blocking work: threads that take turns.
 *
 * TURNS pieces of work run at a time. The others wait in queues, sorted by their owner: each group
 * (a tenant) has an equal share of the turns, and within a group each member (a session). Work that
 * takes long calls work_yield() every so often. When its slice of time is over and other work
 * waits, work_yield() gives the turn to the next piece of work and queues again, on the same thread
 * and in the middle of its work. So a walk through many files can be written as a plain loop, and
 * no other session waits for its end.
 *
 * At both levels there are two lists, as in fair queueing of packets (RFC 8290). A group or member
 * that arrives with no work under way is a newcomer, and newcomers go first, once. After that it
 * takes its place in the round of the others. When its queue is empty it stays in the round until
 * its place is reached. So nobody gets ahead of the round by sending many short pieces of work.
 *
 * A piece of work has a thread of its own until it is done. There are as many threads as pieces of
 * work have begun, at most THREADS_MAX, and at most GROUP_THREADS for one group.
 */
#include "loop/loop_int.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/fsuid.h>
#include <sys/queue.h>
#include <sys/resource.h>
#include <unistd.h>

#define TURNS         4
#define THREADS_MAX   64
#define GROUP_THREADS 48
#define SLICE_US      5000
#define STACK_SIZE    (2 * MiB)

struct work {
    STAILQ_ENTRY(work) next;
    struct workers *workers; /* borrowed */
    struct whose whose;
    loop_fn *fn, *done;
    void *arg;
    bool has_turn;
    pthread_cond_t turn; /* has_turn has become true */
    int64_t since_us;    /* when its slice began */
};

STAILQ_HEAD(work_queue, work);
TAILQ_HEAD(share_list, share);

/* All work, a group or a member. A member has queues, the others have shares below them. */
struct share {
    uint64_t key;
    struct share *above; /* borrowed */
    TAILQ_ENTRY(share) next;
    bool is_newcomer;
    struct share_list newcomers, round; /* owned */
    struct work_queue fresh, begun;     /* work that has not begun; work that has */
    bool begun_next;                    /* the two queues take turns */
    size_t waiting;                     /* work here and below */
    unsigned threads;                   /* of a group */
};

struct workers {
    struct loop *loop; /* borrowed */
    pthread_mutex_t lock;
    pthread_cond_t more, finished;
    struct share all;
    struct work_queue ready; /* has a turn, wants a thread */
    pthread_t thread[THREADS_MAX];
    unsigned threads, busy; /* busy: with work that has begun */
    unsigned turns;         /* taken */
    unsigned posted;        /* finished, and not told yet */
    int nice; /* what the thread of the loop had when there was no worker yet: it may go first now
               */
    bool closing;
    size_t pending; /* the loop's: not told yet */
};

static _Thread_local struct work *current;

/* --- shares --- */

static void share_init(struct share *s, struct share *above, uint64_t key)
{
    *s = (struct share){.key = key, .above = above};
    TAILQ_INIT(&s->newcomers);
    TAILQ_INIT(&s->round);
    STAILQ_INIT(&s->fresh);
    STAILQ_INIT(&s->begun);
}

static struct share_list *list_of(struct share *s)
{
    return s->is_newcomer ? &s->above->newcomers : &s->above->round;
}

static struct share *find(struct share *above, uint64_t key)
{
    struct share *s;

    TAILQ_FOREACH(s, &above->newcomers, next)
    if (s->key == key)
        return s;
    TAILQ_FOREACH(s, &above->round, next)
    if (s->key == key)
        return s;
    return NULL;
}

/* One that is not there is a newcomer, unless it was in the round with this very work. */
static struct share *share_of(struct share *above, uint64_t key, bool has_begun)
{
    struct share *s = find(above, key);

    if (s)
        return s;
    s = mem_zalloc(sizeof(*s));
    share_init(s, above, key);
    s->is_newcomer = !has_begun;
    TAILQ_INSERT_TAIL(list_of(s), s, next);
    return s;
}

static void leave_list(struct share *s)
{
    struct share_list *list = list_of(s);

    TAILQ_REMOVE(list, s, next);
}

/* With nobody below it who waits. */
static void share_done(struct share *s)
{
    for (struct share *b; (b = TAILQ_FIRST(&s->newcomers)) || (b = TAILQ_FIRST(&s->round));) {
        // NOLINTNEXTLINE(clang-analyzer-unix.Malloc): it has left its list
        share_done(b);
        leave_list(b);
        free(b);
    }
}

static void wait_in_row(struct workers *k, struct work *w, bool has_begun)
{
    struct share *group = share_of(&k->all, w->whose.group, has_begun);
    struct share *member = share_of(group, w->whose.member, has_begun);

    if (has_begun)
        STAILQ_INSERT_TAIL(&member->begun, w, next);
    else
        STAILQ_INSERT_TAIL(&member->fresh, w, next);
    for (struct share *s = member; s; s = s->above)
        s->waiting++;
}

/* --- whose turn it is --- */

static struct work *take_first(struct work_queue *r)
{
    struct work *w = STAILQ_FIRST(r);

    if (w)
        STAILQ_REMOVE_HEAD(r, next);
    return w;
}

static struct work *take_of_member(struct share *s, bool can_begin)
{
    struct work *w = s->begun_next || !can_begin ? take_first(&s->begun) : take_first(&s->fresh);

    if (!w && can_begin)
        w = take_first(s->begun_next ? &s->fresh : &s->begun);
    s->begun_next = !s->begun_next;
    return w;
}

static struct work *take_below(struct workers *k, struct share *above, bool can_begin);

static struct work *take_of(struct workers *k, struct share *s, bool can_begin)
{
    struct work *w;

    if (s->above != &k->all)
        w = take_of_member(s, can_begin);
    else
        w = take_below(k, s, can_begin && s->threads < GROUP_THREADS);
    if (w)
        s->waiting--;
    return w;
}

/* NULL: nobody in the list may have a turn. Whoever gets it is last in the round then; whoever
 * waits for nothing any more has had its place. */
static struct work *take_in(struct workers *k, struct share_list *list, bool can_begin)
{
    for (struct share *s = TAILQ_FIRST(list), *next; s; s = next) {
        struct work *w = s->waiting ? take_of(k, s, can_begin) : NULL;
        next = TAILQ_NEXT(s, next);
        if (w) {
            leave_list(s);
            s->is_newcomer = false;
            TAILQ_INSERT_TAIL(&s->above->round, s, next);
            return w;
        }
        if (s->waiting == 0 && s->threads == 0) {
            share_done(s);
            leave_list(s);
            free(s);
        }
    }
    return NULL;
}

static struct work *take_below(struct workers *k, struct share *above, bool can_begin)
{
    struct work *w = take_in(k, &above->newcomers, can_begin);

    return w ? w : take_in(k, &above->round, can_begin);
}

/* --- threads --- */

static void hand_out_turns(struct workers *k);

static void give_up_turn(struct workers *k, struct work *w)
{
    w->has_turn = false;
    k->turns--;
    hand_out_turns(k);
}

static void wait_for_turn(struct workers *k, struct work *w)
{
    wait_in_row(k, w, true);
    hand_out_turns(k);
    while (!w->has_turn)
        pthread_cond_wait(&w->turn, &k->lock);
    w->since_us = time_mono_us();
}

static void on_finished(void *arg)
{
    struct work *w = arg;
    struct workers *k = w->workers;

    pthread_mutex_lock(&k->lock);
    k->posted--;
    pthread_mutex_unlock(&k->lock);
    k->pending--;
    pthread_cond_destroy(&w->turn);
    w->done(w->arg);
    free(w);
}

static void run(struct workers *k, struct work *w)
{
    pthread_mutex_unlock(&k->lock);
    w->since_us = time_mono_us();
    current = w;
    w->fn(w->arg);
    current = NULL;
    pthread_mutex_lock(&k->lock);
    k->busy--;
    share_of(&k->all, w->whose.group, true)->threads--;
    give_up_turn(k, w);
    k->posted++;
    loop_post(k->loop, on_finished, w);
    pthread_cond_signal(&k->finished);
}

static void *run_thread(void *arg)
{
    struct workers *k = arg;

    /* A thread inherits these from the one that starts it, which may be acting as somebody else in
     * the middle of its work. */
    setfsuid(geteuid());
    setfsgid(getegid());
    (void)setpriority(PRIO_PROCESS, 0, k->nice); /* of this thread alone */
    pthread_mutex_lock(&k->lock);
    for (;;) {
        struct work *w = take_first(&k->ready);
        if (w)
            run(k, w);
        else if (k->closing)
            break;
        else
            pthread_cond_wait(&k->more, &k->lock);
    }
    pthread_mutex_unlock(&k->lock);
    return NULL;
}

/* False when the system has none to give. Signals are the loop's; none may land here. */
static bool start_thread(struct workers *k)
{
    pthread_attr_t attr;
    sigset_t all, before;
    int rc;

    sigfillset(&all);
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_SIZE);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    rc = pthread_create(&k->thread[k->threads], &attr, run_thread, k);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    if (rc != 0)
        return false;
    pthread_setname_np(k->thread[k->threads], "worker");
    k->threads++;
    return true;
}

/* A thread for one more piece of work: there is an idle one, or one can be made. */
static bool has_thread(struct workers *k)
{
    return k->busy < k->threads || (k->threads < THREADS_MAX && start_thread(k));
}

static void begin(struct workers *k, struct work *w)
{
    k->busy++;
    share_of(&k->all, w->whose.group, true)->threads++;
    STAILQ_INSERT_TAIL(&k->ready, w, next);
    pthread_cond_signal(&k->more);
}

static void hand_out_turns(struct workers *k)
{
    while (k->turns < TURNS && k->all.waiting > 0) {
        struct work *w = take_below(k, &k->all, has_thread(k));
        if (!w)
            return;
        k->all.waiting--;
        k->turns++;
        w->has_turn = true;
        if (w->since_us)
            pthread_cond_signal(&w->turn);
        else
            begin(k, w);
    }
}

/* --- for work under way --- */

void work_yield(void)
{
    struct work *w = current;
    struct workers *k = w ? w->workers : NULL;

    if (!w || time_mono_us() - w->since_us < SLICE_US)
        return;
    pthread_mutex_lock(&k->lock);
    if (k->all.waiting > 0) {
        w->has_turn = false;
        k->turns--;
        wait_for_turn(k, w);
    }
    w->since_us = time_mono_us();
    pthread_mutex_unlock(&k->lock);
}

void work_wait_begin(void)
{
    struct work *w = current;

    if (!w)
        return;
    pthread_mutex_lock(&w->workers->lock);
    give_up_turn(w->workers, w);
    pthread_mutex_unlock(&w->workers->lock);
}

void work_wait_end(void)
{
    struct work *w = current;
    int sys = errno; /* of what was waited for */

    if (!w)
        return;
    pthread_mutex_lock(&w->workers->lock);
    wait_for_turn(w->workers, w);
    pthread_mutex_unlock(&w->workers->lock);
    errno = sys;
}

/* --- asking for it --- */

struct workers *workers_new(struct loop *l)
{
    struct workers *k = mem_zalloc(sizeof(*k));

    k->loop = l;
    k->nice = getpriority(PRIO_PROCESS, 0);
    pthread_mutex_init(&k->lock, NULL);
    pthread_cond_init(&k->more, NULL);
    pthread_cond_init(&k->finished, NULL);
    share_init(&k->all, NULL, 0);
    STAILQ_INIT(&k->ready);
    return k;
}

bool workers_wait(struct workers *k)
{
    if (k->pending == 0)
        return false;
    pthread_mutex_lock(&k->lock);
    while (k->posted == 0)
        pthread_cond_wait(&k->finished, &k->lock);
    pthread_mutex_unlock(&k->lock);
    return true;
}

void workers_free(struct workers *k)
{
    assert(k->pending == 0);
    pthread_mutex_lock(&k->lock);
    k->closing = true;
    pthread_cond_broadcast(&k->more);
    pthread_mutex_unlock(&k->lock);
    for (unsigned i = 0; i < k->threads; i++)
        pthread_join(k->thread[i], NULL);
    share_done(&k->all);
    pthread_mutex_destroy(&k->lock);
    pthread_cond_destroy(&k->more);
    pthread_cond_destroy(&k->finished);
    free(k);
}

/* FNV-1a. Two with the same number share their turns, and no more than that. */
static uint64_t number_of(const char *name)
{
    uint64_t n = 0xcbf29ce484222325u;

    for (; name && *name; name++)
        n = (n ^ (uint8_t)*name) * 0x100000001b3u;
    return n;
}

struct whose whose_of(const char *group, const char *member)
{
    return (struct whose){number_of(group), number_of(member)};
}

/* The loop stands still meanwhile, which is better than an answer that never comes. */
static void work_here(struct workers *k, struct work *w)
{
    pthread_mutex_lock(&k->lock);
    struct work *first = take_below(k, &k->all, true);
    assert(first == w); /* nobody else can be waiting: there was no thread for them either */
    k->all.waiting--;
    k->posted++;
    pthread_mutex_unlock(&k->lock);
    w->fn(w->arg);
    loop_post(k->loop, on_finished, w);
}

void loop_work_for(struct loop *l, struct whose whose, loop_fn *work, loop_fn *done, void *arg)
{
    struct workers *k = loop_workers(l);
    struct work *w = mem_zalloc(sizeof(*w));
    bool alone;

    *w = (struct work){.workers = k, .whose = whose, .fn = work, .done = done, .arg = arg};
    pthread_cond_init(&w->turn, NULL);
    k->pending++;
    pthread_mutex_lock(&k->lock);
    wait_in_row(k, w, false);
    hand_out_turns(k);
    alone = k->threads == 0;
    pthread_mutex_unlock(&k->lock);
    if (alone) /* the system has no thread for us at all */
        work_here(k, w);
}

void loop_work(struct loop *l, loop_fn *work, loop_fn *done, void *arg)
{
    loop_work_for(l, (struct whose){0}, work, done, arg);
}
