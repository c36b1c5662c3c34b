/*
 * A script from its order to its answer: its turn, its files, whoever must agree, the
 * code. Each step ends in a callback that begins the next. Whatever happens, there is an
 * answer, and it is an object with a result or an error.
 *
 * So many scripts run at a time; the others wait in the order they came, and none is
 * refused before WAITING_MAX_ of them do.
 */
#include "doors/prisme/prisme_int.h"

#include "fetch/fetch.h"

#include <stdio.h>
#include <stdlib.h>

struct given_file {
    char name[256];
    char id[ID_MAX];
};

struct script {
    struct script *next; /* waiting */
    struct prisme *prisme;
    struct service *service;
    struct caller caller;
    struct clearance clearance;
    bool cleared;
    bool has_turn;
    char *code;         /* owned */
    char *conversation; /* owned */
    json_t *files;      /* owned, or NULL */
    char *parameters;   /* owned, or NULL: as JSON */
    struct given_file given[FILES_MAX];
    size_t count; /* of these, fetched */
    json_t *args; /* owned: what a person is asked about */
    struct job *job;
    char session[ID_MAX];
    bool keeps;    /* it has left files: its session is not deleted */
    script_fn *fn; /* NULL: nobody waits any more */
    void *arg;
    int64_t begun_us;
};

static void start_turn(struct script *s);

static void done_deleted(void *arg, const struct err *failed)
{
    (void)arg, (void)failed; /* it goes with the retention then */
}

static void give_turn_back(struct script *s)
{
    struct prisme *p = s->prisme;
    struct script *next;

    if (!s->has_turn)
        return;
    s->has_turn = false;
    p->running--;
    while (p->running < p->config.parallel && (next = p->waiting)) {
        p->waiting = next->next;
        if (!p->waiting)
            p->waiting_end = &p->waiting;
        p->waiting_count--;
        start_turn(next);
    }
}

static void script_free(struct script *s)
{
    give_turn_back(s);
    for (size_t i = 0; i < s->count; i++)
        service_file_delete(s->service, &s->caller, str_of(s->given[i].id), done_deleted, NULL);
    if (*s->session && !s->keeps)
        service_session_delete(s->service, &s->caller, str_of(s->session), done_deleted, NULL);
    free(s->code);
    free(s->conversation);
    free(s->parameters);
    json_decref(s->files);
    json_decref(s->args);
    free(s);
}

/* --- answers: each is the last of the script --- */

static uint64_t elapsed_ms(const struct script *s)
{
    return (uint64_t)(time_mono_us() - s->begun_us) / 1000;
}

/* Takes value. */
static void answer(struct script *s, json_t *value, const char *task)
{
    if (s->fn)
        s->fn(s->arg, value, task);
    json_decref(value);
    script_free(s);
}

static void fail(struct script *s, const char *code, const char *fmt, ...) PRINTF(3, 4);
static void fail(struct script *s, const char *code, const char *fmt, ...)
{
    char text[1024];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    answer(s, value_of_failure(code, text, elapsed_ms(s)), "");
}

/* What the service would not do. */
static void refuse(struct script *s, const struct err *why)
{
    if (why->kind == ERR_HOST)
        log_error("%s: %s", s->caller.request, why->text);
    if (why->kind == ERR_HOST || why->kind == ERR_BUSY)
        fail(s, "CodeSandboxUnreachable", "the sandbox cannot be reached at the moment%s%s",
             why->kind == ERR_BUSY ? ": " : "", why->kind == ERR_BUSY ? why->text : "");
    else
        fail(s, why->kind == ERR_DENIED ? "ApprovalDenied" : "InvalidRequest", "%s", why->text);
}

static bool is_gone(struct script *s)
{
    if (s->fn)
        return false;
    script_free(s);
    return true;
}

/* --- the code --- */

static void on_queued(void *arg, const struct exec_info *info)
{
    struct script *s = arg;

    snprintf(s->session, sizeof(s->session), "%s", info->row->session);
}

static void on_event(void *arg, const struct event *ev)
{
    (void)arg, (void)ev;
}

static void on_end(void *arg, const struct exec_info *info, const struct err *failed)
{
    struct script *s = arg;
    json_t *value;

    s->job = NULL;
    if (failed) {
        refuse(s, failed);
        return;
    }
    value = value_of_run(info, elapsed_ms(s));
    s->keeps = json_object_get(value, "files") != NULL;
    answer(s, value, "");
}

static size_t fill_files(const struct script *s, struct file_input *ret)
{
    size_t n = 0;

    for (; n < s->count; n++)
        ret[n] = (struct file_input){.path = str_of(s->given[n].name),
                                     .file_id = str_of(s->given[n].id)};
    if (s->parameters)
        ret[n++] = (struct file_input){
            .path = STR(".parameters.json"), .content = str_of(s->parameters), .has_content = true};
    return n;
}

static void execute(struct script *s)
{
    static const struct exec_watcher watcher = {on_queued, on_event, on_end};
    struct env_var env[PRISME_ENV];
    struct file_input files[FILES_MAX + 1];
    const struct exec_spec spec = {
        .pool = str_of(s->prisme->config.pool),
        .kind = EXEC_CELL,
        .code = str_of(s->code),
        .wall_ms = s->prisme->config.timeout_ms,
        .env = env,
        .env_count = COUNT(env),
        .files = files,
        .file_count = fill_files(s, files),
        .clearance = &s->clearance,
    };

    prisme_env(s->prisme, env);
    s->job = service_execute(s->service, &s->caller, &spec, &watcher, s);
}

/* --- whoever must agree --- */

static void on_verdict(void *arg, const struct approval_info *info, const struct err *failed)
{
    struct script *s = arg;

    if (is_gone(s))
        return;
    if (failed) {
        refuse(s, failed);
    } else if (info->verdict == APPROVAL_CLEAR) {
        s->clearance = info->clearance;
        execute(s);
    } else if (info->verdict == APPROVAL_WAIT && info->row) {
        char task[ID_MAX];
        snprintf(task, sizeof(task), "%s", info->row->id);
        answer(s,
               value_of_failure("ApprovalRequired",
                                "nothing has been run yet: a person must agree first; send the "
                                "same call again when it has been approved",
                                elapsed_ms(s)),
               task);
    } else {
        fail(s, "ApprovalDenied", "%s",
             info->row && info->row->reason ? info->row->reason
                                            : "the person who must agree has not agreed");
    }
}

static void clear(struct script *s)
{
    struct approval_spec spec = {.tool = STR("execute_python"),
                                 .language = STR("python"),
                                 .pool = str_of(s->prisme->config.pool),
                                 .conversation = str_of(s->conversation)};

    if (s->cleared || !service_asks(s->service)) {
        execute(s);
        return;
    }
    s->args = json_pack("{s:o}", "code", record_text(str_of(s->code)));
    if (s->files)
        json_object_set(s->args, "files", s->files);
    spec.args = s->args;
    spec.code = json_view(json_object_get(s->args, "code"));
    service_approval_request(s->service, &s->caller, &spec, on_verdict, s);
}

/* --- files --- */

static void fetch_next(struct script *s);

static bool is_pdf(const struct file_row *file)
{
    size_t n = strlen(file->name);

    return strstr(file->mime, "application/pdf") == file->mime ||
           (n > 4 && strcasecmp(file->name + n - 4, ".pdf") == 0);
}

static void on_fetched(void *arg, const struct file_row *file, const struct err *failed)
{
    struct script *s = arg;
    const char *url = json_string_value(json_array_get(s->files, s->count));
    char shown[NAME_SHOWN];
    bool pdf = !failed && is_pdf(file);

    if (is_gone(s))
        return;
    name_show(shown, str_of(url));
    if (failed) {
        fail(s, failed->kind == ERR_HOST ? "CodeSandboxUnreachable" : "FileDownloadFailed",
             "%s could not be fetched: %s", shown,
             failed->kind == ERR_HOST ? "the server failed" : failed->text);
        return;
    }
    snprintf(s->given[s->count].id, sizeof(s->given[s->count].id), "%s", file->id);
    s->count++;
    if (pdf)
        fail(s, "UnsupportedFileType",
             "%s is a PDF, which is not supported: give CSV, TSV, Excel (.xlsx), JSON or text",
             shown);
    else
        fetch_next(s);
}

static void fetch_next(struct script *s)
{
    const char *url = json_string_value(json_array_get(s->files, s->count));
    struct given_file *f = &s->given[s->count];

    if (!url) {
        clear(s);
        return;
    }
    url_file_name(str_of(url), f->name, sizeof(f->name));
    service_file_fetch(s->service, &s->caller, str_of(url), str_of(f->name), on_fetched, s);
}

/* --- its turn --- */

static void on_turn(void *arg)
{
    struct script *s = arg;

    if (!is_gone(s))
        fetch_next(s);
}

static void start_turn(struct script *s)
{
    s->has_turn = true;
    s->prisme->running++;
    loop_later(s->prisme->config.loop, on_turn, s);
}

static void on_full(void *arg)
{
    struct script *s = arg;

    fail(s, "CodeSandboxUnreachable", "%d scripts wait for their turn already", WAITING_MAX_);
}

static void on_bad_files(void *arg)
{
    struct script *s = arg;

    fail(s, "InvalidRequest", "files is a list of at most %d URLs, http, https or data", FILES_MAX);
}

static bool files_are_good(const json_t *files)
{
    const json_t *one;
    size_t i;

    if (files && (!json_is_array(files) || json_array_size(files) > FILES_MAX))
        return false;
    json_array_foreach(files, i, one)
    {
        struct str url = json_view(one);
        if (url.n == 0 || strlen(url.p) != url.n ||
            (url.n > URL_BYTES && memcmp(url.p, "data:", 5) != 0))
            return false;
    }
    return true;
}

struct script *script_start(const struct script_spec *spec, script_fn *fn, void *arg)
{
    struct script *s = mem_zalloc(sizeof(*s));
    struct prisme *p = spec->prisme;

    *s = (struct script){.prisme = p, .service = spec->service, .caller = *spec->caller};
    s->fn = fn;
    s->arg = arg;
    s->begun_us = time_mono_us();
    s->cleared = spec->clearance != NULL;
    if (spec->clearance)
        s->clearance = *spec->clearance;
    s->code = mem_strndup(spec->code);
    s->conversation = mem_strndup(spec->conversation);
    s->files = json_incref(spec->files);
    s->parameters = spec->parameters ? record_dump(spec->parameters, false, NULL) : NULL;
    if (!files_are_good(s->files)) {
        loop_later(p->config.loop, on_bad_files, s);
    } else if (p->running < p->config.parallel) {
        start_turn(s);
    } else if (p->waiting_count >= WAITING_MAX_) {
        loop_later(p->config.loop, on_full, s);
    } else {
        *p->waiting_end = s;
        p->waiting_end = &s->next;
        p->waiting_count++;
    }
    return s;
}

void script_leave(struct script *s)
{
    s->fn = NULL;
    if (!s->job)
        return;
    job_leave(take_ptr(&s->job));
    script_free(s);
}

void scripts_free(struct prisme *p)
{
    for (struct script *s = p->waiting, *next; s; s = next) {
        next = s->next;
        free(s->code);
        free(s->conversation);
        free(s->parameters);
        json_decref(s->files);
        free(s);
    }
    p->waiting = NULL;
}
