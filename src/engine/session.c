/*
 * Sessions and executions. A session owns one guest; cells go to its kernel one after the other,
 * commands run beside them. exec_end.c has the end of an execution.
 */
#include "engine/lend_int.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define COMMAND_MAX (32 * KiB)

void exec_stop_clock(struct exec *x, bool stopped)
{
    int64_t now = time_mono_us();

    if (x->session->far && !x->over)
        return borrowed_order(x->session->far, LEND_CLOCK, x->id, stopped);
    if (x->stopped == stopped || !x->started_us || x->over || x->ending || x->stop != STOP_NONE)
        return;
    x->stopped = stopped;
    if (stopped) {
        x->spent_ms += (uint64_t)(now - x->clock_us) / 1000;
        timer_clear(x->timer);
        return;
    }
    x->clock_us = now;
    timer_set(x->timer, x->limits.wall_ms > x->spent_ms ? x->limits.wall_ms - x->spent_ms : 0);
}

/* --- the guest's word --- */

static struct exec *running_cell(struct session *s)
{
    return s->cells && s->cells->started_us ? s->cells : NULL;
}

static void on_idle(void *arg)
{
    struct session *s = arg;

    session_next_cell(s);
}

static void on_text(void *arg, enum event_kind kind, struct str text)
{
    struct session *s = arg;
    struct exec *x = running_cell(s);

    if (x)
        exec_output(x, kind, text);
    else
        session_keep_late(s, kind, text);
}

static void on_event(void *arg, const struct event *ev)
{
    struct exec *x = running_cell(arg);

    if (!x || x->ending)
        return; /* a picture drawn by a thread when nobody asked */
    if (ev->kind == EVENT_ERROR) {
        x->raised = true;
        x->memory_error = str_is(ev->error.type, "MemoryError");
        x->no_thread = str_is(ev->error.message, "can't start new thread"); /* has no errno */
    }
    exec_event(x, ev);
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
        exec_end(x);
}

static void on_kernel_exit(void *arg, int status)
{
    struct session *s = arg;
    struct exec *x = running_cell(s);

    if (!x || x->ending) {
        s->restarted |= !s->restarting;
        s->restarting = false;
        return;
    }
    x->kernel_died = true;
    x->status = status;
    exec_end(x);
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
    exec_end(x);
}

static void on_trip(void *arg, enum wire_trip which)
{
    struct session *s = arg;
    struct exec *x = running_cell(s) ? running_cell(s) : s->commands;

    /* Nothing runs, yet memory does: of what a cell left behind, the interpreter is the root.
     * The next cell waits for its successor. */
    if (!x && which == TRIP_MEMORY)
        guest_restart(s->guest);
    if (!x)
        return;
    if (which == TRIP_PIDS)
        x->outcome.limits_hit |= IN(LIMIT_PIDS);
    else
        exec_stop(x, which == TRIP_CPU ? STOP_CPU : STOP_MEMORY);
}

/* Everything that waits for this answer, however many asked. */
static void on_usage(void *arg, const struct box_usage *u)
{
    struct session *s = arg;
    struct exec *cell = s->cells;

    s->used = *u;
    if (cell && cell->ending && !cell->scan)
        exec_finish(cell, u);
    for (struct exec *x = s->commands, *next; x; x = next) {
        next = x->next;
        if (x->ending && !x->scan)
            exec_finish(x, u);
    }
}

void session_lose(struct session *s, const char *why)
{
    s->dead = true;
    snprintf(s->why, sizeof(s->why), "%s", why);
    execs_lose(&s->cells, why);
    execs_lose(&s->commands, why);
    if (!s->closed && s->on_lost)
        s->on_lost(s->lost_arg, s->why);
}

static void on_dead(void *arg, const char *why)
{
    session_lose(arg, why);
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

    x->started_us = x->clock_us = time_mono_us();
    x->before = s->used;
    x->counts_cpu = guest_cpu_us(s->guest, &x->cpu_before_us);
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
        exec_tell_text(x, EVENT_STATUS, str_of(note), false);
}

void session_next_cell(struct session *s)
{
    struct exec *x = s->cells;

    if (s->closed || !x || x->started_us || x->stop != STOP_NONE || !guest_takes_cell(s->guest))
        return;
    guest_throttle(s->guest, false);
    session_tell_late(s, x);
    tell_restart(s, x);
    if (x->over || x->stop != STOP_NONE) /* a callback has closed the session or given this up */
        return;
    begin(x);
    if (guest_cell(s->guest, x->id, (struct str){x->code, x->code_len}, ++s->cell_no,
                   buf_str(&x->env), &x->taken) == 0) {
        free(x->code);
        x->code = NULL;
    }
}

static void on_command_text(void *arg, enum event_kind kind, struct str text)
{
    exec_output(arg, kind, text);
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
    x->taken = true;
    return guest_command(x->session->guest, x->id, (struct str){x->code, x->code_len},
                         buf_str(&x->env), out_theirs, err_theirs);
}

static int check_env(const struct exec_config *c, struct err *e)
{
    size_t bytes = 0;

    if (c->env_count > EXEC_ENV_MAX)
        return err_set(e, ERR_LIMIT, "more than %d environment variables", EXEC_ENV_MAX);
    for (size_t i = 0; i < c->env_count; i++) {
        struct str name = c->env[i].name, value = c->env[i].value;
        if (name.n == 0 || memchr(name.p, '=', name.n) || memchr(name.p, '\0', name.n) ||
            (value.n && memchr(value.p, '\0', value.n)))
            return err_set(e, ERR_CALLER, "not a name or value of an environment variable");
        bytes += name.n + value.n + 2;
    }
    if (bytes > EXEC_ENV_BYTES)
        return err_set(e, ERR_LIMIT, "more than %zu bytes of environment variables",
                       EXEC_ENV_BYTES);
    return 0;
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
        return err_set(e, ERR_BUSY, "%d cells are waiting already", QUEUE_MAX);
    return check_env(c, e);
}

static void put_env(struct buf *b, const struct exec_config *c)
{
    buf_init(b, EXEC_ENV_BYTES + (size_t)EXEC_ENV_MAX * 16);
    for (size_t i = 0; i < c->env_count; i++) {
        AUTO_FREE char *line = mem_zalloc(c->env[i].name.n + c->env[i].value.n + 2);
        size_t n = c->env[i].name.n;
        memcpy(line, c->env[i].name.p, n);
        line[n++] = '=';
        if (c->env[i].value.n > 0)
            memcpy(line + n, c->env[i].value.p, c->env[i].value.n);
        wire_put(b, TAG_ENV, (struct str){line, n + c->env[i].value.n});
    }
}

static void start_later(void *arg)
{
    struct session *s = arg;

    if (s->guest) /* not closed meanwhile */
        session_next_cell(s);
}

/* Limits of time are the other node's to keep. */
static void start_far(struct exec *x, const struct exec_config *config)
{
    struct exec_config whole = *config;

    whole.wall_ms = x->limits.wall_ms;
    x->started_us = time_mono_us();
    x->taken = true; /* as far as can be known here */
    borrowed_start(x->session->far, x->id, &whole);
}

struct exec *session_find(struct session *s, uint64_t id)
{
    struct exec *x = s->cells;

    while (x && x->id != id)
        x = x->next;
    return x ? x : find_command(s, id);
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
    if (config->wall_ms)
        x->limits.wall_ms = config->wall_ms;
    while (*at)
        at = &(*at)->next;
    *at = x;
    if (s->far) {
        start_far(x, config);
        return x;
    }
    put_env(&x->env, config);
    x->timer = timer_new(en->loop, exec_on_timer, x);
    if (config->kind == EXEC_CELL) {
        loop_later(en->loop, start_later, s);
    } else if (start_command(x) < 0) {
        /* Its init is gone, or descriptors are short here: in another moment it may work. */
        err_set(e, ERR_BUSY, "the sandbox takes no command: %s", strerror(errno));
        e->retry_s = 1;
        exec_unlink(x);
        exec_free(x);
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

struct session *session_new_borrowed(struct pool *p, struct borrowed *b)
{
    struct session *s = mem_zalloc(sizeof(*s));

    *s = (struct session){.pool = p, .far = b};
    return s;
}

static void free_later(void *arg)
{
    free(arg);
}

static void dispose(void *arg)
{
    struct session *s = arg;
    bool is_idle = !s->cells && !s->commands;

    for (struct exec *x; (x = s->cells);) {
        s->cells = x->next;
        exec_free(x);
    }
    for (struct exec *x; (x = s->commands);) {
        s->commands = x->next;
        exec_free(x);
    }
    session_tell_late(s, NULL);
    if (s->far)
        borrowed_close(take_ptr(&s->far));
    else
        pool_take_back(s->pool, take_ptr(&s->guest), is_idle);
    tree_free(s->tree);
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
        exec_tell_lost(x, why);
    for (struct exec *x = s->commands; x; x = x->next)
        exec_tell_lost(x, why);
    if (s->telling > 0)
        loop_later(pool_engine(s->pool)->loop, dispose, s);
    else
        dispose(s);
}

void session_works_for(struct session *s, struct whose whose)
{
    s->whose = whose;
}

void session_on_lost(struct session *s, void (*fn)(void *arg, const char *why), void *arg)
{
    s->on_lost = fn;
    s->lost_arg = arg;
}

void session_on_recall(struct session *s, void (*fn)(void *arg), void *arg)
{
    s->on_recall = fn;
    s->recall_arg = arg;
}

void session_restart(struct session *s)
{
    struct exec *x = running_cell(s);

    if (s->dead)
        return;
    if (s->far)
        return borrowed_order(s->far, LEND_RESTART, 0, true);
    s->restarting = guest_state(s->guest) == GUEST_IDLE && (!x || x->ending);
    guest_restart(s->guest);
}

int session_take_listener(struct session *s)
{
    return s->far ? -1 : guest_take_listener(s->guest);
}

/* --- its files --- */

static struct space space_of(struct session *s)
{
    if (s->far)
        return (struct space){.dir = -1, .far = &s->far->files};
    return (struct space){guest_space(s->guest), guest_uid(s->guest), NULL};
}

int workspace_put(struct session *s, struct str path, int src, struct err *e)
{
    struct space sp = space_of(s);

    if (space_put(&sp, path, src, 0, 0, e) < 0)
        return -1;
    workspace_note(s, path);
    return 0;
}

int workspace_get(struct session *s, struct str path, struct err *e)
{
    struct space sp = space_of(s);

    return space_get(&sp, path, e);
}

int workspace_dup(struct session *s, struct space *ret, struct err *e)
{
    if (s->dead)
        return err_set(e, ERR_CONFLICT, "the session is gone: %s", s->why);
    *ret = space_of(s);
    if (s->far) {
        borrowed_ref(s->far);
        return 0;
    }
    ret->dir = fcntl(ret->dir, F_DUPFD_CLOEXEC, 3);
    return ret->dir < 0 ? err_sys(e, "open the workspace") : 0;
}

int home_dup(struct session *s, struct space ret[HOME_ROOTS], struct err *e)
{
    ret[HOME_WORKSPACE] = ret[HOME_TMP] = (struct space){.dir = -1};
    if (workspace_dup(s, &ret[HOME_WORKSPACE], e) < 0)
        return -1;
    if (s->far) /* there, both are reached by the first */
        return 0;
    ret[HOME_TMP] =
        (struct space){fcntl(guest_tmp(s->guest), F_DUPFD_CLOEXEC, 3), guest_uid(s->guest), NULL};
    if (ret[HOME_TMP].dir >= 0)
        return 0;
    err_sys(e, "open the home");
    space_close(&ret[HOME_WORKSPACE]);
    return -1;
}

struct look *workspace_look(struct session *s)
{
    if (s->dead)
        return NULL;
    return s->far ? look_new_far(borrowed_files(s->far)) : look_new(s->tree);
}

bool workspace_is_bare(const struct session *s)
{
    return !s->dead && !s->far && tree_is_bare(s->tree, guest_space(s->guest));
}

static void tell_far(struct look *k, void (*fn)(void *arg, const struct event *ev), void *arg)
{
    struct str seen = buf_str(look_seen(k));
    struct wire_field f;
    struct event ev;

    while (wire_next(&seen, &f) == 1)
        if (lend_take_event(f.data, &ev) == 0)
            fn(arg, &ev);
    look_free(k);
}

void workspace_tell(struct session *s, struct look *k,
                    void (*fn)(void *arg, const struct event *ev), void *arg)
{
    if (s->dead)
        look_free(k);
    else if (s->far)
        tell_far(k, fn, arg);
    else
        tree_tell(s->tree, k, pool_limits(s->pool), fn, arg);
}

void workspace_note(struct session *s, struct str path)
{
    if (s->far && !s->dead)
        borrowed_note(s->far, path);
    else if (!s->dead)
        tree_note(s->tree, guest_space(s->guest), guest_uid(s->guest), path);
}
