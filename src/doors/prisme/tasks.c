/*
 * Calls over HTTP. One that an approver must agree to becomes a task: it is answered with 202 at
 * once, goes on by itself when the approver agrees, and keeps its answer for a while. A client
 * asks for the task, or sends the same call again, which finds the same task.
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
    char id[ID_MAX];         /* of its approval; "": none was needed */
    bool runs;
    json_t *value;       /* owned: its answer, or NULL */
    struct timer *timer; /* owned */
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
    json_t *value = value_of_failure(
        "ApprovalRequired", "nothing has been run yet: a person must agree first; then it runs by "
                            "itself, and the task has its answer");

    json_object_set_new(value, "task_id", json_string(t->id));
    return value;
}

static void answer(struct prisme_task *t, json_t *value)
{
    struct request *r = take_ptr(&t->request);

    answer_json(r, json_object_get(value, "task_id") ? 202 : 200, value);
}

static void on_value(void *arg, json_t *value)
{
    struct prisme_task *t = arg;

    if (t->request) {
        answer(t, json_incref(value));
        return task_free(t);
    }
    t->value = json_incref(value);
    timer_set(t->timer, TASK_KEPT_MS);
}

static void on_gone(void *arg)
{
    struct prisme_task *t = arg;
    struct request *r = t->request;

    if (!r) /* answered */
        return;
    t->request = NULL;
    if (!*t->id) { /* nobody else knows of it */
        script_exec_leave(&t->s);
        task_free(t);
    }
    request_drop(r);
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
};

static void on_client_gone(void *arg)
{
    const struct task_watch *w = arg;

    if (is_there(w->prisme, w->task))
        on_gone(w->task);
}

static void watch(struct prisme_task *t, struct request *r)
{
    struct task_watch *w = mem_zalloc(sizeof(*w));

    *w = (struct task_watch){t->prisme, t};
    t->request = r;
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

/* The task that is the same call; NULL: there is none. */
static struct prisme_task *find_same(struct prisme *p, const struct caller *c,
                                     const uint8_t hash[32])
{
    struct prisme_task *t = p->tasks;

    while (t && (!*t->id || strcmp(t->caller.tenant, c->tenant) != 0 ||
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

/* The same call, sent again. */
struct task_join {
    struct request *r;    /* borrowed: until it is answered */
    json_t *code, *files; /* owned; files or NULL */
    char id[ID_MAX];
};

static void join_free(void *arg)
{
    struct task_join *j = arg;

    json_decref(j->code);
    json_decref(j->files);
    free(j);
}

/* Approved a moment ago, it runs soon. */
static void on_joined(void *arg, const struct approval_info *info, const struct err *failed)
{
    struct task_join *j = arg;
    struct prisme_task *t = find_task(request_ctx(j->r), request_caller(j->r), str_of(j->id));

    if (!t || t->value)
        prisme_call(j->r, j->code, j->files); /* it has ended meanwhile */
    else if (failed || info->row->state == APPROVAL_PENDING || t->request)
        answer_json(j->r, 202, waiting_value(t));
    else
        watch(t, j->r);
}

/* One that waits is answered as it was; one that runs, when it ends; one that has ended, and with
 * that it is over. */
static void join(struct prisme_task *t, struct request *r, json_t *code, json_t *files)
{
    struct task_join *j;

    if (t->value) {
        answer_json(r, 200, json_incref(t->value));
        return task_free(t);
    }
    j = mem_zalloc(sizeof(*j));
    *j = (struct task_join){.r = r, .code = json_incref(code), .files = json_incref(files)};
    memcpy(j->id, t->id, sizeof(j->id));
    request_keep(r, join_free, j);
    service_approval_get(request_service(r), request_caller(r), str_of(j->id), on_joined, j);
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

    if (info->verdict != APPROVAL_WAIT || !info->row || !has_room(t))
        return false;
    snprintf(t->id, sizeof(t->id), "%s", info->row->id);
    if (t->request)
        answer(t, waiting_value(t));
    return true;
}

void prisme_task_on_queued(void *arg)
{
    ((struct prisme_task *)arg)->runs = true;
}

void prisme_call(struct request *r, json_t *code, json_t *files)
{
    struct prisme *p = request_ctx(r);
    json_t *params = json_object_get(request_json(r), "parameters");
    struct prisme_task *t, *same;
    uint8_t hash[32];

    if (hash_call(hash, json_view(code), files, params) < 0)
        return answer_fail(r, 500, "INTERNAL_ERROR", NULL, "the call cannot be hashed");
    same = find_same(p, request_caller(r), hash);
    if (same)
        return join(same, r, code, files);
    t = mem_zalloc(sizeof(*t));
    *t = (struct prisme_task){.prisme = p,
                              .caller = *request_caller(r),
                              .next = p->tasks,
                              .link = &p->tasks,
                              .files = json_incref(files),
                              .params = json_incref(params)};
    if (t->next)
        t->next->link = &t->next;
    p->tasks = t;
    memcpy(t->hash, hash, sizeof(hash));
    t->timer = timer_new(p->config.loop, on_old, t);
    t->s = (struct script_exec){.prisme = p,
                                .service = request_service(r),
                                .caller = &t->caller,
                                .task = t,
                                .code = json_view(code),
                                .files = t->files,
                                .parameters = t->params,
                                .conversation = request_header(r, "x-correlation-id"),
                                .fn = on_value,
                                .arg = t};
    watch(t, r);
    script_exec_start(&t->s);
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
        if (t->request)
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
        if (t->request)
            continue;
        if (!t->value)
            script_exec_leave(&t->s);
        task_free(t);
    }
}
