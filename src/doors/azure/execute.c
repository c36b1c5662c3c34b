/*
 * Code and commands. Every dialect is read into a program and a wish, runs the same way,
 * and is told by outcome.c in its own words.
 *
 * Two things hold a run, as in the native interface: its request and its job. A client
 * that goes away takes its job with it, unless the job is in the background.
 */
#include "doors/azure/azure_int.h"

#include <stdio.h>
#include <stdlib.h>

struct run {
    struct visit *v; /* borrowed; NULL once it is answered or dropped */
    struct job *job; /* borrowed; NULL once it has ended or we left it */
    unsigned holders;
    struct wish wish;
};

static void let_go(struct run *u)
{
    if (--u->holders == 0)
        free(u);
}

static void on_request_over(void *arg)
{
    struct run *u = arg;

    u->v = NULL;
    let_go(u);
}

/* --- answers --- */

static void put_time(struct visit *v, const char *name, int64_t us)
{
    char text[32];

    snprintf(text, sizeof(text), "%lld", (long long)((us > 0 ? us : 0) / 1000));
    answer_header(v->r, name, text);
}

static void put_times(struct visit *v, const struct exec_info *info)
{
    int64_t now = time_mono_us(), ran = info->how ? (int64_t)info->how->wall_us : 0;

    put_time(v, "x-ms-overall-execution-time", now - v->began_us);
    put_time(v, "x-ms-preparation-time", v->ready_us - v->began_us);
    put_time(v, "x-ms-execution-request-time", ran);
    put_time(v, "x-ms-execution-read-response-time", now - v->ready_us - ran);
}

static void put_operation(struct visit *v, const struct wish *w, const struct exec_info *info)
{
    char url[URL_TEXT_MAX], text[2 * URL_TEXT_MAX];
    struct str version = visit_version(v);
    const char *id = *w->operation ? w->operation : info->row->id;

    answer_header(v->r, "operation-id", id);
    snprintf(text, sizeof(text), "%s/executions/%s?api-version=%.*s", visit_url(v, url), id,
             (int)version.n, version.p);
    answer_header(v->r, "operation-location", text);
}

/* Versions 2024-10 and 2025-02 say 202, although it is done. */
static int status_of(struct visit *v, const struct wish *w)
{
    struct str version = request_query(v->r, "api-version");

    if (w->dialect != DIALECT_ENVELOPE || version.n < 7)
        return 200;
    return memcmp(version.p, "2025-10", 7) < 0 ? 202 : 200;
}

static void answer(struct run *u, const struct exec_info *info)
{
    struct visit *v = take_ptr(&u->v);

    put_times(v, info);
    if (u->wish.dialect == DIALECT_ENVELOPE)
        put_operation(v, &u->wish, info);
    visit_answer(v, status_of(v, &u->wish), outcome_show(&u->wish, visit_identifier(v), info));
}

/* --- what the service says --- */

static void on_queued(void *arg, const struct exec_info *info)
{
    struct run *u = arg;

    if (!u->v || !u->wish.background)
        return;
    operations_put(u->v->azure->operations, visit_caller(u->v)->tenant, info->row->id, &u->wish);
    answer(u, info);
}

static void on_event(void *arg, const struct event *ev)
{
    (void)arg;
    (void)ev;
}

static void on_end(void *arg, const struct exec_info *info, const struct err *failed)
{
    struct run *u = arg;

    u->job = NULL;
    if (u->v && failed)
        visit_error(take_ptr(&u->v), failed, "NoSessionFoundError");
    else if (u->v && *u->wish.operation)
        operations_put(u->v->azure->operations, visit_caller(u->v)->tenant, info->row->id,
                       &u->wish);
    if (u->v)
        answer(u, info);
    let_go(u);
}

static void on_gone(void *arg)
{
    struct run *u = arg;
    struct visit *v = take_ptr(&u->v);

    if (!v) /* all has been said; it only did not arrive */
        return;
    job_leave(take_ptr(&u->job));
    let_go(u);
    request_drop(v->r);
}

/* --- the request --- */

static bool take_output(struct visit *v, const json_t *props, struct wish *w)
{
    const json_t *most = json_nocase(props, "outputStreamsMaxLength");

    if (w->dialect == DIALECT_ENVELOPE || w->dialect == DIALECT_SHELL)
        w->most = OUTPUT_DEFAULT;
    if (!most || json_is_null(most))
        return true;
    if (!json_is_integer(most) || json_integer_value(most) < 1) {
        visit_invalid(v, "outputStreamsMaxLength", "it is a whole number above 0");
        return false;
    }
    w->most = (uint64_t)json_integer_value(most);
    return true;
}

static bool take_operation(struct visit *v, struct wish *w)
{
    struct str id = request_header(v->r, "operation-id");

    if (id.n == 0)
        return true;
    if (str_to_cstr(id, w->operation, sizeof(w->operation)) &&
        strspn(w->operation, "0123456789-_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") ==
            id.n)
        return true;
    visit_invalid(v, "operation-id", "it has less than %d letters, digits, '-' and '_'",
                  OPERATION_ID_MAX);
    return false;
}

static bool take_flag(struct visit *v, const json_t *props, const char *name, bool *ret)
{
    const json_t *flag = json_nocase(props, name);

    *ret = json_is_true(flag);
    if (!flag || json_is_null(flag) || json_is_boolean(flag))
        return true;
    visit_invalid(v, name, "%s is true or false", name);
    return false;
}

/* Where an image has three kernels there is one here, and in it no name is taken until code takes
 * it: that is what useEmptyKernel asks for, so both of its values mean the same. */
static bool take_wish(struct visit *v, const json_t *props, struct wish *w)
{
    struct str type = json_view(json_nocase(props, "executionType"));
    bool empty;

    w->shell = json_nocase(props, "shellCommand") || json_nocase(props, "execCommandAndArgs");
    if (!take_flag(v, props, "returnJupyterFormatExecutionResult", &w->jupyter) ||
        !take_flag(v, props, "useEmptyKernel", &empty))
        return false;
    if (w->dialect == DIALECT_SHELL && !w->shell) {
        visit_invalid(v, "shellCommand", "shellCommand or execCommandAndArgs is needed");
        return false;
    }
    w->background = w->dialect == DIALECT_ENVELOPE && str_nocase(type, STR("Asynchronous"));
    if (type.n && !w->background && !str_nocase(type, STR("Synchronous"))) {
        visit_invalid(v, "executionType", "%s",
                      w->dialect == DIALECT_ENVELOPE
                          ? "executionType is Synchronous or Asynchronous"
                          : "executionType is Synchronous here; POST executions has the other");
        return false;
    }
    return take_output(v, props, w) && take_operation(v, w);
}

/* What the run needs until it may begin. */
struct order {
    struct visit *v;
    struct wish wish;
    struct program program; /* code: owned */
};

static void order_free(void *p)
{
    struct order *o = p;

    free(o->program.code);
    free(o);
}

/* The service copies what it is given. */
static void start(void *arg, const struct clearance *clearance, const struct err *failed)
{
    static const struct exec_watcher watcher = {on_queued, on_event, on_end};
    struct order *o = arg;
    struct visit *v = o->v;
    struct run *u;

    if (failed) {
        if (failed->kind == ERR_DENIED)
            visit_fail(v, 403, "ApprovalRequired", "%s", failed->text);
        else
            visit_error(v, failed, "NoSessionFoundError");
        return;
    }
    const struct exec_spec spec = {
        .session = str_of(v->session),
        .kind = o->program.kind,
        .code = str_of(o->program.code),
        .wall_ms = o->program.wall_ms,
        .background = o->wish.background,
        .clearance = clearance,
    };
    u = mem_zalloc(sizeof(*u));
    *u = (struct run){.v = v, .holders = 2, .wish = o->wish};
    request_keep(v->r, on_request_over, u);
    request_on_gone(v->r, on_gone, u);
    u->job = service_execute(visit_service(v), visit_caller(v), &spec, &watcher, u);
}

static void execute(struct visit *v, enum dialect dialect)
{
    const json_t *props = json_nocase(v->body, "properties");
    struct order *o = mem_zalloc(sizeof(*o));

    *o = (struct order){.v = v, .wish.dialect = dialect};
    request_keep(v->r, order_free, o);
    if (!json_is_object(props))
        props = v->body;
    if (!take_wish(v, props, &o->wish) || !program_read(v, props, &o->program))
        return;
    const struct clear_spec spec = {
        .pool = str_of(v->pool_name),
        .session = str_of(v->session),
        .code = str_of(o->program.code),
        .kind = o->program.kind,
    };
    clear_ask(visit_service(v), visit_caller(v), &spec, start, o);
}

void op_code_execute(struct visit *v)
{
    execute(v, DIALECT_NESTED);
}

void op_python_execute(struct visit *v)
{
    execute(v, DIALECT_FLAT);
}

void op_executions(struct visit *v)
{
    execute(v, DIALECT_ENVELOPE);
}

void op_execute(struct visit *v)
{
    execute(v, json_nocase(v->body, "properties") ? DIALECT_NESTED : DIALECT_ENVELOPE);
}

void op_shell_execute(struct visit *v)
{
    execute(v, DIALECT_SHELL);
}

/* --- how one goes that was asked for before --- */

static void on_found(void *arg, const struct exec_info *info, const struct err *failed)
{
    struct run *u = arg;
    struct visit *v = u->v;

    if (!failed && strcmp(info->row->session, v->session) == 0) {
        u->wish.shell = strcmp(info->row->kind, "command") == 0;
        put_operation(v, &u->wish, info);
        visit_answer(v, 200, outcome_show(&u->wish, visit_identifier(v), info));
    } else if (!failed || failed->kind == ERR_MISSING) {
        visit_fail(v, 404, "ExecutionNotFound", "there is no such execution in this session");
    } else {
        visit_error(v, failed, "ExecutionNotFound");
    }
}

void op_execution_get(struct visit *v)
{
    struct run *u = mem_zalloc(sizeof(*u));
    char id[ID_MAX];

    *u = (struct run){.v = v, .holders = 1};
    u->wish =
        (struct wish){.dialect = DIALECT_ENVELOPE, .most = OUTPUT_DEFAULT, .background = true};
    request_keep(v->r, on_request_over, u);
    if (!operations_get(v->azure->operations, visit_caller(v)->tenant, v->name, id, &u->wish) &&
        !str_to_cstr(v->name, id, sizeof(id)))
        id[0] = '\0';
    service_exec_get(visit_service(v), visit_caller(v), str_of(id), on_found, u);
}
