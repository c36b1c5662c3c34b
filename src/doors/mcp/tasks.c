/*
 * Tasks: a call whose client gets a task at once and asks for the result later, by the task's id.
 *
 * The handler works on as before; the result goes into the task, which only the same key can read.
 * Tasks live in memory: a restart ends them, and executions stay on record. Their number and size
 * are limited: finished tasks are dropped, the oldest first; open ones are kept.
 */
#include "doors/mcp/mcp_int.h"

#include <stdio.h>
#include <stdlib.h>

#define TASK_TTL_MS      86400000
#define TASK_POLL_MS     1000
#define TASK_STATUS_MAX  200 /* bytes of its one line */
#define TASKS_MAX        4096
#define TASKS_TENANT_MAX 256
#define TASK_BYTES       (256 * MiB) /* of results kept */
#define TASK_TENANT      (32 * MiB)

enum task_end { TASK_OPEN, TASK_COMPLETED, TASK_FAILED, TASK_CANCELLED };

struct mcp_task {
    struct mcp_task *next;
    char id[ID_MAX], tenant[64], key[ID_MAX];
    int64_t created_ms, updated_ms;
    enum task_end end;
    struct call *call; /* borrowed; NULL when it has ended */
    json_t *status;    /* owned: string */
    json_t *outcome;   /* owned: result or error, or NULL */
    size_t bytes;      /* of outcome */
};

/* By age, the oldest first. */
struct tasks {
    struct mcp_task *first, **last;
};

/* --- how many there may be --- */

static void task_free(struct tasks *ts, struct mcp_task **at)
{
    struct mcp_task *t = *at;

    *at = t->next;
    if (ts->last == &t->next)
        ts->last = at;
    json_decref(t->status);
    json_decref(t->outcome);
    free(t);
}

struct sum {
    size_t count, bytes;
};

/* tenant NULL: of all. */
static struct sum held(const struct tasks *ts, const char *tenant)
{
    struct sum sum = {0};

    for (const struct mcp_task *t = ts->first; t; t = t->next)
        if (!tenant || strcmp(t->tenant, tenant) == 0) {
            sum.count++;
            sum.bytes += t->bytes;
        }
    return sum;
}

static void drop_expired(struct tasks *ts)
{
    int64_t now = time_sure_ms();

    for (struct mcp_task **at = &ts->first; *at;)
        if ((*at)->end != TASK_OPEN && (*at)->created_ms + TASK_TTL_MS <= now)
            task_free(ts, at);
        else
            at = &(*at)->next;
}

/* Lets finished ones go until the rest fits. False: what is left is under way. */
static bool trim(struct tasks *ts, const char *tenant, size_t count, size_t bytes)
{
    struct sum sum = held(ts, tenant);

    for (struct mcp_task **at = &ts->first; *at && (sum.count > count || sum.bytes > bytes);) {
        struct mcp_task *t = *at;
        if (t->end == TASK_OPEN || (tenant && strcmp(t->tenant, tenant) != 0)) {
            at = &t->next;
            continue;
        }
        sum.count--;
        sum.bytes -= t->bytes;
        task_free(ts, at);
    }
    return sum.count <= count && sum.bytes <= bytes;
}

static bool has_room(struct tasks *ts, const char *tenant)
{
    drop_expired(ts);
    return trim(ts, tenant, TASKS_TENANT_MAX - 1, TASK_TENANT) &&
           trim(ts, NULL, TASKS_MAX - 1, TASK_BYTES);
}

/* --- how it looks --- */

static const char *status_of(const struct mcp_task *t, const json_t *asked)
{
    static const char *const names[] = {"working", "completed", "failed", "cancelled"};

    return json_object_size(asked) > 0 ? "input_required" : names[t->end];
}

static json_t *show(const struct mcp_task *t)
{
    char created[TIME_TEXT], updated[TIME_TEXT];
    json_t *asked = t->call ? asks_show(t->call) : json_object();
    json_t *v;

    time_print(t->created_ms, created);
    time_print(t->updated_ms, updated);
    v = json_pack("{s:s, s:s, s:s, s:s, s:i, s:i}", "taskId", t->id, "status", status_of(t, asked),
                  "createdAt", created, "lastUpdatedAt", updated, "ttlMs", TASK_TTL_MS,
                  "pollIntervalMs", TASK_POLL_MS);
    if (t->status)
        json_object_set(v, "statusMessage", t->status);
    if (json_object_size(asked) > 0)
        json_object_set(v, "inputRequests", asked);
    if (t->outcome)
        json_object_set(v, t->end == TASK_FAILED ? "error" : "result", t->outcome);
    json_decref(asked);
    return v;
}

/* --- from a call --- */

static void set_status(struct mcp_task *t, struct str text)
{
    text.n = text.n > TASK_STATUS_MAX ? TASK_STATUS_MAX : text.n;
    text.n -= utf8_torn(text);
    json_decref(t->status);
    t->status = record_text(text);
    t->updated_ms = time_now_ms();
}

static struct tasks *tasks_of(struct mcp *m)
{
    if (!m->tasks) {
        m->tasks = mem_zalloc(sizeof(*m->tasks));
        m->tasks->last = &m->tasks->first;
    }
    return m->tasks;
}

static struct mcp_task *task_new(struct tasks *ts, struct call *c)
{
    struct mcp_task *t = mem_zalloc(sizeof(*t));

    id_make(t->id, "task_");
    memcpy(t->tenant, c->caller.tenant, sizeof(t->tenant));
    memcpy(t->key, c->caller.key, sizeof(t->key));
    t->created_ms = time_now_ms();
    t->call = c;
    *ts->last = t;
    ts->last = &t->next;
    return t;
}

bool call_to_task(struct call *c, const char *status)
{
    json_t *v;

    if (!call_is_modern(c) || !call_can(c, "extensions/" EXT_TASKS) || !c->peer || c->task ||
        c->mcp->freed || !has_room(tasks_of(c->mcp), c->caller.tenant))
        return false;
    c->task = task_new(c->mcp->tasks, c);
    set_status(c->task, str_of(status));
    v = show(c->task);
    json_object_set_new(v, "resultType", json_string("task"));
    call_answer(c, v);
    call_leave(c);
    return true;
}

void call_task_status(struct call *c, struct str status)
{
    if (c->task)
        set_status(c->task, status);
}

/* Takes outcome. */
static void end(struct mcp_task *t, enum task_end how, json_t *outcome)
{
    if (t->call)
        t->call->task = NULL;
    t->call = NULL;
    t->end = how;
    t->outcome = outcome;
    t->updated_ms = time_now_ms();
    t->bytes = outcome ? json_dumpb(outcome, NULL, 0, JSON_COMPACT) : 0;
}

static json_t *error_show(int code, const char *text)
{
    return json_pack("{s:i, s:o}", "code", code, "message", record_text(str_of(text)));
}

void task_take_error(struct call *c, int code, const char *text)
{
    end(c->task, TASK_FAILED, error_show(code, text));
}

void task_take_result(struct call *c, json_t *result)
{
    struct tasks *ts = c->mcp->tasks;
    struct mcp_task *t = c->task;

    end(t, TASK_COMPLETED, result);
    if (t->bytes > TASK_TENANT) {
        json_decref(take_ptr(&t->outcome));
        end(t, TASK_FAILED, error_show(RPC_INTERNAL, "the result was too large to be kept"));
    }
    trim(ts, t->tenant, TASKS_TENANT_MAX, TASK_TENANT);
    trim(ts, NULL, TASKS_MAX, TASK_BYTES);
}

void tasks_free(struct mcp *m)
{
    struct tasks *ts = take_ptr(&m->tasks);

    while (ts && ts->first) {
        if (ts->first->call)
            ts->first->call->task = NULL;
        task_free(ts, &ts->first);
    }
    free(ts);
}

/* --- methods --- */

/* NULL: the call has been answered. One of another key is none. */
static struct mcp_task *find(struct call *c)
{
    struct str id = json_view(json_object_get(c->params, "taskId"));
    char shown[NAME_SHOWN];

    if (!call_needs(c, "extensions/" EXT_TASKS))
        return NULL;
    drop_expired(tasks_of(c->mcp));
    for (struct mcp_task *t = c->mcp->tasks->first; t; t = t->next)
        if (str_is(id, t->id) && strcmp(t->tenant, c->caller.tenant) == 0 &&
            strcmp(t->key, c->caller.key) == 0)
            return t;
    call_error(c, RPC_PARAMS, NULL,
               "there is no task %s: it was never yours, or is too long ago, or the server was "
               "started anew",
               name_show(shown, id));
    return NULL;
}

void handle_tasks_get(struct call *c)
{
    struct mcp_task *t = find(c);

    if (t)
        call_result(c, show(t));
}

void handle_tasks_update(struct call *c)
{
    const json_t *responses = json_object_get(c->params, "inputResponses");
    struct mcp_task *t = find(c);

    if (!t)
        return;
    if (!input_is_good(responses)) {
        call_error(c, RPC_PARAMS, NULL, "inputResponses must be an object of objects");
        return;
    }
    if (t->call) {
        asks_answer(t->call, responses);
        t->updated_ms = time_now_ms();
    }
    call_result(c, json_object());
}

/* The client sees it cancelled at once; the work is told to stop, and what it still says is for
 * nobody. */
void handle_tasks_cancel(struct call *c)
{
    struct mcp_task *t = find(c);
    struct call *work;

    if (!t)
        return;
    work = t->call;
    if (work) {
        end(t, TASK_CANCELLED, NULL);
        call_cancel(work);
    }
    call_result(c, json_object());
}
