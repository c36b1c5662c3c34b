/*
 * Calls of execute_python, over HTTP and MCP. One that an approver must agree to becomes a task:
 * the client hears of it at once (over HTTP with 202), the script goes on by itself when the
 * approver agrees, and its answer is kept for a while. A client asks for the task, or sends the
 * same call again, which finds the same task.
 *
 * Tasks are kept in memory. After a restart the approval is still there: the same call finds it.
 */
#include "doors/prisme/prisme_int.h"

#include <gnutls/crypto.h>
#include <stdio.h>
#include <stdlib.h>

#define TASKS_MAX       1000 /* that wait, run, or have an answer */
#define TASKS_OF_TENANT 100
#define TASK_KEPT_MS    600000 /* an answer that nobody has fetched */

struct prisme_task {
    struct prisme_task *next, **link;
    struct prisme *prisme; /* borrowed */
    struct caller caller;
    struct script_exec s;
    uint8_t hash[32];        /* of what was called */
    json_t *files, *params;  /* owned, or NULL */
    struct request *request; /* borrowed: to be answered; or NULL */
    struct call *call;       /* the same of MCP: one of them at most */
    char id[ID_MAX];         /* of its approval; "": none was needed */
    bool runs, asks;         /* asks: the client's user could be asked */
    json_t *value;           /* owned: its answer, or NULL */
    struct timer *timer;     /* owned */
};

static void task_free(struct prisme_task *t)
{
    *t->link = t->next;
    if (t->next)
        t->next->link = t->link;
    json_decref(t->files);
    json_decref(t->params);
    json_decref(t->value);
    timer_free(t->timer);
    free(t);
}

static void on_old(void *arg)
{
    task_free(arg);
}

static const char *state_of(const struct prisme_task *t)
{
    if (t->value)
        return json_object_get(t->value, "error") ? "failed" : "completed";
    return t->runs ? "working" : "input-required";
}

/* --- answers --- */

static json_t *waiting_value(const struct prisme_task *t)
{
    char text[ID_MAX + 160];
    json_t *value;

    snprintf(
        text, sizeof(text),
        "nothing has been run yet: a person must agree first (%s); then it runs by itself, and "
        "the task, or the same call, has its answer",
        t->id);
    value = value_of_failure("ApprovalRequired", text);
    json_object_set_new(value, "task_id", json_string(t->id));
    return value;
}

static bool is_read(const struct prisme_task *t)
{
    return t->request || t->call;
}

/* Takes value. */
static void answer(struct prisme_task *t, json_t *value)
{
    struct request *r = take_ptr(&t->request);
    struct call *c = take_ptr(&t->call);

    t->s.call = NULL;
    if (c)
        prisme_call_answer(c, value);
    else
        answer_json(r, json_object_get(value, "task_id") ? 202 : 200, value);
}

static void on_value(void *arg, json_t *value)
{
    struct prisme_task *t = arg;

    if (is_read(t)) {
        answer(t, json_incref(value));
        return task_free(t);
    }
    t->value = json_incref(value);
    timer_set(t->timer, TASK_KEPT_MS);
}

/* A task without an id is known to nobody else. */
static void lose_reader(struct prisme_task *t)
{
    t->request = NULL;
    t->call = t->s.call = NULL;
    if (!*t->id) {
        script_exec_leave(&t->s);
        task_free(t);
    }
}

/* --- a call --- */

static bool is_there(const struct prisme *p, const struct prisme_task *t)
{
    const struct prisme_task *at = p->tasks;

    while (at && at != t)
        at = at->next;
    return at;
}

/* A client may go after its task has ended: what request_on_gone() gets must still be there. */
struct task_watch {
    struct prisme *prisme;
    struct prisme_task *task;
    struct request *request;
    struct call *call;
};

static void on_client_gone(void *arg)
{
    const struct task_watch *w = arg;

    if (!is_there(w->prisme, w->task) || w->task->request != w->request)
        return; /* answered */
    lose_reader(w->task);
    request_drop(w->request);
}

/* However it ended: cancelled, or with a question to the client's user. */
static void on_call_end(void *arg)
{
    struct task_watch *w = arg;

    if (is_there(w->prisme, w->task) && w->task->call == w->call)
        lose_reader(w->task);
    free(w);
}

/* One of them is NULL. */
static void watch(struct prisme_task *t, struct request *r, struct call *c)
{
    struct task_watch *w = mem_zalloc(sizeof(*w));

    *w = (struct task_watch){t->prisme, t, r, c};
    t->request = r;
    t->call = c;
    if (c) {
        call_keep(c, on_call_end, w);
        call_drop_on_cancel(c);
        return;
    }
    request_keep(r, free, w);
    request_on_gone(r, on_client_gone, w);
}

static int hash_call(uint8_t ret[32], struct str code, const json_t *files, const json_t *params)
{
    json_t *call = json_pack("[o, O?, O?]", record_text(code), files, params);
    AUTO_FREE char *text = json_dumps(call, JSON_COMPACT | JSON_SORT_KEYS);

    json_decref(call);
    return text ? gnutls_hash_fast(GNUTLS_DIG_SHA256, text, strlen(text), ret) : -1;
}

/* The task that is the same call; NULL: there is none. Where a user can be asked, a script that
 * waits for an approver because nobody could is another one: this user may agree at once. */
static struct prisme_task *find_same(struct prisme *p, const struct caller *c,
                                     const uint8_t hash[32], bool asks)
{
    struct prisme_task *t = p->tasks;

    while (t && (!*t->id || t->asks != asks || strcmp(t->caller.tenant, c->tenant) != 0 ||
                 strcmp(t->caller.key, c->key) != 0 || memcmp(t->hash, hash, 32) != 0))
        t = t->next;
    return t;
}

static struct prisme_task *find_task(struct prisme *p, const struct caller *c, struct str id)
{
    struct prisme_task *t = p->tasks;

    while (t && !(*t->id && str_is(id, t->id) && strcmp(t->caller.tenant, c->tenant) == 0))
        t = t->next;
    return t;
}

/* A call as it came. */
struct script_call {
    struct prisme *prisme;
    struct service *service;
    const struct caller *caller;
    struct request *r; /* until it is answered; or NULL */
    struct call *c;    /* the same of MCP */
    json_t *code, *files, *params;
};

/* The same call, sent again. */
struct task_join {
    struct script_call call; /* its JSON is owned */
    char id[ID_MAX];
};

static void join_free(void *arg)
{
    struct task_join *j = arg;

    json_decref(j->call.code);
    json_decref(j->call.files);
    json_decref(j->call.params);
    free(j);
}

static void take_call(const struct script_call *k);

static void answer_call(const struct script_call *k, int status, json_t *value)
{
    if (k->c)
        prisme_call_answer(k->c, value);
    else
        answer_json(k->r, status, value);
}

/* Approved a moment ago, it runs soon. */
static void on_joined(void *arg, const struct approval_info *info, const struct err *failed)
{
    struct task_join *j = arg;
    const struct script_call *k = &j->call;
    struct prisme_task *t = find_task(k->prisme, k->caller, str_of(j->id));

    if (k->c && k->c->cancelled)
        call_drop(k->c);
    else if (!t || t->value)
        take_call(k); /* it has ended meanwhile */
    else if (failed || info->row->state == APPROVAL_PENDING || is_read(t))
        answer_call(k, 202, waiting_value(t));
    else
        watch(t, k->r, k->c);
}

/* One that waits is answered as it was; one that runs, when it ends; one that has ended, and with
 * that it is over. */
static void join(struct prisme_task *t, const struct script_call *k)
{
    struct task_join *j;

    if (t->value) {
        answer_call(k, 200, json_incref(t->value));
        return task_free(t);
    }
    j = mem_zalloc(sizeof(*j));
    j->call = *k;
    json_incref(k->code);
    json_incref(k->files);
    json_incref(k->params);
    memcpy(j->id, t->id, sizeof(j->id));
    if (k->c)
        call_keep(k->c, join_free, j);
    else
        request_keep(k->r, join_free, j);
    service_approval_get(k->service, k->caller, str_of(j->id), on_joined, j);
}

static bool has_room(const struct prisme_task *t)
{
    size_t all = 0, own = 0;

    for (const struct prisme_task *at = t->prisme->tasks; at; at = at->next) {
        all += *at->id != '\0';
        own += *at->id && strcmp(at->caller.tenant, t->caller.tenant) == 0;
    }
    return all < TASKS_MAX && own < TASKS_OF_TENANT;
}

bool prisme_task_on_ask(void *arg, const struct approval_info *info)
{
    struct prisme_task *t = arg;

    if (info->verdict != APPROVAL_WAIT || !info->row || !has_room(t) ||
        find_task(t->prisme, &t->caller, str_of(info->row->id))) /* one script for one approval */
        return false;
    snprintf(t->id, sizeof(t->id), "%s", info->row->id);
    if (is_read(t))
        answer(t, waiting_value(t));
    return true;
}

void prisme_task_on_queued(void *arg)
{
    ((struct prisme_task *)arg)->runs = true;
}

static void take_call(const struct script_call *k)
{
    struct prisme *p = k->prisme;
    struct prisme_task *t, *same;
    bool asks = k->c && call_can_ask(k->c, "elicitation/create", NULL);
    uint8_t hash[32];

    if (hash_call(hash, json_view(k->code), k->files, k->params) < 0)
        return answer_call(k, 200, value_of_failure("InvalidRequest", "the call cannot be hashed"));
    same = find_same(p, k->caller, hash, asks);
    if (same)
        return join(same, k);
    t = mem_zalloc(sizeof(*t));
    *t = (struct prisme_task){.prisme = p,
                              .caller = *k->caller,
                              .next = p->tasks,
                              .link = &p->tasks,
                              .files = json_incref(k->files),
                              .params = json_incref(k->params)};
    if (t->next)
        t->next->link = &t->next;
    p->tasks = t;
    t->asks = asks;
    memcpy(t->hash, hash, sizeof(hash));
    t->timer = timer_new(p->config.loop, on_old, t);
    t->s = (struct script_exec){.prisme = p,
                                .service = k->service,
                                .caller = &t->caller,
                                .call = k->c,
                                .task = t,
                                .code = json_view(k->code),
                                .files = t->files,
                                .parameters = t->params,
                                .conversation =
                                    k->r ? request_header(k->r, "x-correlation-id") : STR(""),
                                .fn = on_value,
                                .arg = t};
    watch(t, k->r, k->c);
    script_exec_start(&t->s);
}

void prisme_call(struct request *r, json_t *code, json_t *files)
{
    take_call(&(struct script_call){.prisme = request_ctx(r),
                                    .service = request_service(r),
                                    .caller = request_caller(r),
                                    .r = r,
                                    .code = code,
                                    .files = files,
                                    .params = json_object_get(request_json(r), "parameters")});
}

void prisme_call_tool(struct prisme *p, struct service *sv, struct call *c, json_t *args)
{
    take_call(&(struct script_call){.prisme = p,
                                    .service = sv,
                                    .caller = &c->caller,
                                    .c = c,
                                    .code = json_object_get(args, "code"),
                                    .files = json_object_get(args, "files")});
}

/* --- a task that is asked for --- */

static json_t *shown(const char *id, const char *state, json_t *value, const char *note)
{
    return json_pack("{s:s, s:s, s:o?, s:s*}", "task_id", id, "status", state, "result", value,
                     "message", note);
}

/* Not in memory: what its approval says. */
static void on_approval(void *arg, const struct approval_info *info, const struct err *failed)
{
    static const char again[] = "it is not known here any more: send the same call again";
    static const char *const states[] = {
        [APPROVAL_PENDING] = "input-required", [APPROVAL_APPROVED] = "submitted",
        [APPROVAL_DECLINED] = "failed",        [APPROVAL_EXPIRED] = "failed",
        [APPROVAL_USED] = "completed",
    };
    struct request *r = arg;

    if (failed)
        return answer_error(r, failed, "task");
    answer_json(r, 200, shown(info->row->id, states[info->row->state], NULL, again));
}

void handle_task(struct request *r)
{
    struct str id = request_path(r, "task");
    const struct prisme_task *t = find_task(request_ctx(r), request_caller(r), id);

    if (t)
        answer_json(r, 200, shown(t->id, state_of(t), json_incref(t->value), NULL));
    else
        service_approval_get(request_service(r), request_caller(r), id, on_approval, r);
}

/* --- the end of the server --- */

/* Those that wait for somebody: their approvals stay. */
void prisme_drain(void *room)
{
    struct prisme *p = room;

    for (struct prisme_task *t = p->tasks, *next; t; t = next) {
        next = t->next;
        if (!*t->id || t->runs || t->value)
            continue;
        if (is_read(t))
            answer(t, waiting_value(t));
        script_exec_leave(&t->s);
        task_free(t);
    }
}

void prisme_stop(void *room)
{
    struct prisme *p = room;

    for (struct prisme_task *t = p->tasks, *next; t; t = next) {
        next = t->next;
        if (is_read(t)) /* it goes with its reader */
            continue;
        if (!t->value)
            script_exec_leave(&t->s);
        task_free(t);
    }
}
