/*
 * Runs code and commands. Each dialect is parsed into a program and options, all are run in the
 * same way, and outcome.c formats the result for the dialect. A client that disconnects leaves its
 * execution.
 */
#include "doors/azure/azure_int.h"

#include <stdio.h>
#include <stdlib.h>

struct azure_exec {
    struct azure_request *v; /* borrowed: outlives us */
    struct execution *x;     /* borrowed; NULL once it has ended or was left */
    struct azure_exec_options options;
};

/* --- answers --- */

static void put_time(struct azure_request *v, const char *name, int64_t us)
{
    char text[32];

    snprintf(text, sizeof(text), "%lld", (long long)((us > 0 ? us : 0) / 1000));
    answer_header(v->r, name, text);
}

static void put_times(struct azure_request *v, const struct exec_info *info)
{
    int64_t now = time_mono_us(), ran = info->how ? (int64_t)info->how->wall_us : 0;

    put_time(v, "x-ms-overall-execution-time", now - v->began_us);
    put_time(v, "x-ms-preparation-time", v->ready_us - v->began_us);
    put_time(v, "x-ms-execution-request-time", ran);
    put_time(v, "x-ms-execution-read-response-time", now - v->ready_us - ran);
}

static void put_operation(struct azure_request *v, const struct azure_exec_options *w,
                          const struct exec_info *info)
{
    char url[URL_TEXT_MAX], text[2 * URL_TEXT_MAX], who[3 * IDENTIFIER_MAX + 1];
    struct str version = azure_version(v);
    const char *id = *w->operation ? w->operation : info->row->id;

    answer_header(v->r, "operation-id", id);
    snprintf(text, sizeof(text), "%s/executions/%s?identifier=%s%s%.*s", azure_url(v, url), id,
             identifier_escape(azure_identifier(v), who), version.n ? "&api-version=" : "",
             (int)version.n, version.p);
    answer_header(v->r, "operation-location", text);
}

/* Versions 2024-10 and 2025-02 say 202, although it is done. */
static int status_of(struct azure_request *v, const struct azure_exec_options *w)
{
    struct str version = request_query(v->r, "api-version");

    if (w->dialect != DIALECT_ENVELOPE || version.n < 7)
        return 200;
    return memcmp(version.p, "2025-10", 7) < 0 ? 202 : 200;
}

static void answer(struct azure_exec *u, const struct exec_info *info)
{
    struct azure_request *v = u->v;

    if (u->options.background || *u->options.operation)
        operations_put(v->azure->operations, azure_caller(v)->tenant, info->row->id, &u->options);
    put_times(v, info);
    if (u->options.dialect == DIALECT_ENVELOPE)
        put_operation(v, &u->options, info);
    azure_answer(v, status_of(v, &u->options),
                 outcome_show(&u->options, azure_identifier(v), info));
}

/* --- what the service says --- */

static void on_queued(void *arg, const struct exec_info *info)
{
    struct azure_exec *u = arg;

    if (!u->options.background)
        return;
    execution_leave(take_ptr(&u->x));
    answer(u, info);
}

static void on_end(void *arg, const struct exec_info *info, const struct err *failed)
{
    struct azure_exec *u = arg;

    if (execution_approval(take_ptr(&u->x)))
        azure_fail(u->v, 403, "ApprovalRequired", "%s", failed->text);
    else if (failed)
        azure_fail_err(u->v, failed, "NoSessionFoundError");
    else
        answer(u, info);
}

static void on_gone(void *arg)
{
    struct azure_exec *u = arg;

    if (!u->x) /* all has been said; it only did not arrive */
        return;
    execution_leave(take_ptr(&u->x));
    request_drop(u->v->r);
}

/* --- the request --- */

static bool take_output(struct azure_request *v, const json_t *props, struct azure_exec_options *w)
{
    const json_t *most = json_nocase(props, "outputStreamsMaxLength");

    if (w->dialect == DIALECT_ENVELOPE || w->dialect == DIALECT_SHELL)
        w->most = OUTPUT_DEFAULT;
    if (!most || json_is_null(most))
        return true;
    if (!json_is_integer(most) || json_integer_value(most) < 1) {
        azure_invalid(v, "outputStreamsMaxLength", "it is a whole number above 0");
        return false;
    }
    w->most = (uint64_t)json_integer_value(most);
    return true;
}

static bool take_operation(struct azure_request *v, struct azure_exec_options *w)
{
    struct str id = request_header(v->r, "operation-id");

    if (id.n == 0)
        return true;
    if (str_to_cstr(id, w->operation, sizeof(w->operation)) &&
        strspn(w->operation, "0123456789-_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") ==
            id.n)
        return true;
    azure_invalid(v, "operation-id", "it has less than %d letters, digits, '-' and '_'",
                  OPERATION_ID_MAX);
    return false;
}

static bool take_flag(struct azure_request *v, const json_t *props, const char *name, bool *ret)
{
    const json_t *flag = json_nocase(props, name);

    *ret = json_is_true(flag);
    if (!flag || json_is_null(flag) || json_is_boolean(flag))
        return true;
    azure_invalid(v, name, "%s is true or false", name);
    return false;
}

/* Where an image has three kernels there is one here, and in it no name is taken until code takes
 * it: that is what useEmptyKernel asks for, so both of its values mean the same. */
static bool take_options(struct azure_request *v, const json_t *props, struct azure_exec_options *w)
{
    struct str type = json_view(json_nocase(props, "executionType"));
    bool empty;

    w->shell = program_is_command(props);
    if (!take_flag(v, props, "returnJupyterFormatExecutionResult", &w->jupyter) ||
        !take_flag(v, props, "useEmptyKernel", &empty))
        return false;
    if (w->dialect == DIALECT_SHELL && !w->shell) {
        azure_invalid(v, "shellCommand", "shellCommand or execCommandAndArgs is needed");
        return false;
    }
    w->background = w->dialect == DIALECT_ENVELOPE && str_nocase(type, STR("Asynchronous"));
    if (type.n && !w->background && !str_nocase(type, STR("Synchronous"))) {
        azure_invalid(v, "executionType", "%s",
                      w->dialect == DIALECT_ENVELOPE
                          ? "executionType is Synchronous or Asynchronous"
                          : "executionType is Synchronous here; POST executions has the other");
        return false;
    }
    return take_output(v, props, w) && take_operation(v, w);
}

static void execute(struct azure_request *v, enum dialect dialect)
{
    static const struct exec_watcher watcher = {.on_queued = on_queued, .on_end = on_end};
    const json_t *props = json_nocase(v->body, "properties");
    struct azure_exec *u = mem_zalloc(sizeof(*u));
    struct program program;

    *u = (struct azure_exec){.v = v, .options.dialect = dialect};
    request_keep(v->r, free, u);
    if (!json_is_object(props))
        props = v->body;
    if (!take_options(v, props, &u->options) || !program_read(v, props, &program))
        return;
    const struct exec_spec spec = {
        .session = str_of(v->session),
        .kind = program.kind,
        .code = str_of(program.code),
        .wall_ms = program.wall_ms,
        .wall_is_asked = true,
        .background = u->options.background,
        .ask.tool = azure_tool_name(program.kind),
    };
    request_on_gone(v->r, on_gone, u);
    u->x = service_execute(azure_service(v), azure_caller(v), &spec, &watcher, u);
    free(program.code);
}

void op_code_execute(struct azure_request *v)
{
    execute(v, DIALECT_NESTED);
}

void op_python_execute(struct azure_request *v)
{
    execute(v, DIALECT_FLAT);
}

void op_executions(struct azure_request *v)
{
    execute(v, DIALECT_ENVELOPE);
}

void op_execute(struct azure_request *v)
{
    execute(v, json_nocase(v->body, "properties") ? DIALECT_NESTED : DIALECT_ENVELOPE);
}

void op_shell_execute(struct azure_request *v)
{
    execute(v, DIALECT_SHELL);
}

/* --- how one goes that was asked for before --- */

static void on_found(void *arg, const struct exec_info *info, const struct err *failed)
{
    struct azure_exec *u = arg;
    struct azure_request *v = u->v;

    if (!failed && strcmp(info->row->session, v->session) == 0) {
        u->options.shell = strcmp(info->row->kind, "command") == 0;
        put_operation(v, &u->options, info);
        azure_answer(v, 200, outcome_show(&u->options, azure_identifier(v), info));
    } else if (!failed || failed->kind == ERR_MISSING) {
        azure_fail(v, 404, "ExecutionNotFound", "there is no such execution in this session");
    } else {
        azure_fail_err(v, failed, "ExecutionNotFound");
    }
}

void op_execution_get(struct azure_request *v)
{
    struct azure_exec *u = mem_zalloc(sizeof(*u));
    char id[ID_MAX];

    *u = (struct azure_exec){
        .v = v,
        .options = {.dialect = DIALECT_ENVELOPE, .most = OUTPUT_DEFAULT, .background = true}
    };
    request_keep(v->r, free, u);
    if (!operations_get(v->azure->operations, azure_caller(v)->tenant, v->name, id, &u->options) &&
        !str_to_cstr(v->name, id, sizeof(id)))
        id[0] = '\0';
    service_exec_get(azure_service(v), azure_caller(v), str_of(id), on_found, u);
}
