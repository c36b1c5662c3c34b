/*
 * A call: one request of a client, from its message to its answer.
 *
 * The handler owns the call and ends it. A client that cancels or disconnects only takes its peer
 * away: the handler goes on, and its answer is dropped.
 */
#include "doors/mcp/execution.h"
#include "doors/mcp/transport.h"

#include <stdio.h>
#include <stdlib.h>

struct call_keep {
    struct call_keep *next;
    void (*fn)(void *);
    void *p;
};

/* --- life --- */

static void join(struct call *c, struct call **list)
{
    c->next = *list;
    c->link = list;
    if (c->next)
        c->next->link = &c->next;
    *list = c;
}

static void part(struct call *c)
{
    *c->link = c->next;
    if (c->next)
        c->next->link = c->link;
}

struct call *call_new(struct mcp *m, const struct tool_set *set, struct peer *p,
                      struct conversation *v, const struct caller *who, const struct client *client,
                      const json_t *id, json_t *params)
{
    struct call *c = mem_zalloc(sizeof(*c));

    *c = (struct call){.mcp = m, .tool_set = set, .peer = p, .conversation = v, .caller = *who};
    client_copy(&c->client, client);
    c->id = json_incref((json_t *)id);
    c->params = params ? json_incref(params) : json_object();
    c->meta = json_object_get(c->params, "_meta");
    c->token = json_object_get(c->meta, "progressToken");
    if (!json_is_string(c->token) && !json_is_integer(c->token))
        c->token = NULL;
    c->progress = -1;
    if (m->request && *request_base_url(m->request))
        c->base_url = mem_strdup(request_base_url(m->request));
    join(c, v ? &v->calls : &m->calls);
    m->call_count++;
    if (v)
        v->call_count++;
    return c;
}

static void call_free(struct call *c)
{
    struct mcp *m = c->mcp;

    if (c->task)
        task_take_error(c, RPC_INTERNAL, "the work ended without a result");
    asks_forget(c);
    if (c->conversation)
        c->conversation->call_count--;
    part(c);
    while (c->keeps) {
        struct call_keep *k = c->keeps;
        c->keeps = k->next;
        k->fn(k->p);
        free(k);
    }
    client_done(&c->client);
    json_decref(c->id);
    json_decref(c->params);
    json_decref(c->answers);
    json_decref(c->state);
    free(c->base_url);
    free(c);
    m->call_count--;
    mcp_release(m);
}

void call_keep(struct call *c, void (*fn)(void *), void *p)
{
    struct call_keep *k = mem_zalloc(sizeof(*k));

    *k = (struct call_keep){c->keeps, fn, p};
    c->keeps = k;
}

/* --- the client turns away --- */

void call_on_cancel(struct call *c, loop_fn *fn, void *arg)
{
    c->on_cancel = fn;
    c->cancel_arg = arg;
}

static void on_cancel_drop(void *c)
{
    call_drop(c);
}

void call_drop_on_cancel(struct call *c)
{
    call_on_cancel(c, on_cancel_drop, c);
}

void call_leave(struct call *c)
{
    struct conversation *v = take_ptr(&c->conversation);

    if (!v)
        return;
    v->call_count--;
    part(c);
    join(c, &c->mcp->calls);
}

void call_cancel(struct call *c)
{
    struct peer *p = take_ptr(&c->peer);
    loop_fn *fn = take_ptr(&c->on_cancel);

    c->cancelled = true;
    call_leave(c);
    if (p)
        p->ops->drop(p);
    if (fn)
        fn(c->cancel_arg);
    else
        asks_fail(c);
}

void call_hang_up(struct call *c)
{
    if (c->peer && c->peer->ops->hang_up)
        c->peer->ops->hang_up(c->peer);
}

void call_drop(struct call *c)
{
    struct peer *p = take_ptr(&c->peer);

    if (p)
        p->ops->drop(p);
    call_free(c);
}

/* --- what it says --- */

/* Takes message. */
static void last_word(struct call *c, int status, json_t *message)
{
    struct peer *p = take_ptr(&c->peer);

    if (p)
        p->ops->answer(p, status, message);
    else
        json_decref(message);
    call_free(c);
}

static void add_server_info(const struct call *c, json_t *result)
{
    json_t *meta = json_object_get(result, "_meta");

    if (!meta) {
        meta = json_object();
        json_object_set_new(result, "_meta", meta);
    }
    json_object_set_new(
        meta, META_SERVER,
        json_pack("{s:s, s:s}", "name", c->tool_set->name, "version", RETORT_VERSION));
}

void result_dress(const struct call *c, json_t *result)
{
    if (!call_is_modern(c))
        return;
    if (!json_object_get(result, "resultType"))
        json_object_set_new(result, "resultType", json_string("complete"));
    add_server_info(c, result);
}

/* Takes result. */
static json_t *dressed(const struct call *c, json_t *result)
{
    result_dress(c, result);
    return rpc_result(c->id, result);
}

void call_result_text(struct call *c, struct str result)
{
    AUTO_FREE char *id = json_dumps(c->id, JSON_ENCODE_ANY | JSON_COMPACT);
    struct peer *p = c->peer;
    AUTO(buf_done) struct buf out = BUF(DUMP_MAX);

    if (c->task || !p || !p->ops->answer_text || !id ||
        buf_printf(&out, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":", id) < 0 ||
        buf_put(&out, result) < 0 || buf_put(&out, STR("}")) < 0) {
        call_result(c, json_loadb(result.p, result.n, 0, NULL));
        return;
    }
    c->peer = NULL;
    p->ops->answer_text(p, take_ptr(&out.p), out.n);
    call_free(c);
}

void call_result(struct call *c, json_t *result)
{
    if (c->task) {
        task_take_result(c, result);
        call_free(c);
        return;
    }
    last_word(c, 200, dressed(c, result));
}

void call_answer(struct call *c, json_t *result)
{
    struct peer *p = take_ptr(&c->peer);

    p->ops->answer(p, 200, dressed(c, result));
}

/* What a modern client is told by the status of HTTP, too. */
static int status_of(const struct call *c, int code)
{
    if (!call_is_modern(c))
        return 200;
    switch (code) {
    case RPC_NO_METHOD:
        return 404;
    case RPC_HEADER:
    case RPC_CAPABILITY:
    case RPC_VERSION:
        return 400;
    default:
        return 200;
    }
}

void call_error(struct call *c, int code, json_t *data, const char *fmt, ...)
{
    char text[1024];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    if (c->task) {
        task_take_error(c, code, text);
        json_decref(data);
        call_free(c);
        return;
    }
    last_word(c, status_of(c, code), rpc_error(c->id, code, text, data));
}

void call_fail(struct call *c, const struct err *e)
{
    if (e->kind != ERR_HOST) {
        call_error(c, RPC_PARAMS, NULL, "%s", e->text);
        return;
    }
    log_error("%s: %s", c->caller.request, e->text);
    call_error(c, RPC_INTERNAL, NULL,
               "something went wrong in the server; its log says what, at %s", c->caller.request);
}

/* --- what it knows --- */

struct service *call_service(struct call *c)
{
    struct err e = {0};
    struct service *sv = c->mcp->config.service(c->mcp->config.arg, &e);

    if (sv) {
        mcp_follow(c->mcp, sv);
        return sv;
    }
    log_error("%s: %s", c->caller.request, e.text);
    if (strcmp(c->method, "tools/call") == 0)
        tool_fail(c, "Code cannot be run on this machine: %s", e.text);
    else
        call_error(c, RPC_INTERNAL, NULL, "code cannot be run on this machine: %s", e.text);
    return NULL;
}

bool call_is_modern(const struct call *c)
{
    return c->client.version->era == ERA_MODERN;
}

bool call_has_structured(const struct call *c)
{
    return c->client.version->has & HAS_STRUCTURED;
}

bool call_is_local(const struct call *c)
{
    return c->mcp->stdio != NULL;
}

struct str call_header(const struct call *c, const char *name)
{
    const struct mcp *m = c->mcp;

    return m->request ? str_trim(request_header(m->request, name)) : (struct str){0};
}

const char *call_base_url(const struct call *c)
{
    return c->base_url;
}

struct str call_arg(const struct call *c, const char *name)
{
    return json_view(json_object_get(json_object_get(c->params, "arguments"), name));
}

const char *call_conversation(const struct call *c)
{
    return c->conversation ? c->conversation->id : "";
}

bool call_can(const struct call *c, const char *capability)
{
    const char *name = capability, *slash = strchr(capability, '/');
    const json_t *at = c->client.capabilities;
    char first[32];

    if (slash && strncmp(capability, "extensions/", 11) == 0) {
        snprintf(first, sizeof(first), "%.*s", (int)(slash - capability), capability);
        at = json_object_get(at, first);
        name = slash + 1;
    }
    return json_is_object(json_object_get(at, name));
}

bool call_needs(struct call *c, const char *capability)
{
    const char *slash = strchr(capability, '/');
    json_t *needed;

    if (call_can(c, capability))
        return true;
    if (slash)
        needed = json_pack("{s:{s:{}}}", "extensions", slash + 1);
    else
        needed = json_pack("{s:{}}", capability);
    call_error(c, RPC_CAPABILITY, json_pack("{s:o}", "requiredCapabilities", needed),
               "this needs a client with the capability %s", capability);
    return false;
}

/* --- the session a tool works in: named by the call, of the conversation, or new --- */

void call_session_choose(struct call *c)
{
    const struct conversation *v = c->conversation;
    struct str given = call_arg(c, "session_id");

    snprintf(c->session, sizeof(c->session), "%s", v ? v->session : "");
    if (given.n > 0 && !str_to_cstr(given, c->session, sizeof(c->session)))
        snprintf(c->session, sizeof(c->session), "?"); /* too long to be the id of any session */
    c->how = given.n > 0 ? RUN_NAMED : *c->session ? RUN_USUAL : v ? RUN_FIRST : RUN_NEW;
}

bool call_session_exists(struct call *c)
{
    call_session_choose(c);
    if (!*c->session)
        tool_fail(c,
                  "session_id is needed here, as no code has been run yet in this conversation. "
                  "run_code and write_file make a session and name it; list_sessions shows those "
                  "there are.");
    return *c->session;
}

void call_session_take(struct call *c, const char *session)
{
    struct conversation *v = c->conversation;

    if (c->how == RUN_USUAL && strcmp(c->session, session) != 0)
        c->how = RUN_REPLACED;
    snprintf(c->session, sizeof(c->session), "%s", session);
    if (v && c->how != RUN_NAMED)
        snprintf(v->session, sizeof(v->session), "%s", session);
}

const char *call_session_note(const struct call *c)
{
    static const char *const notes[] = {
        [RUN_NAMED] = "",
        [RUN_USUAL] = "",
        [RUN_FIRST] = " | new session, used when session_id is left out",
        [RUN_REPLACED] = " | new session: the one before is gone, with its variables and files",
        [RUN_NEW] = " | new session: pass this session_id to go on with its variables and files",
    };

    return notes[c->how];
}

void tool_refuse_session(struct call *c, const struct err *failed)
{
    struct conversation *v = c->conversation;
    char shown[NAME_SHOWN];

    if (err_will_pass(failed))
        tool_fail(c, "Not now: %s. Nothing was done; try again in %d s.", failed->text,
                  failed->retry_s > 0 ? failed->retry_s : 1);
    else if (failed->kind != ERR_MISSING)
        tool_refuse(c, failed);
    else {
        if (v && strcmp(v->session, c->session) == 0)
            v->session[0] = '\0';
        tool_fail(c,
                  "There is no session %s: it was closed, it expired with its files, or the id is "
                  "wrong. Call run_code or write_file without session_id to get a new one; "
                  "list_sessions shows those there are.",
                  name_show(shown, str_of(c->session)));
    }
}

/* --- what it says meanwhile --- */

static void send(struct call *c, const char *method, json_t *params)
{
    c->peer->ops->send(c->peer, rpc_notification(method, params));
}

#define SLOW_BYTES (256 * KiB) /* a client that has not read so much is not told of progress */

bool call_wants_progress(const struct call *c)
{
    return c->token && c->peer && !c->task;
}

/* Whole numbers look like it. */
static json_t *number(double v)
{
    const double most = 9007199254740992.0; /* 2^53: further on not every integer is a double */

    if (v >= -most && v <= most && v == (double)(json_int_t)v)
        return json_integer((json_int_t)v);
    return json_real(v);
}

void call_progress(struct call *c, double progress, double total, struct str message)
{
    json_t *params;

    if (!call_wants_progress(c) || progress <= c->progress ||
        c->peer->ops->waits(c->peer) > SLOW_BYTES)
        return;
    c->progress = progress;
    params = json_pack("{s:O, s:o}", "progressToken", c->token, "progress", number(progress));
    if (total > 0)
        json_object_set_new(params, "total", number(total));
    if (message.n > 0)
        json_object_set_new(params, "message", record_text(message));
    send(c, "notifications/progress", params);
}

static const char *const levels[] = {"debug", "info",     "notice", "warning",
                                     "error", "critical", "alert",  "emergency"};

int log_level_find(struct str name)
{
    for (size_t i = 0; i < COUNT(levels); i++)
        if (str_is(name, levels[i]))
            return (int)i;
    return -1;
}

void call_log(struct call *c, int level, const char *logger, json_t *data)
{
    int least = c->conversation && !call_is_modern(c) ? c->conversation->client.log_level
                                                      : c->client.log_level;

    if (!c->peer || c->task || least < 0 || level < least)
        json_decref(data);
    else
        send(c, "notifications/message",
             json_pack("{s:s, s:s, s:o}", "level", levels[level], "logger", logger, "data", data));
}
