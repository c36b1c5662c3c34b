/*
 * One execution of a script. Whatever happens, there is an answer: an object with a result or an
 * error. config.parallel scripts run at a time, the others wait for their turn.
 */
#include "doors/prisme/prisme_int.h"

#include "fetch/fetch.h"

#include <stdio.h>
#include <stdlib.h>

/* --- what went wrong --- */

static json_t *failure(const char *code, const char *fmt, ...) PRINTF(2, 3);
static json_t *failure(const char *code, const char *fmt, ...)
{
    char text[1024];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    return value_of_failure(code, text);
}

static json_t *not_approved(const struct approval_info *info)
{
    json_t *value;

    if (info->verdict != APPROVAL_WAIT || !info->row)
        return failure("ApprovalDenied", "%s",
                       info->row && info->row->reason ? info->row->reason
                                                      : "the person who must agree has not agreed");
    value = failure("ApprovalRequired",
                    "nothing has been run yet: a person must agree first; send the same call again "
                    "when it has been approved");
    json_object_set_new(value, "task_id", json_string(info->row->id));
    return value;
}

static json_t *not_executed(const struct script_exec *s, const struct err *why)
{
    if (why->kind == ERR_HOST)
        log_error("%s: %s", s->caller->request, why->text);
    if (why->kind == ERR_HOST)
        return failure("CodeSandboxUnreachable", "the sandbox cannot be reached at the moment");
    if (why->kind == ERR_BUSY || why->kind == ERR_FULL || why->kind == ERR_DAMAGED ||
        why->kind == ERR_AWAY || why->kind == ERR_SETUP)
        return failure("CodeSandboxUnreachable", "the sandbox cannot be reached at the moment: %s",
                       why->text);
    return failure(why->kind == ERR_DENIED ? "ApprovalDenied" : "InvalidRequest", "%s", why->text);
}

/* --- the execution --- */

static void on_deleted(void *arg, const struct err *failed)
{
    (void)arg, (void)failed; /* the session goes when its retention is over, then */
}

static void end(struct script_exec *s)
{
    s->x = NULL;
    json_decref(s->bad_file);
    if (*s->session && !s->keeps)
        service_session_delete(s->service, s->caller, str_of(s->session), on_deleted, NULL);
}

static void on_queued(void *arg, const struct exec_info *info)
{
    struct script_exec *s = arg;

    snprintf(s->session, sizeof(s->session), "%s", info->row->session);
    prisme_task_on_queued(s->task);
}

static bool is_pdf(const char *mime, const char *url)
{
    char name[256];
    size_t n;

    url_file_name(str_of(url), name, sizeof(name));
    n = strlen(name);
    return strncmp(mime, "application/pdf", 15) == 0 ||
           (n > 4 && strcasecmp(name + n - 4, ".pdf") == 0);
}

static bool on_input(void *arg, size_t i, const char *mime, const struct err *failed)
{
    struct script_exec *s = arg;
    const char *url = json_string_value(json_array_get(s->files, i));
    bool ours = failed && failed->kind == ERR_HOST;
    char shown[NAME_SHOWN];

    name_show(shown, str_of(url));
    if (failed)
        s->bad_file = failure(ours ? "CodeSandboxUnreachable" : "FileDownloadFailed",
                              "%s could not be fetched: %s", shown,
                              ours ? "the server failed" : failed->text);
    else if (is_pdf(mime, url))
        s->bad_file = failure("UnsupportedFileType",
                              "%s is a PDF, which is not supported: give CSV, TSV, Excel (.xlsx), "
                              "JSON or text",
                              shown);
    return !s->bad_file;
}

static bool on_ask(void *arg, const struct approval_info *info)
{
    struct script_exec *s = arg;

    return (s->call && call_on_ask(s->call, s->x, info)) || prisme_task_on_ask(s->task, info);
}

static void on_end(void *arg, const struct exec_info *info, const struct err *failed)
{
    struct script_exec *s = arg;
    const struct execution *x = take_ptr(&s->x);
    const struct approval_info *approval = execution_approval(x);
    json_t *value;

    if (s->call && !s->bad_file && call_on_end(s->call, x, failed))
        return; /* and with the call s has gone */
    value = s->bad_file ? json_incref(s->bad_file)
            : approval  ? not_approved(approval)
            : failed    ? not_executed(s, failed)
                        : value_of_run(info);
    s->keeps = json_object_get(value, "files") != NULL;
    end(s);
    s->fn(s->arg, value);
    json_decref(value);
}

void script_exec_start(struct script_exec *s)
{
    static const struct exec_watcher watcher = {
        .on_queued = on_queued, .on_end = on_end, .on_ask = on_ask, .on_input = on_input};
    AUTO_FREE char *parameters = s->parameters ? record_dump(s->parameters, false, NULL) : NULL;
    json_t *args = json_pack("{s:o}", "code", record_text(s->code));
    struct file_input files[FILES_MAX + 1];
    char names[FILES_MAX][256];
    struct env_var env[PRISME_ENV];
    struct exec_spec spec = {
        .pool = str_of(s->prisme->config.pool),
        .kind = EXEC_CELL,
        .code = s->code,
        .wall_ms = s->prisme->config.timeout_ms,
        .env = env,
        .env_count = COUNT(env),
        .files = files,
        .lane = &s->prisme->lane,
        .ask = {.tool = STR("execute_python"),
                .args = args,
                .code = json_view(json_object_get(args, "code")),
                .conversation = s->conversation},
    };

    prisme_env(s->prisme, env);
    if (s->files)
        json_object_set(args, "files", s->files);
    if (s->parameters) /* code that is agreed to is agreed to with these */
        json_object_set(args, "parameters", s->parameters);
    if (s->call)
        spec.ask = call_approval_ask(s->call, s->code);
    for (; spec.file_count < json_array_size(s->files); spec.file_count++) {
        struct str url = json_view(json_array_get(s->files, spec.file_count));
        url_file_name(url, names[spec.file_count], sizeof(*names));
        files[spec.file_count] =
            (struct file_input){.path = str_of(names[spec.file_count]), .url = url};
    }
    if (parameters)
        files[spec.file_count++] = (struct file_input){
            .path = STR(".parameters.json"), .content = str_of(parameters), .has_content = true};
    s->x = service_execute(s->service, s->caller, &spec, &watcher, s);
    json_decref(args);
}

void script_exec_leave(struct script_exec *s)
{
    if (s->x)
        execution_leave(s->x);
    end(s);
}
