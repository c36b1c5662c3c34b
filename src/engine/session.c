/*
 * Sessions and executions. A session owns one guest; cells go to its kernel one
 * after the other, commands run beside them. An execution ends once, by one of:
 * the kernel's word, the kernel's death, the command's exit, the sandbox's end.
 * Time and CPU limits and the caller's interrupt all take the same road: SIGINT
 * first, SIGKILL after the grace, and the end tells which it was.
 */
#include "engine/engine_int.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <unistd.h>

#define COMMAND_MAX   (32 * KiB)
#define EVENTS_MAX    10000 /* told one by one; text past that comes in one piece at the end */
#define ERRORS_MAX    64    /* do not count as output: the error that ends a cell is always told */
#define LATE_PARTS    256
#define USAGE_FROM_US 100000 /* shorter executions are not worth a question to the warden */
#define KILL_MS       5000   /* what SIGKILL has not ended by then is beyond init's reach */

enum stop { STOP_NONE, STOP_WALL, STOP_CPU, STOP_MEMORY, STOP_ASKED };

struct exec {
    struct exec *next;
    struct session *session; /* borrowed */
    uint64_t id;
    enum exec_kind kind;
    struct limits limits; /* the pool's, with this call's time */
    char *code;           /* owned, cells only until sent */
    size_t code_len;
    struct exec_callbacks cb;
    void *arg;
    struct timer *timer; /* owned: the time limit, then the grace */
    enum stop stop;
    bool asked_again; /* SIGINT has been sent twice */
    bool killed;      /* SIGKILL has been sent */
    bool ending;      /* the end is known and the warden has been asked what was used */
    bool over;        /* its outcome has been told, and nothing is told after that */
    bool fresh;       /* the interpreter was replaced since the execution before */
    bool raised, interrupted;
    bool memory_error, no_thread;
    int number; /* errno of the error told last */
    int status; /* as of wait(2): of a dead kernel or of the command */
    bool kernel_died;
    int64_t started_us;
    struct box_usage before;
    struct outcome outcome;
    uint64_t told;     /* bytes of output handed on */
    uint64_t left_out; /* bytes of displays that were not, each with a note of its own */
    struct tail {
        char *p; /* owned: ring */
        size_t cap, n, at;
        bool cut;    /* its beginning has been given up */
    } tail[2];       /* stdout, stderr */
    size_t tail_max; /* bytes in both; 0: neither has begun */
    bool tails_told;
    size_t events, errors;    /* told so far */
    struct stream *out, *err; /* owned: a command's */
};

struct late {
    enum event_kind kind;
    struct str text; /* owned */
};

struct session {
    struct pool *pool;     /* borrowed */
    struct guest *guest;   /* owned */
    struct tree *tree;     /* owned */
    struct exec *cells;    /* owned: first is running unless the kernel is starting */
    struct exec *commands; /* owned */
    uint64_t cell_no;
    struct late late[LATE_PARTS];
    size_t late_count, late_bytes;
    struct box_usage used; /* as of the last answer */
    bool restarted;        /* the interpreter ended while no cell ran */
    bool dead;
    bool closed;
    unsigned telling; /* callbacks of the caller on the stack */
    char why[256];
};

static void next_cell(struct session *s);

/* --- telling --- */

/* A callback may do anything, closing this session included. What lies below it on the stack must
 * still be there when it returns, so while one runs session_close() leaves the rest to the loop. */
static void tell(struct exec *x, const struct event *ev)
{
    struct session *s = x->session;

    if (x->over)
        return;
    x->events++;
    s->telling++;
    x->cb.on_event(x->arg, ev);
    s->telling--;
}

static void tell_text(struct exec *x, enum event_kind kind, struct str text, bool late)
{
    struct event ev = {.kind = kind, .text = text, .late = late};

    if (text.n > 0)
        tell(x, &ev);
}

static void tell_output(struct exec *x, enum event_kind kind, struct str text)
{
    if (!x->over)
        x->told += text.n;
    tell_text(x, kind, text, false);
}

static void tell_outcome(struct exec *x)
{
    struct session *s = x->session;

    if (x->over)
        return;
    x->over = true;
    x->outcome.output_dropped = x->outcome.output_bytes - x->told;
    s->telling++;
    x->cb.on_outcome(x->arg, &x->outcome);
    s->telling--;
}

static void tail_put(struct tail *t, size_t cap, struct str s)
{
    assert(cap > 0);
    if (!t->p) {
        t->cap = cap;
        t->p = mem_zalloc(cap);
    }
    t->cut |= t->n + s.n > t->cap;
    if (s.n > t->cap)
        s = (struct str){s.p + s.n - t->cap, t->cap};
    size_t first = t->cap - t->at < s.n ? t->cap - t->at : s.n;
    memcpy(t->p + t->at, s.p, first);
    memcpy(t->p, s.p + first, s.n - first);
    t->at = (t->at + s.n) % t->cap;
    t->n = t->n + s.n < t->cap ? t->n + s.n : t->cap;
}

/* Both streams' rings share what the beginning has left of the budget, and a quarter of it where
 * displays have left less: the longer ring gives up what is too much. */
static void keep_tail(struct exec *x, enum event_kind kind, struct str text)
{
    uint64_t budget = x->limits.output_bytes;
    uint64_t least = budget / 4 ? budget / 4 : 1;
    struct tail *t = x->tail;

    if (x->tail_max == 0)
        x->tail_max = (size_t)(x->told + least < budget ? budget - x->told : least);
    tail_put(&t[kind == EVENT_STDERR], x->tail_max, text);
    if (t[0].n + t[1].n > x->tail_max) {
        struct tail *longer = t[0].n > t[1].n ? &t[0] : &t[1];
        longer->n -= t[0].n + t[1].n - x->tail_max;
        longer->cut = true;
    }
}

/* Where to cut text of which only n bytes are wanted: before a character, not within. */
static size_t cut_at(struct str text, size_t n)
{
    for (size_t back = 0; back <= 3 && back < n; back++)
        if (((unsigned char)text.p[n - back] & 0xc0) != 0x80)
            return n - back;
    return n; /* not UTF-8 */
}

/* Three quarters of the budget are the beginning, told as it comes; past that the end is kept in
 * rings and told last. Once over the budget the rest is read slowly: it costs time and says
 * nothing. */
static void keep_output(struct exec *x, enum event_kind kind, struct str text)
{
    uint64_t budget = x->limits.output_bytes;
    uint64_t head = budget - budget / 4;
    bool past = x->tail_max > 0 || x->told >= head || x->events >= EVENTS_MAX;
    size_t now = past                       ? 0
                 : text.n <= head - x->told ? text.n
                                            : cut_at(text, (size_t)(head - x->told));

    x->outcome.output_bytes += text.n;
    tell_output(x, kind, (struct str){text.p, now});
    if (now == text.n)
        return;
    keep_tail(x, kind, (struct str){text.p + now, text.n - now});
    if (x->tail[0].cut || x->tail[1].cut) {
        x->outcome.limits_hit |= IN(LIMIT_OUTPUT);
        if (x->kind == EXEC_CELL)
            guest_throttle(x->session->guest, true);
        stream_throttle(x->out, true);
        stream_throttle(x->err, true);
    }
}

/* The ring's bytes in a row, into ret of t->n bytes. */
static void tail_flatten(const struct tail *t, char *ret)
{
    size_t from = (t->at + t->cap - t->n) % t->cap;
    size_t first = t->cap - from < t->n ? t->cap - from : t->n;

    memcpy(ret, t->p + from, first);
    memcpy(ret + first, t->p, t->n - first);
}

/* A ring that has given up its beginning may begin within a character. */
static void tail_trim(struct tail *t)
{
    for (int i = 0; i < 3 && t->cut && t->n > 0; i++) {
        unsigned char c = (unsigned char)t->p[(t->at + t->cap - t->n) % t->cap];
        if ((c & 0xc0) != 0x80)
            break;
        t->n--;
    }
}

/* What the rings hold, after a line that says how much is missing before it. */
static void tell_tails(struct exec *x)
{
    struct tail *t = x->tail;
    uint64_t missing;
    char note[128];

    if (x->tails_told)
        return;
    x->tails_told = true;
    tail_trim(&t[0]);
    tail_trim(&t[1]);
    missing = x->outcome.output_bytes - x->told - x->left_out - t[0].n - t[1].n;
    if (missing > 0) {
        snprintf(note, sizeof(note), "%llu bytes of output left out here",
                 (unsigned long long)missing);
        tell_text(x, EVENT_STATUS, str_of(note), false);
    }
    for (int i = 0; i < 2; i++) {
        AUTO_FREE char *flat = t[i].n ? mem_zalloc(t[i].n) : NULL;
        if (!flat)
            continue;
        tail_flatten(&t[i], flat);
        tell_output(x, i ? EVENT_STDERR : EVENT_STDOUT, (struct str){flat, t[i].n});
    }
}

/* --- output between executions --- */

static void keep_late(struct session *s, enum event_kind kind, struct str text)
{
    if (s->late_count == LATE_PARTS || s->late_bytes >= LATE_MAX)
        return;
    if (text.n > LATE_MAX - s->late_bytes)
        text.n = LATE_MAX - s->late_bytes;
    s->late[s->late_count++] = (struct late){
        kind, {mem_strndup(text), text.n}
    };
    s->late_bytes += text.n;
}

static void tell_late(struct session *s, struct exec *x)
{
    for (size_t i = 0; i < s->late_count; i++) {
        if (x)
            tell_text(x, s->late[i].kind, s->late[i].text, true);
        free((char *)s->late[i].text.p);
    }
    s->late_count = s->late_bytes = 0;
}

/* --- the end of an execution --- */

static void exec_free(struct exec *x)
{
    if (x->timer)
        timer_free(x->timer);
    stream_free(x->out);
    stream_free(x->err);
    free(x->tail[0].p);
    free(x->tail[1].p);
    free(x->code);
    free(x);
}

static void unlink_exec(struct exec *x)
{
    struct session *s = x->session;
    struct exec **at = x->kind == EXEC_CELL ? &s->cells : &s->commands;

    while (*at != x)
        at = &(*at)->next;
    *at = x->next;
}

/* Which volume is full? The one that has no room for a page more. */
static void find_full(struct exec *x)
{
    const struct {
        int dir;
        enum limit limit;
    } volumes[] = {
        {guest_space(x->session->guest), LIMIT_DISK},
        {guest_tmp(x->session->guest),   LIMIT_TMP },
        {guest_shm(x->session->guest),   LIMIT_TMP },
    };

    for (size_t i = 0; i < COUNT(volumes); i++) {
        struct statfs fs;
        if (fstatfs(volumes[i].dir, &fs) == 0 && (fs.f_bavail == 0 || fs.f_ffree == 0))
            x->outcome.limits_hit |= IN(volumes[i].limit);
    }
}

/* Limits that show as an error of the code's own. */
static void blame_limits(struct exec *x, const struct box_usage *now)
{
    struct outcome *o = &x->outcome;

    if (x->number == ENOSPC || x->number == EDQUOT || x->kind == EXEC_COMMAND)
        find_full(x);
    if (x->number == ENOSPC && !(o->limits_hit & (IN(LIMIT_DISK) | IN(LIMIT_TMP))))
        o->limits_hit |= IN(LIMIT_DISK); /* what did not fit has been cleared away since */
    if (x->number == EFBIG)
        o->limits_hit |= IN(LIMIT_DISK);
    if (x->number == EMFILE || x->number == ENFILE)
        o->limits_hit |= IN(LIMIT_OPEN_FILES);
    if (now->pid_hits > x->before.pid_hits || x->no_thread || x->number == EAGAIN)
        o->limits_hit |= IN(LIMIT_PIDS);
    if (now->oom_kills > x->before.oom_kills || x->memory_error || x->number == ENOMEM)
        o->limits_hit |= IN(LIMIT_MEMORY);
}

static enum outcome_status judge(struct exec *x, const struct box_usage *now)
{
    bool oom = now->oom_kills > x->before.oom_kills || x->stop == STOP_MEMORY;
    bool ended_badly = x->kernel_died || (x->kind == EXEC_COMMAND && x->status != 0);

    if (x->stop == STOP_WALL || x->stop == STOP_CPU)
        return OUTCOME_TIMEOUT;
    if (x->stop == STOP_ASKED)
        return OUTCOME_INTERRUPTED;
    if (oom && ended_badly)
        return OUTCOME_MEMORY;
    if (x->kernel_died || (x->kind == EXEC_COMMAND && WIFSIGNALED(x->status)))
        return OUTCOME_DIED;
    if (x->raised || x->interrupted || ended_badly)
        return OUTCOME_RAISED;
    return OUTCOME_OK;
}

static void on_file(void *arg, const struct event *ev)
{
    tell(arg, ev);
}

static void finish(struct exec *x, const struct box_usage *now)
{
    struct session *s = x->session;
    struct outcome *o = &x->outcome;
    static const uint32_t limit_of[] = {[STOP_WALL] = IN(LIMIT_WALL),
                                        [STOP_CPU] = IN(LIMIT_CPU),
                                        [STOP_MEMORY] = IN(LIMIT_MEMORY),
                                        [STOP_ASKED] = 0};

    tell_tails(x);
    o->status = judge(x, now);
    o->limits_hit |= limit_of[x->stop];
    if (o->status != OUTCOME_OK)
        blame_limits(x, now);
    o->state_lost = x->kernel_died;
    o->exit_code = WIFSIGNALED(x->status) ? 128 + WTERMSIG(x->status) : WEXITSTATUS(x->status);
    o->limits_hit |=
        tree_scan(s->tree, guest_space(s->guest), guest_uid(s->guest), &x->limits, on_file, x);
    o->wall_us = (uint64_t)(time_mono_us() - x->started_us);
    o->cpu_us = now->cpu_us > x->before.cpu_us ? now->cpu_us - x->before.cpu_us : 0;
    o->memory_peak_bytes = now->memory_peak_bytes;
    outcome_say(o, &x->limits, x->status, "");
    o->state_lost |= x->fresh;
    unlink_exec(x);
    tell_outcome(x);
    exec_free(x);
}

/* Asks the warden what the box has used, where the answer matters; the rest is finish(). */
static void end(struct exec *x)
{
    bool plain =
        !x->raised && !x->interrupted && !x->kernel_died && x->status == 0 && x->stop == STOP_NONE;
    struct session *s = x->session;

    if (x->ending)
        return;
    x->ending = true;
    timer_clear(x->timer);
    if (plain && time_mono_us() - x->started_us < USAGE_FROM_US) {
        struct box_usage unknown = x->before;
        unknown.memory_peak_bytes = 0;
        finish(x, &unknown);
        next_cell(s);
        return;
    }
    guest_ask_usage(s->guest);
}

static uint64_t ran_us(const struct exec *x)
{
    return x->started_us ? (uint64_t)(time_mono_us() - x->started_us) : 0;
}

static void tell_lost(struct exec *x, const char *why)
{
    if (x->over)
        return;
    x->ending = true;
    tell_tails(x);
    x->outcome.status = OUTCOME_SESSION_LOST;
    x->outcome.state_lost = true;
    x->outcome.wall_us = ran_us(x);
    outcome_say(&x->outcome, &x->limits, 0, why);
    tell_outcome(x);
}

/* An execution stays in its list until its outcome is told, so that a session_close() from the
 * callback finds it there. */
static void lose_all(struct exec **list, const char *why)
{
    for (struct exec *x; (x = *list);) {
        tell_lost(x, why);
        assert(*list == x);
        *list = x->next;
        exec_free(x);
    }
}

/* A cell that was given up while it still waited for its turn. */
static void cancel(struct exec *x)
{
    struct session *s = x->session;

    x->outcome.status = OUTCOME_INTERRUPTED;
    outcome_say(&x->outcome, &x->limits, 0, "");
    unlink_exec(x);
    tell_outcome(x);
    exec_free(x);
    next_cell(s);
}

/* --- stopping --- */

static uint64_t target(const struct exec *x)
{
    return x->kind == EXEC_CELL ? 0 : x->id;
}

static void kill_now(struct exec *x)
{
    x->killed = true;
    guest_signal(x->session->guest, target(x), SIGKILL);
    timer_set(x->timer, KILL_MS);
}

static void stop(struct exec *x, enum stop why)
{
    if (x->stop != STOP_NONE || x->ending)
        return;
    x->stop = why;
    if (why == STOP_MEMORY)
        return kill_now(x);
    guest_signal(x->session->guest, target(x), SIGINT);
    timer_set(x->timer, x->limits.grace_ms / 2);
}

/* The first SIGINT may have come an instant before the code began, and then it was nobody's. */
static void ask_again(struct exec *x)
{
    x->asked_again = true;
    guest_signal(x->session->guest, target(x), SIGINT);
    timer_set(x->timer, x->limits.grace_ms - x->limits.grace_ms / 2);
}

static void on_timer(void *arg)
{
    struct exec *x = arg;

    if (x->over)
        return;
    if (!x->started_us)
        cancel(x);
    else if (x->stop == STOP_NONE)
        stop(x, STOP_WALL);
    else if (!x->asked_again)
        ask_again(x);
    else if (!x->killed)
        kill_now(x);
    else
        guest_end(x->session->guest, "it does not end when it is killed");
}

void exec_interrupt(struct exec *x)
{
    if (x->started_us)
        return stop(x, STOP_ASKED);
    if (x->over)
        return;
    x->stop = STOP_ASKED; /* nothing to stop yet, and another cell may be running */
    timer_set(x->timer, 0);
}

/* --- the guest's word --- */

static struct exec *running_cell(struct session *s)
{
    return s->cells && s->cells->started_us ? s->cells : NULL;
}

static void on_idle(void *arg)
{
    struct session *s = arg;

    next_cell(s);
}

static void on_text(void *arg, enum event_kind kind, struct str text)
{
    struct session *s = arg;
    struct exec *x = running_cell(s);

    if (x)
        keep_output(x, kind, text);
    else
        keep_late(s, kind, text);
}

static size_t bundle_bytes(const struct event *ev)
{
    size_t sum = 0;

    for (size_t i = 0; i < ev->bundle.count; i++)
        sum += ev->bundle.part[i].data.n;
    return sum;
}

static void on_event(void *arg, const struct event *ev)
{
    struct session *s = arg;
    struct exec *x = running_cell(s);
    size_t bytes = bundle_bytes(ev);
    char note[128];

    if (!x || x->ending)
        return; /* a picture drawn by a thread when nobody asked */
    if (ev->kind == EVENT_ERROR) {
        x->raised = true;
        x->memory_error = str_is(ev->error.type, "MemoryError");
        x->no_thread = str_is(ev->error.message, "can't start new thread"); /* has no errno */
    }
    x->outcome.output_bytes += bytes;
    if (ev->kind == EVENT_ERROR ? x->errors++ >= ERRORS_MAX : x->events >= EVENTS_MAX) {
        x->outcome.limits_hit |= IN(LIMIT_OUTPUT);
        x->left_out += bytes;
        return;
    }
    if (bytes > x->limits.output_bytes || x->told > x->limits.output_bytes - bytes) {
        x->outcome.limits_hit |= IN(LIMIT_OUTPUT);
        x->left_out += bytes;
        snprintf(note, sizeof(note), "a %s of %zu bytes left out here", event_kind_name(ev->kind),
                 bytes);
        return tell_text(x, EVENT_STATUS, str_of(note), false);
    }
    x->told += bytes;
    tell(x, ev);
}

static void on_errno(void *arg, int number)
{
    struct exec *x = running_cell(arg);

    if (x)
        x->number = number;
}

static void on_done(void *arg, uint64_t status)
{
    struct exec *x = running_cell(arg);

    if (!x)
        return;
    x->raised |= status == 1;
    x->interrupted = status == 2;
    /* A kill on its way must find this cell still here, not the next one. */
    if (!x->killed)
        end(x);
}

static void on_kernel_exit(void *arg, int status)
{
    struct session *s = arg;
    struct exec *x = running_cell(s);

    if (!x || x->ending) {
        s->restarted = true;
        return;
    }
    x->kernel_died = true;
    x->status = status;
    end(x);
}

static struct exec *find_command(struct session *s, uint64_t id)
{
    struct exec *x = s->commands;

    while (x && x->id != id)
        x = x->next;
    return x;
}

static void on_command_exit(void *arg, uint64_t id, int status)
{
    struct exec *x = find_command(arg, id);

    if (!x)
        return;
    x->status = status;
    stream_drain(x->out);
    stream_drain(x->err);
    stream_flush(x->out);
    stream_flush(x->err);
    end(x);
}

static void on_trip(void *arg, enum wire_trip which)
{
    struct session *s = arg;
    struct exec *x = running_cell(s) ? running_cell(s) : s->commands;

    /* Nothing runs, yet memory does: of what a cell left behind, the interpreter is the root. */
    if (!x && which == TRIP_MEMORY)
        guest_signal(s->guest, 0, SIGKILL);
    if (!x)
        return;
    if (which == TRIP_PIDS)
        x->outcome.limits_hit |= IN(LIMIT_PIDS);
    else
        stop(x, which == TRIP_CPU ? STOP_CPU : STOP_MEMORY);
}

/* Everything that waits for this answer, however many asked. */
static void on_usage(void *arg, const struct box_usage *u)
{
    struct session *s = arg;
    struct exec *cell = s->cells;

    s->used = *u;
    if (cell && cell->ending) {
        finish(cell, u);
        assert(s->cells != cell);
        next_cell(s);
    }
    for (struct exec *x = s->commands, *next; x; x = next) {
        next = x->next;
        if (x->ending)
            finish(x, u);
    }
}

static void on_dead(void *arg, const char *why)
{
    struct session *s = arg;

    s->dead = true;
    snprintf(s->why, sizeof(s->why), "%s", why);
    lose_all(&s->cells, why);
    lose_all(&s->commands, why);
}

static void ignore_closed(void *arg)
{
    (void)arg; /* sessions are made of closed boxes */
}

static const struct guest_owner session_owner = {
    .on_closed = ignore_closed,
    .on_idle = on_idle,
    .on_text = on_text,
    .on_event = on_event,
    .on_errno = on_errno,
    .on_done = on_done,
    .on_kernel_exit = on_kernel_exit,
    .on_command_exit = on_command_exit,
    .on_trip = on_trip,
    .on_usage = on_usage,
    .on_dead = on_dead,
};

/* --- starting --- */

static void begin(struct exec *x)
{
    struct session *s = x->session;

    x->started_us = time_mono_us();
    x->before = s->used;
    timer_set(x->timer, x->limits.wall_ms);
    /* One watch at a time, and a cell's comes first. Memory only where no cgroup counts it. */
    if (x->kind == EXEC_COMMAND && running_cell(s))
        return;
    if (x->limits.cpu_ms || !guest_in_cgroup(s->guest))
        guest_watch(s->guest, x->limits.cpu_ms * 1000,
                    guest_in_cgroup(s->guest) ? 0 : x->limits.memory_bytes);
}

static void tell_restart(struct session *s, struct exec *x)
{
    static const char note[] = "the interpreter ended between two executions; variables are lost, "
                               "files are kept";

    x->fresh = s->restarted;
    s->restarted = false;
    if (x->fresh)
        tell_text(x, EVENT_STATUS, str_of(note), false);
}

static void next_cell(struct session *s)
{
    struct exec *x = s->cells;

    if (s->closed || !x || x->started_us || x->stop != STOP_NONE || !guest_takes_cell(s->guest))
        return;
    guest_throttle(s->guest, false);
    tell_late(s, x);
    tell_restart(s, x);
    if (x->over || x->stop != STOP_NONE) /* a callback has closed the session or given this up */
        return;
    begin(x);
    if (guest_cell(s->guest, x->id, (struct str){x->code, x->code_len}, ++s->cell_no) == 0) {
        free(x->code);
        x->code = NULL;
    }
}

static void on_command_text(void *arg, enum event_kind kind, struct str text)
{
    keep_output(arg, kind, text);
}

static int start_command(struct exec *x)
{
    struct loop *l = pool_engine(x->session->pool)->loop;
    AUTO_CLOSE int out_theirs = -1;
    AUTO_CLOSE int err_theirs = -1;
    int p[2];

    if (guest_pipe(p) < 0)
        return -1;
    out_theirs = p[1];
    x->out = stream_new(l, p[0], EVENT_STDOUT, on_command_text, x);
    if (guest_pipe(p) < 0)
        return -1;
    err_theirs = p[1];
    x->err = stream_new(l, p[0], EVENT_STDERR, on_command_text, x);
    begin(x);
    return guest_command(x->session->guest, x->id, (struct str){x->code, x->code_len}, out_theirs,
                         err_theirs);
}

static int check(struct session *s, const struct exec_config *c, struct err *e)
{
    size_t max = c->kind == EXEC_CELL ? EXEC_CODE_MAX : COMMAND_MAX;
    size_t waiting = 0;

    if (s->dead)
        return err_set(e, ERR_CALLER, "the session is gone: %s", s->why);
    if (c->code.n > max)
        return err_set(e, ERR_LIMIT, "the code is longer than %zu bytes", max);
    if (str_utf8_len(c->code) != c->code.n || (c->code.n && memchr(c->code.p, '\0', c->code.n)))
        return err_set(e, ERR_CALLER, "the code is not UTF-8 text");
    for (struct exec *x = s->cells; x; x = x->next)
        waiting++;
    if (c->kind == EXEC_CELL && waiting >= QUEUE_MAX)
        return err_set(e, ERR_LIMIT, "%d cells are waiting already", QUEUE_MAX);
    return 0;
}

static void start_later(void *arg)
{
    struct session *s = arg;

    if (s->guest) /* not closed meanwhile */
        next_cell(s);
}

struct exec *exec_start(struct session *s, const struct exec_config *config,
                        const struct exec_callbacks *cb, void *arg, struct err *e)
{
    struct engine *en = pool_engine(s->pool);
    struct exec **at = config->kind == EXEC_CELL ? &s->cells : &s->commands;
    struct exec *x;

    if (check(s, config, e) < 0)
        return NULL;
    x = mem_zalloc(sizeof(*x));
    *x = (struct exec){
        .session = s,
        .id = en->next_id++,
        .kind = config->kind,
        .limits = *pool_limits(s->pool),
        .code = mem_strndup(config->code),
        .code_len = config->code.n,
        .cb = *cb,
        .arg = arg,
    };
    x->timer = timer_new(en->loop, on_timer, x);
    if (config->wall_ms)
        x->limits.wall_ms = config->wall_ms;
    while (*at)
        at = &(*at)->next;
    *at = x;
    if (config->kind == EXEC_CELL) {
        loop_later(en->loop, start_later, s);
    } else if (start_command(x) < 0) {
        unlink_exec(x);
        exec_free(x);
        err_set(e, ERR_HOST, "the command could not be started");
        return NULL;
    }
    return x;
}

/* --- sessions --- */

struct session *session_new(struct pool *p, struct guest *g)
{
    struct session *s = mem_zalloc(sizeof(*s));

    *s = (struct session){.pool = p, .guest = g, .tree = tree_new()};
    guest_set_owner(g, &session_owner, s);
    return s;
}

static void free_later(void *arg)
{
    free(arg);
}

static void dispose(void *arg)
{
    struct session *s = arg;

    for (struct exec *x; (x = s->cells);) {
        s->cells = x->next;
        exec_free(x);
    }
    for (struct exec *x; (x = s->commands);) {
        s->commands = x->next;
        exec_free(x);
    }
    tell_late(s, NULL);
    guest_free(s->guest);
    tree_free(s->tree);
    s->guest = NULL;
    /* A start_later() may still be on its way to it. */
    loop_later(pool_engine(s->pool)->loop, free_later, s);
}

void session_close(struct session *s)
{
    static const char why[] = "the session was closed";

    if (s->closed)
        return;
    s->closed = s->dead = true;
    snprintf(s->why, sizeof(s->why), "%s", why);
    for (struct exec *x = s->cells; x; x = x->next)
        tell_lost(x, why);
    for (struct exec *x = s->commands; x; x = x->next)
        tell_lost(x, why);
    if (s->telling > 0)
        loop_later(pool_engine(s->pool)->loop, dispose, s);
    else
        dispose(s);
}

struct pool *session_pool(struct session *s)
{
    return s->pool;
}

/* Files the host puts there are no news to the next execution. */
int workspace_put(struct session *s, struct str path, int src, struct err *e)
{
    if (space_put(guest_space(s->guest), guest_uid(s->guest), path, src, e) < 0)
        return -1;
    tree_scan(s->tree, guest_space(s->guest), guest_uid(s->guest), pool_limits(s->pool), NULL,
              NULL);
    return 0;
}

int workspace_get(struct session *s, struct str path, struct err *e)
{
    return space_get(guest_space(s->guest), guest_uid(s->guest), path, e);
}
