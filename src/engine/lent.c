/*
 * A sandbox of this node for a session that another node has. What its home says becomes calls of
 * this room, as if the session were ours; what comes of them goes back. It ends with the line, or
 * when its home gives no sign of life: then the sandbox is closed at once, as its home counts it as
 * gone, too.
 */
#include "engine/lent_int.h"

#include <stdlib.h>

#define EXECS_MAX 256
#define TEXT_PART (1 * MiB) /* of an event's text */
#define TICKS     4

struct lent_exec {
    struct lent_exec *next;
    struct lent *lent; /* borrowed */
    uint64_t id;       /* as home has it */
    struct exec *x;
    bool held; /* by home */
};

/* --- its life --- */

static void free_later(void *arg)
{
    free(arg);
}

void lent_settle(struct lent *t)
{
    if (t->ended && t->pending == 0)
        loop_later(t->loop, free_later, t);
}

void lent_close(struct lent *t)
{
    struct session *s = take_ptr(&t->session);

    if (t->ended)
        return;
    t->ended = true;
    timer_free(take_ptr(&t->tick));
    pipe_close(&t->pipe);
    lent_drop_op(t);
    if (s)
        session_close(s);
    t->owner->on_end(t->arg);
    lent_settle(t);
}

static void on_tick(void *arg)
{
    struct lent *t = arg;

    if (t->pipe.broken || time_mono_us() - t->pipe.heard_us > (int64_t)t->config.silent_ms * 1000)
        return lent_close(t);
    timer_set(t->tick, t->config.silent_ms / TICKS);
}

/* --- what comes of it --- */

/* While home, or what is between, takes no more. */
static void pace(struct lent *t)
{
    for (struct lent_exec *x = t->execs; x; x = x->next)
        if (x->x)
            exec_hold(x->x, x->held || t->pipe.full);
}

static void send_one(struct lent *t, enum lend_type type, uint64_t id, const struct event *ev)
{
    AUTO(buf_done) struct buf body = BUF(2 * LEND_BODY_MAX);

    lend_put_event(&body, ev);
    if (body.n <= LEND_BODY_MAX)
        pipe_send(&t->pipe, type, id, buf_str(&body));
}

void lent_send_event(struct lent *t, enum lend_type type, uint64_t id, const struct event *ev)
{
    struct event part = *ev;

    for (struct str rest = ev->text; rest.n > TEXT_PART;) {
        part.text = (struct str){rest.p, TEXT_PART};
        part.text.n -= utf8_torn(part.text);
        rest = str_from(rest, part.text.n);
        send_one(t, type, id, &part);
        part.text = rest;
    }
    send_one(t, type, id, &part);
}

static void on_event(void *arg, const struct event *ev)
{
    struct lent_exec *x = arg;

    if (x->lent->ended)
        return;
    lent_send_event(x->lent, LEND_EVENT, x->id, ev);
    if (x->lent->pipe.full)
        pace(x->lent);
}

static void send_outcome(struct lent *t, uint64_t id, const struct outcome *o)
{
    AUTO(buf_done) struct buf body = BUF(4 * KiB);

    lend_put_outcome(&body, o);
    pipe_send(&t->pipe, LEND_OUTCOME, id, buf_str(&body));
}

static void on_outcome(void *arg, const struct outcome *o)
{
    struct lent_exec *x = arg, **at = &x->lent->execs;

    send_outcome(x->lent, x->id, o);
    while (*at != x)
        at = &(*at)->next;
    *at = x->next;
    x->lent->exec_count--;
    x->lent->used_us = time_mono_us();
    free(x);
}

static void on_lost(void *arg, const char *why)
{
    struct lent *t = arg;
    AUTO(buf_done) struct buf body = BUF(4 * KiB);

    wire_put(&body, TAG_TEXT, (struct str){why, str_utf8_len(str_of(why))});
    pipe_send(&t->pipe, LEND_LOST, 0, buf_str(&body));
}

/* --- what home says --- */

static bool on_want(struct lent *t, const struct lend_message *m)
{
    struct str name;

    if (t->wanted || !wire_find(m->body, TAG_NAME, &name))
        return false;
    t->wanted = true;
    t->owner->on_wanted(t->arg, name);
    return true;
}

static bool on_ping(struct lent *t, const struct lend_message *m)
{
    (void)m;
    pipe_send(&t->pipe, LEND_PONG, 0, (struct str){0});
    return true;
}

static const struct exec_callbacks callbacks = {on_event, on_outcome};

/* What the engine refuses has not run; its home has looked at the code already, so this is rare. */
static void refuse_exec(struct lent *t, uint64_t id, const struct err *why)
{
    struct outcome o = {.status = OUTCOME_DIED, .exit_code = 1};

    memcpy(o.line, why->text, sizeof(o.line) - 1);
    o.line[str_utf8_len(str_of(o.line))] = '\0';
    send_outcome(t, id, &o);
}

static bool on_exec(struct lent *t, const struct lend_message *m)
{
    AUTO_FREE struct exec_env *env = mem_zalloc(LEND_ENV_MAX * sizeof(*env));
    struct lent_exec *x, **at = &t->execs;
    struct exec_config config;
    struct err e;

    if (lend_take_exec(m->body, &config, env) < 0 || t->exec_count == EXECS_MAX)
        return false;
    x = mem_zalloc(sizeof(*x));
    *x = (struct lent_exec){.lent = t, .id = m->id};
    while (*at)
        at = &(*at)->next;
    *at = x;
    t->exec_count++;
    x->x = exec_start(t->session, &config, &callbacks, x, &e);
    if (x->x) {
        exec_hold(x->x, t->pipe.full);
        return true;
    }
    *at = NULL;
    t->exec_count--;
    free(x);
    refuse_exec(t, m->id, &e);
    return true;
}

/* NULL: it has ended already, and home will hear of that. */
static struct lent_exec *find(struct lent *t, uint64_t id)
{
    struct lent_exec *x = t->execs;

    while (x && x->id != id)
        x = x->next;
    return x;
}

static bool is_on(const struct lend_message *m)
{
    uint64_t on = 0;

    return wire_find_num(m->body, TAG_NUMBER, &on) && on == 1;
}

static bool on_interrupt(struct lent *t, const struct lend_message *m)
{
    struct lent_exec *x = find(t, m->id);

    if (x)
        exec_interrupt(x->x);
    return true;
}

static bool on_hold(struct lent *t, const struct lend_message *m)
{
    struct lent_exec *x = find(t, m->id);

    if (x) {
        x->held = is_on(m);
        exec_hold(x->x, x->held || t->pipe.full);
    }
    return true;
}

static bool on_clock(struct lent *t, const struct lend_message *m)
{
    struct lent_exec *x = find(t, m->id);

    if (x)
        exec_stop_clock(x->x, is_on(m));
    return true;
}

static bool on_restart(struct lent *t, const struct lend_message *m)
{
    (void)m;
    session_restart(t->session);
    return true;
}

static bool on_note(struct lent *t, const struct lend_message *m)
{
    char name[SPACE_NAME_MAX];
    struct str path;
    struct err e;

    if (!wire_find(m->body, TAG_NAME, &path) || space_check_path(path, name, &e) < 0)
        return false;
    workspace_note(t->session, path);
    return true;
}

static const struct {
    bool (*fn)(struct lent *t, const struct lend_message *m);
    bool early; /* also before there is a sandbox */
} from_home[LEND__COUNT] = {
    [LEND_WANT] = {on_want,       true},
      [LEND_PING] = {on_ping,             true},
      [LEND_EXEC] = {on_exec},
    [LEND_INTERRUPT] = {on_interrupt      },
      [LEND_HOLD] = {on_hold },
      [LEND_CLOCK] = {on_clock      },
    [LEND_RESTART] = {on_restart     },
      [LEND_NOTE] = {on_note   },
      [LEND_ASK] = {lent_on_ask      },
    [LEND_BYTES] = {lent_on_bytes  },
      [LEND_END] = {lent_on_bytes},
};

static bool on_message(void *arg, const struct lend_message *m)
{
    struct lent *t = arg;

    return from_home[m->type].fn && (t->session || from_home[m->type].early) &&
           from_home[m->type].fn(t, m);
}

/* --- the line --- */

static void on_bytes(void *arg, struct str bytes)
{
    struct lent *t = arg;

    if (pipe_take(&t->pipe, bytes, on_message, t) < 0 || t->pipe.broken)
        lent_close(t);
}

static void on_room(void *arg)
{
    struct lent *t = arg;

    pipe_on_room(&t->pipe);
    lent_feed(t);
    pace(t);
}

static void on_end(void *arg, const char *why)
{
    struct lent *t = arg;

    (void)why;
    t->pipe.line = NULL;
    lent_close(t);
}

static const struct channel_user channel_user = {on_bytes, on_room, on_end};

struct lent *lent_new(struct loop *l, struct channel *n, const struct lend_config *config,
                      const struct lent_owner *owner, void *arg)
{
    struct lent *t = mem_zalloc(sizeof(*t));

    *t = (struct lent){.loop = l, .owner = owner, .arg = arg, .config = *config};
    pipe_init(&t->pipe, n, &channel_user, t);
    t->tick = timer_new(l, on_tick, t);
    timer_set(t->tick, config->silent_ms / TICKS);
    return t;
}

void lent_refuse(struct lent *t, const struct err *why)
{
    AUTO(buf_done) struct buf body = BUF(4 * KiB);
    struct lend_answer a = lend_answer_of(why);

    lend_put_answer(&body, &a);
    pipe_send(&t->pipe, LEND_REFUSED, 0, buf_str(&body));
}

static void on_open(void *arg, struct session *s, const struct err *failed)
{
    struct lent *t = arg;

    t->pending--;
    if (t->ended) {
        if (s)
            session_close(s);
        return lent_settle(t);
    }
    if (failed)
        return lent_refuse(t, failed);
    t->session = s;
    t->used_us = time_mono_us();
    session_on_lost(s, on_lost, t);
    session_works_for(s, t->whose);
    pipe_send(&t->pipe, LEND_LENT, 0, (struct str){0});
    if (t->owner->on_open)
        t->owner->on_open(t->arg, s);
}

void lent_open(struct lent *t, struct pool *p, struct whose whose)
{
    t->pool = p;
    t->whose = whose;
    t->pending++;
    session_open(p, on_open, t);
}

bool lent_is_recalled(const struct lent *t)
{
    return t->recalled;
}

int64_t lent_idle_us(const struct lent *t)
{
    return t->session && !t->execs && !t->op ? t->used_us : 0;
}

void lent_recall(struct lent *t)
{
    t->recalled |= t->session != NULL;
    if (t->session)
        pipe_send(&t->pipe, LEND_RECALL, 0, (struct str){0});
}
