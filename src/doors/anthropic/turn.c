/*
 * A turn: from a request to the message that answers it.
 *
 * Theory of operation: the container is prepared first, as the first event of a stream names it.
 * Calls that an earlier message left without a result are made next. Then the model is asked, the
 * server tool calls of its reply are made one after the other, and the model is asked again with
 * the results. The message ends when the model makes no calls; when the model, or code, calls a
 * client tool; or it pauses (pause_turn) at a limit: the client sends it back, the next turn
 * continues, and nothing is done twice.
 */
#include "doors/anthropic/turn_int.h"

#include <stdio.h>
#include <stdlib.h>

#define LOG_STDERR (2 * KiB) /* of one call, in the manifest */
#define PROMISE_MS 3600000   /* told of a container that no call has made; it is kept for longer */

static void turn_free(struct turn *r)
{
    message_done(&r->message);
    history_done(&r->history);
    request_params_done(&r->params);
    json_decref(r->outputs);
    json_decref(r->log);
    json_decref(r->uploads);
    json_decref(r->skills);
    json_decref(r->skill_files);
    json_decref(r->parts_told);
    free(r);
}

bool turn_is_gone(struct turn *r)
{
    r->waits--;
    if (r->left && r->waits == 0)
        turn_free(r);
    else if (!r->left)
        return false;
    return true;
}

void turn_leave(struct turn *r)
{
    r->on_news = NULL;
    r->left = true;
    if (r->asking)
        model_call_cancel(take_ptr(&r->asking));
    if (r->tool_call)
        tool_call_leave(take_ptr(&r->tool_call));
    if (r->pdfs)
        pdf_texts_leave(take_ptr(&r->pdfs));
    if (r->waits == 0)
        turn_free(r);
}

void turn_greet(struct turn *r)
{
    if (r->params.stream && !r->over && r->model && (r->message.container || !r->params.version))
        message_begin(&r->message);
}

size_t turn_settle(struct turn *r)
{
    assert(r->over);
    history_done(&r->history);
    request_params_done(&r->params);
    if (r->message.stream)
        json_array_clear(r->message.content);
    return r->bytes + r->message.log.n;
}

void turn_tell(struct turn *r)
{
    if (r->on_news)
        r->on_news(r->arg);
}

/* --- the end --- */

static void end(struct turn *r)
{
    r->over = true;
    turn_tell(r);
}

void turn_fail_with(struct turn *r, int status, const char *code, const char *text)
{
    r->failure.status = status;
    r->failure.code = code ? code : CODE_INVALID;
    snprintf(r->failure.text, sizeof(r->failure.text), "%s", text);
    end(r);
}

void turn_fail(struct turn *r, const struct err *e, const char *code)
{
    int status = http_status_of(e);

    r->failure.retry_s = e->retry_s;
    if (e->kind == ERR_HOST)
        log_error("%s: %s", r->caller.request, e->text);
    if (e->kind == ERR_BUSY)
        status = 529;
    turn_fail_with(r, status, code, e->kind == ERR_HOST ? "Internal server error" : e->text);
}

static void set_container(struct turn *r, int64_t expires_ms)
{
    json_decref(r->message.container);
    r->message.container = container_value(r->session, expires_ms, r->skills);
}

static void end_message(struct turn *r)
{
    message_end(&r->message, r->stop);
    if (!r->message.full)
        return end(r);
    r->failure.final = true; /* a retry would run the code again */
    turn_fail_with(r, 500, NULL, "The answer is longer than a message can be.");
}

static void on_session_now(void *arg, const struct session_info *info, const struct err *failed)
{
    struct turn *r = arg;

    if (turn_is_gone(r))
        return;
    if (!failed)
        set_container(r, info->row->expires_ms);
    end_message(r);
}

/* The container's deadline moves with each use, so it is read again at the end. */
static void finish_container(struct turn *r)
{
    if (!r->exists && !r->called)
        json_decref(take_ptr(&r->message.container)); /* nothing has used it */
    if (!r->exists)
        return end_message(r);
    r->waits++;
    service_session_get(r->service, &r->caller, str_of(r->session), on_session_now, r);
}

static void on_manifest(void *arg, const struct space_file *files, size_t count,
                        const struct err *failed)
{
    struct turn *r = arg;

    (void)files, (void)count;
    if (failed)
        log_warn("%s: no manifest: %s", r->caller.request, failed->text);
    if (!turn_is_gone(r))
        finish_container(r);
}

/* Writes <message id>/manifest.json: the calls of the message, and the files given to the user. */
static void write_manifest(struct turn *r)
{
    char path[ID_MAX + 32], container[ID_MAX];
    char *text;
    json_t *v;

    container_of_session(r->session, container);
    v = json_pack("{s:s, s:s, s:O, s:O}", "job", r->message.id, "container", container, "calls",
                  r->log, "outputs", r->outputs);
    text = json_dumps(v, JSON_INDENT(2));
    json_decref(v);
    assert(text); /* all of it was JSON before */
    snprintf(path, sizeof(path), "%s/manifest.json", r->message.id);
    r->waits++;
    service_space_write(r->service, &r->caller, str_of(r->session), str_of(path), text,
                        strlen(text), on_manifest, r);
}

void turn_finish(struct turn *r, const char *stop)
{
    r->stop = stop;
    if (json_array_size(r->outputs) > 0)
        write_manifest(r);
    else
        finish_container(r);
}

/* --- calls --- */

static struct pending_call *current(struct turn *r)
{
    return &r->history.pending[r->pending_at];
}

void turn_put(struct turn *r, json_t *block)
{
    r->bytes += 4 * tokens_of(block);
    message_block(&r->message, block);
}

/* The end of stderr, which says what went wrong; NULL when it is empty. */
static json_t *stderr_end(const json_t *content)
{
    struct str s = view_of(content, "stderr");

    for (; s.n > LOG_STDERR || (s.n > 0 && ((unsigned char)*s.p & 0xc0) == 0x80); s.p++)
        s.n--;
    return s.n > 0 ? json_stringn(s.p, s.n) : NULL;
}

/* Adds a call to the manifest. */
static void log_call(struct turn *r, const struct pending_call *t, const json_t *content)
{
    json_t *code = json_object_get(content, "return_code");
    json_t *error = json_object_get(content, "error_code");

    json_array_append_new(r->log,
                          json_pack("{s:s, s:s, s:O, s:O*, s:O*, s:o*}", "id", t->id, "tool",
                                    server_tools[t->tool].name, "input", t->input, "return_code",
                                    code, "error_code", error, "stderr", stderr_end(content)));
}

/* content, images: borrowed; text: for the model in place of the content's, or NULL. */
static void take_result(struct turn *r, struct pending_call *t, json_t *content, json_t *images,
                        const char *text)
{
    json_t *said = text ? json_string(text) : content_said(content);

    log_call(r, t, content);
    turn_put(r, block_result(t->tool, t->id, json_incref(content)));
    history_answer(&r->history, t->model_call_id, said, r->model->sees_images ? images : NULL);
    json_decref(said);
    r->pending_at++;
    turn_tell(r);
    turn_work(r);
}

static void take_error(struct turn *r, struct pending_call *t, const char *code, const char *text)
{
    json_t *content = content_error(t->tool, code);

    take_result(r, t, content, NULL, text);
    json_decref(content);
}

void turn_on_result(struct turn *r, json_t *content, json_t *outputs, json_t *images,
                    const char *text)
{
    r->tool_call = NULL;
    json_array_extend(r->outputs, outputs);
    take_result(r, current(r), content, images, text);
}

void turn_on_client_calls(struct turn *r, json_t *calls)
{
    json_t *caller =
        json_pack("{s:s, s:s}", "type", r->params.version->caller, "tool_id", current(r)->id);
    json_t *one;
    size_t i;

    json_array_foreach(calls, i, one)
        turn_put(r, block_client_use(text_of(one, "id"), text_of(one, "name"),
                                     json_object_get(one, "input"), caller));
    json_decref(caller);
    tool_call_park(take_ptr(&r->tool_call));
    turn_finish(r, "tool_use");
}

void turn_on_approval(struct turn *r, const char *id, int64_t expires_ms)
{
    r->tool_call = NULL;
    r->message.approval = json_pack("{s:s, s:s, s:o}", "id", id, "tool_use_id", current(r)->id,
                                    "expires_at", time_json(expires_ms));
    turn_finish(r, "pause_turn");
}

/* The call is not found when its code waited too long, or the server was restarted. */
static void resume_call(struct turn *r, struct pending_call *t)
{
    static const char text[] = "Error: the interpreter that ran this has not waited for its tools "
                               "to answer, or the server was restarted; its variables are lost, "
                               "files are kept. Run it again if it is still needed.";
    struct tool_call *c = tool_call_find(r->anthropic, r->caller.tenant, t->id);

    if (!c)
        return take_error(r, t, "unavailable", text);
    if (tool_call_resume(c, t->answers, r))
        r->tool_call = c;
    else
        turn_fail_with(
            r, 400, NULL,
            "messages: `tool_use` ids were found without `tool_result` blocks immediately after: "
            "all calls of the code are answered together");
}

bool turn_has_time(const struct turn *r)
{
    return (uint64_t)(time_mono_us() - r->begun_us) / 1000 < r->anthropic->config.wall_ms;
}

/* The log, too: escapes can make a text six times as long. */
bool turn_is_long(const struct turn *r)
{
    return r->bytes > MESSAGE_BYTES || r->message.log.n > LOG_BYTES / 2;
}

/* Makes the next pending call; after the last one asks the model. */
void turn_work(struct turn *r)
{
    struct pending_call *t;

    if (r->pending_at == r->history.pending_count) {
        history_pending_clear(&r->history);
        r->pending_at = 0;
        return turn_ask(r);
    }
    t = current(r);
    if (turn_is_long(r) || (r->pending_at > 0 && !turn_has_time(r))) {
        turn_finish(r, "pause_turn");
    } else if (t->broken) {
        take_error(r, t, "invalid_tool_input", NULL);
    } else if (t->answers) {
        resume_call(r, t);
    } else {
        assert(r->params.version); /* else no server tool was offered, and no call pending */
        r->message.runs++;
        r->tool_call = tool_call_start(r, t);
    }
}

/* --- the beginning --- */

void turn_on_container(struct turn *r, int64_t expires_ms)
{
    set_container(r, expires_ms ? expires_ms : time_now_ms() + PROMISE_MS);
    if (r->exists && json_array_size(r->skill_files) > 0)
        skills_mount(r);
    else
        turn_work(r);
}

void turn_on_session(struct turn *r)
{
    if (r->exists)
        return;
    r->exists = true;
    container_made(r);
}

static const char no_model[] =
    "NoModelConfigured: this server has no model that could answer. Its operator names one with "
    "--model-url. Without a model code can be run directly: POST /v1/sessions and "
    "/v1/sessions/{session}/execute, or the tools at /mcp.";

/* An option of the request that the model's wire format does not have; NULL: there is none. */
static const char *missing_option(const struct turn *r)
{
    static const char *const names[] = {"temperature", "top_p", "top_k", "thinking",
                                        "output_config"};

    for (size_t i = 0; r->model->options && i < COUNT(names); i++) {
        const json_t *v = json_object_get(r->params.body, names[i]);
        const char *const *at = r->model->options;
        if (!v || json_is_null(v) || str_is(view_of(v, "type"), "disabled"))
            continue;
        while (*at && strcmp(*at, names[i]) != 0)
            at++;
        if (!*at)
            return names[i];
    }
    return NULL;
}

void turn_on_documents(struct turn *r)
{
    if (!r->params.version)
        turn_work(r);
    else if (json_array_size(r->params.skills) > 0)
        skills_prepare(r);
    else
        container_prepare(r);
}

void turn_on_attached(struct turn *r)
{
    const struct history *h = &r->history;
    char text[256];

    if (!r->model->options) /* a script */
        return turn_on_documents(r);
    if (h->first_image.is && !r->model->sees_images) {
        snprintf(
            text, sizeof(text),
            "messages.%zu: the model of this server sees no images. As a container_upload, code "
            "can read the file",
            h->first_image.message);
        turn_fail_with(r, 400, NULL, text);
    } else if (json_array_size(h->documents) > 0 && !r->model->takes_pdf) {
        pdf_texts_take(r);
    } else {
        turn_on_documents(r);
    }
}

static void begin(void *arg)
{
    struct turn *r = arg;
    char text[128];

    if (turn_is_gone(r))
        return;
    buf_put(&r->params.system, buf_str(&r->history.system));
    r->model = models_find(r->anthropic->config.models, r->caller.tenant, str_of(r->params.model));
    if (!r->model) {
        r->failure.final = true;
        turn_fail_with(r, 400, NULL, no_model);
    } else if (missing_option(r)) {
        snprintf(text, sizeof(text), "%s: the model of this server does not take it",
                 missing_option(r));
        turn_fail_with(r, 400, NULL, text);
    } else if (!r->params.version && json_array_size(r->history.uploads) > 0) {
        turn_fail_with(r, 400, NULL, "messages: container_upload needs the code_execution tool");
    } else if (!r->params.version && r->history.pending_count > 0) {
        turn_fail_with(
            r, 400, NULL,
            "messages: a tool use of code execution was found without a corresponding result, but "
            "no code_execution tool was provided");
    } else if (r->params.version && r->history.pending_code && !r->params.container &&
               !*r->history.session) {
        turn_fail_with(
            r, 400, NULL,
            "container_id is required when there are pending tool uses generated by code execution "
            "with tools.");
    } else if (json_array_size(r->history.attached) > 0) {
        attachments_read(r);
    } else {
        turn_on_attached(r);
    }
}

struct turn *turn_start(struct anthropic *a, struct messages_request *m, loop_fn *on_news,
                        void *arg)
{
    struct turn *r = mem_zalloc(sizeof(*r));

    *r = (struct turn){.anthropic = a,
                       .service = m->service,
                       .caller = m->caller,
                       .params = m->params,
                       .history = m->history,
                       .on_news = on_news,
                       .arg = arg,
                       .begun_us = time_mono_us(),
                       .uploads = json_array(),
                       .skills = json_array(),
                       .skill_files = json_array(),
                       .outputs = json_array(),
                       .log = json_array(),
                       .parts_told = json_array()};
    m->params = (struct request_params){0};
    m->history = (struct history){0};
    message_init(&r->message, r->params.model, r->params.stream);
    r->waits++;
    loop_later(a->config.loop, begin, r);
    return r;
}
