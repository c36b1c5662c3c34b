/*
 * From a request to the message that answers it.
 *
 * Theory of operation: the container is found first, as the first event of a stream names
 * it. What an earlier message has left open is done next: calls that were put off, code
 * that waits for answers. Then the model is asked, the calls of its reply are made in their
 * order, one at a time, and it is asked again with their results. It ends when the model
 * has nothing to call; when it calls a tool of the client, which calls of ours wait for;
 * when code does; or it pauses, as what was said and done so far is best kept: the client
 * sends it back, and nothing is done twice.
 */
#include "doors/anthropic/turn_int.h"

#include <stdio.h>
#include <stdlib.h>

#define LOG_STDERR (2 * KiB) /* of one call, in the manifest */

static void ask_model(struct turn *r);
static void work(struct turn *r);

static void due_clear(struct turn *r)
{
    for (size_t i = 0; i < r->due_count; i++) {
        json_decref(r->due[i].input);
        json_decref(r->due[i].answers);
    }
    free(take_ptr(&r->due));
    r->due_count = r->due_at = 0;
}

static void turn_free(struct turn *r)
{
    due_clear(r);
    message_done(&r->message);
    history_done(&r->history);
    ask_done(&r->ask);
    json_decref(r->outputs);
    json_decref(r->log);
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
    if (r->deed)
        deed_leave(take_ptr(&r->deed));
    if (r->waits == 0)
        turn_free(r);
}

const struct message *turn_message(const struct turn *r)
{
    return &r->message;
}

const struct turn_failure *turn_failure(const struct turn *r)
{
    return r->failure.status ? &r->failure : NULL;
}

bool turn_is_over(const struct turn *r)
{
    return r->over;
}

void turn_greet(struct turn *r)
{
    if (r->ask.stream && !r->over && r->model && (*r->session || !r->ask.version))
        message_begin(&r->message);
}

size_t turn_settle(struct turn *r)
{
    assert(r->over);
    due_clear(r);
    history_done(&r->history);
    ask_done(&r->ask);
    if (r->message.stream)
        json_array_clear(r->message.content);
    return r->bytes + r->message.log.n;
}

void turn_tell(struct turn *r)
{
    if (r->on_news)
        r->on_news(r->arg);
}

/* --- calls --- */

static void put_block(struct turn *r, json_t *block)
{
    r->bytes += 4 * tokens_of(block);
    message_block(&r->message, block);
}

/* The end of it, which says what went wrong; NULL when there is none. */
static json_t *stderr_end(const json_t *content)
{
    struct str s = json_view(json_object_get(content, "stderr"));

    for (; s.n > LOG_STDERR || (s.n > 0 && ((unsigned char)*s.p & 0xc0) == 0x80); s.p++)
        s.n--;
    return s.n > 0 ? json_stringn(s.p, s.n) : NULL;
}

/* For the manifest: what was run, and how it ended. */
static void log_call(struct turn *r, const struct due *t, const json_t *content)
{
    json_t *code = json_object_get(content, "return_code");
    json_t *error = json_object_get(content, "error_code");

    json_array_append_new(r->log,
                          json_pack("{s:s, s:s, s:O, s:O*, s:O*, s:o*}", "id", t->id, "tool",
                                    sub_tools[t->sub].name, "input", t->input, "return_code", code,
                                    "error_code", error, "stderr", stderr_end(content)));
}

/* content, images: borrowed; text: for the model in place of the content's, or NULL. */
static void take_result(struct turn *r, struct due *t, json_t *content, json_t *images,
                        const char *text)
{
    json_t *said = text ? json_string(text) : content_said(content);

    log_call(r, t, content);
    put_block(r, block_result(t->sub, t->id, json_incref(content)));
    history_answer(&r->history, t->inner, said, r->model->sees_images ? images : NULL);
    json_decref(said);
    r->due_at++;
    turn_tell(r);
    work(r);
}

static void on_over(void *arg, json_t *content, json_t *outputs, json_t *images, const char *text)
{
    struct turn *r = arg;

    r->deed = NULL;
    json_array_extend(r->outputs, outputs);
    take_result(r, &r->due[r->due_at], content, images, text);
}

/* The message ends with what its code has called, and the code waits. */
static void on_calls(void *arg, json_t *calls)
{
    struct turn *r = arg;
    json_t *caller =
        json_pack("{s:s, s:s}", "type", r->ask.version->caller, "tool_id", r->due[r->due_at].id);
    json_t *one;
    size_t i;

    json_array_foreach(calls, i, one)
        put_block(r, block_client_use(json_string_value(json_object_get(one, "id")),
                                      json_string_value(json_object_get(one, "name")),
                                      json_object_get(one, "input"), caller));
    json_decref(caller);
    deed_park(take_ptr(&r->deed));
    turn_finish(r, "tool_use");
}

static void on_approval(void *arg, const struct approval_row *row)
{
    struct turn *r = arg;

    r->deed = NULL;
    r->message.approval =
        json_pack("{s:s, s:s, s:o}", "id", row->id, "tool_use_id", r->due[r->due_at].id,
                  "expires_at", stamp_value(row->expires_ms));
    turn_finish(r, "pause_turn");
}

static const struct deed_watcher deed_watcher = {on_over, on_calls, on_approval};

static void start_call(struct turn *r, struct due *t)
{
    assert(r->ask.version); /* else nothing of ours was offered, and nothing could wait */
    const struct deed_spec spec = {.anthropic = r->anthropic,
                                   .service = r->service,
                                   .caller = &r->caller,
                                   .sub = t->sub,
                                   .repl = r->ask.version->repl,
                                   .id = t->id,
                                   .session = r->session,
                                   .job = r->message.id,
                                   .number = ++r->calls,
                                   .input = t->input,
                                   .callable = r->ask.callable};

    r->message.runs++;
    r->deed = deed_start(&spec, &deed_watcher, r);
}

/* Gone: too long ago, or the server was started anew, or another node's. */
static void resume_call(struct turn *r, struct due *t)
{
    static const char text[] = "Error: the interpreter that ran this has not waited for its tools "
                               "to answer, or the server was restarted; its variables are lost, "
                               "files are kept. Run it again if it is still needed.";
    struct deed *c = deed_find(r->anthropic, r->caller.tenant, t->id);
    json_t *lost;

    if (!c) {
        lost = content_error(t->sub, "unavailable");
        take_result(r, t, lost, NULL, text);
        json_decref(lost);
        return;
    }
    if (!deed_resume(c, t->answers, &deed_watcher, r)) {
        turn_fail(
            r, 400, NULL,
            "messages: `tool_use` ids were found without `tool_result` blocks immediately after: "
            "all calls of the code are answered together");
        return;
    }
    r->deed = c;
}

static bool has_time(const struct turn *r)
{
    return (uint64_t)(time_mono_us() - r->begun_us) / 1000 < r->anthropic->config.wall_ms;
}

/* Text of some kinds is six times as long in an event. */
static bool is_long(const struct turn *r)
{
    return r->bytes > MESSAGE_BYTES || r->message.log.n > LOG_BYTES / 2;
}

/* The next call, or the model. */
static void work(struct turn *r)
{
    struct due *t;
    json_t *bad;

    if (r->due_at == r->due_count) {
        due_clear(r);
        ask_model(r);
        return;
    }
    t = &r->due[r->due_at];
    if (is_long(r) || (r->due_at > 0 && !has_time(r))) {
        turn_finish(r, "pause_turn");
    } else if (t->broken) {
        bad = content_error(t->sub, "invalid_tool_input");
        take_result(r, t, bad, NULL, NULL);
        json_decref(bad);
    } else if (t->answers) {
        resume_call(r, t);
    } else {
        start_call(r, t);
    }
}

/* --- replies --- */

static void put_call(struct turn *r, json_t *part)
{
    const char *name = json_string_value(json_object_get(part, "name"));
    json_t *args = json_object_get(part, "args"), *raw = json_object_get(part, "raw");
    int sub = *r->session ? sub_find(name) : -1;
    char id[TOOL_ID_MAX], inner[24];
    json_t *input;

    if (json_is_object(args))
        input = json_incref(args);
    else
        input = raw ? json_pack("{s:O}", "raw", raw) : json_object();
    tool_id_make(id, sub >= 0 ? "srvtoolu_" : "toolu_", r->session);
    history_call_id(&r->history, inner);
    json_object_set_new(part, "id", json_string(inner));
    if (sub < 0) {
        put_block(r, block_client_use(id, name ? name : "", input, NULL));
        json_decref(input);
        return;
    }
    put_block(r, block_use((enum sub)sub, id, input));
    r->due[r->due_count] =
        (struct due){.sub = (enum sub)sub, .input = input, .broken = !json_is_object(args)};
    memcpy(r->due[r->due_count].id, id, sizeof(id));
    memcpy(r->due[r->due_count++].inner, inner, sizeof(inner));
}

/* What has not been told of it yet. */
static void put_text(struct turn *r, size_t i, struct str text)
{
    size_t told = r->text_told && r->text_part == i ? r->text_bytes : 0;

    if (r->text_told && i < r->text_part)
        return;
    if (told == 0)
        message_text_end(&r->message);
    if (told < text.n)
        message_text(&r->message, (struct str){text.p + told, text.n - told});
    message_text_end(&r->message);
    r->bytes += text.n;
}

/* Returns how many calls are the client's. */
static size_t put_reply(struct turn *r, json_t *parts)
{
    size_t i, client = 0, calls = 0;
    json_t *part;

    r->due = mem_zalloc(REPLY_CALLS * sizeof(*r->due));
    json_array_foreach(parts, i, part)
    {
        const char *type = json_string_value(json_object_get(part, "type"));
        const char *api = json_string_value(json_object_get(part, "api"));

        if (strcmp(type, "text") == 0) {
            put_text(r, i, json_view(json_object_get(part, "text")));
        } else if (strcmp(type, "kept") == 0 && api && strcmp(api, "anthropic") == 0 &&
                   json_object_get(json_object_get(part, "block"), "type")) {
            put_block(r, json_incref(json_object_get(part, "block")));
        } else if (strcmp(type, "call") == 0 && calls++ < REPLY_CALLS) {
            size_t before = r->due_count;
            put_call(r, part);
            client += r->due_count == before;
        }
    }
    message_text_end(&r->message);
    return client;
}

static const char *const stops[] = {
    [MODEL_DONE] = "end_turn",   [MODEL_CALLS] = "end_turn", [MODEL_LENGTH] = "max_tokens",
    [MODEL_REFUSAL] = "refusal", [MODEL_PAUSE] = "end_turn",
};

/* Calls past the most are not made, so the model is not to see that it made them. */
static json_t *parts_copy(const json_t *parts)
{
    json_t *v = json_array(), *part;
    size_t i, calls = 0;

    json_array_foreach((json_t *)parts, i, part)
    {
        const char *type = json_string_value(json_object_get(part, "type"));
        if (strcmp(type, "call") != 0 || calls++ < REPLY_CALLS)
            json_array_append_new(v, json_copy(part));
    }
    return v;
}

static void take_reply(struct turn *r, const struct model_reply *reply)
{
    json_t *parts = parts_copy(reply->parts);
    size_t client = put_reply(r, parts);

    r->message.input_tokens += reply->input_tokens;
    r->message.output_tokens += reply->output_tokens;
    r->replied = true;
    history_reply(&r->history, parts);
    turn_tell(r);
    bool cut = reply->stop == MODEL_LENGTH || reply->stop == MODEL_REFUSAL;
    if (!cut && client == 0 && (r->due_count > 0 || reply->stop == MODEL_PAUSE))
        work(r);
    else
        turn_finish(r, !cut && client > 0 ? "tool_use" : stops[reply->stop]);
}

/* --- asking --- */

static void on_text(void *arg, size_t part, struct str piece)
{
    struct turn *r = arg;

    if (!r->ask.stream || piece.n == 0)
        return;
    if (r->text_told && part != r->text_part)
        message_text_end(&r->message);
    if (!r->text_told || part != r->text_part)
        r->text_bytes = 0;
    r->text_told = true;
    r->text_part = part;
    r->text_bytes += piece.n;
    message_text(&r->message, piece);
    turn_tell(r);
}

static void on_reply(void *arg, const struct model_reply *reply, const struct model_failure *failed)
{
    struct turn *r = arg;

    r->asking = NULL;
    if (failed)
        turn_no_reply(r, failed);
    else
        take_reply(r, reply);
}

static uint64_t tell_seconds(uint64_t ms, uint64_t most)
{
    return (ms && ms < most ? ms : most) / 1000;
}

static json_t *tools_of(struct turn *r)
{
    const struct anthropic_config *config = &r->anthropic->config;
    json_t *tools = r->ask.forced_sub && !r->replied ? json_array() : json_copy(r->ask.tools);
    struct pool_info pool;
    struct tool_limits limits;

    if (!r->ask.version)
        return tools;
    service_pool_get(r->service, 0, &pool);
    for (size_t i = 1; config->pool && i < service_pool_count(r->service) &&
                       strcmp(pool.pool->name, config->pool) != 0;
         i++)
        service_pool_get(r->service, i, &pool);
    limits = (struct tool_limits){
        .call_s = tell_seconds(config->timeout_ms, pool.pool->limits.wall_ms),
        .cell_s = tell_seconds(r->ask.version->repl ? config->cell_ms : config->timeout_ms,
                               pool.pool->limits.wall_ms),
        .outside = pool.pool->egress == EGRESS_ALLOW_LIST};
    tools_offer(tools, r->ask.subs, r->ask.callable, &limits);
    return tools;
}

static void ask_model(struct turn *r)
{
    static const struct model_watcher watcher = {on_text, on_reply};
    json_t *tools;

    history_close(&r->history);
    if (r->turns > 0 && (r->turns >= r->anthropic->config.turns || !has_time(r) || is_long(r) ||
                         r->anthropic->draining)) {
        turn_finish(r, "pause_turn");
        return;
    }
    r->turns++;
    tools = tools_of(r);
    const struct model_ask ask = {
        .system = buf_str(&r->ask.system),
        .messages = r->history.messages,
        .tools = json_array_size(tools) > 0 ? tools : NULL,
        .choice = r->replied && r->ask.choice == MODEL_MUST_CALL ? MODEL_AUTO : r->ask.choice,
        .tool = r->replied ? (struct str){0} : str_of(r->ask.forced),
        .one_at_a_time = r->ask.one_at_a_time,
        .stop = r->ask.stop,
        .max_tokens = r->ask.max_tokens,
        .name = str_of(r->ask.model),
        .turn = r->history.replies,
    };

    r->text_told = false;
    r->asking = model_ask(r->model, &ask, &watcher, r);
    json_decref(tools);
}

/* --- the beginning --- */

static void take_waiting(struct turn *r)
{
    struct history *h = &r->history;

    r->due = mem_zalloc((h->waiting_count + 1) * sizeof(*r->due));
    for (size_t i = 0; i < h->waiting_count; i++) {
        struct due *t = &r->due[r->due_count++];
        *t = (struct due){.sub = h->waiting[i].sub,
                          .input = json_is_object(h->waiting[i].input)
                                       ? json_incref(h->waiting[i].input)
                                       : json_object(),
                          .answers = take_ptr(&h->waiting[i].answers)};
        snprintf(t->id, sizeof(t->id), "%s", h->waiting[i].id);
        memcpy(t->inner, h->waiting[i].inner, sizeof(t->inner));
    }
    work(r);
}

static void on_lodged(void *arg, const struct session_row *row, bool made, const struct err *failed,
                      const char *code)
{
    struct turn *r = arg;

    if (turn_is_gone(r))
        return;
    if (failed) {
        turn_fail_err(r, failed, code);
        return;
    }
    memcpy(r->session, row->id, sizeof(r->session));
    r->made = made;
    turn_set_container(r, row);
    take_waiting(r);
}

static const char no_model[] =
    "NoModelConfigured: this server has no model that could answer. Its operator names one with "
    "--model-url. Without a model code can be run directly: POST /v1/sessions and "
    "/v1/sessions/{session}/execute, or the tools at /mcp.";

static void begin(void *arg)
{
    struct turn *r = arg;
    struct lodging_spec spec = {.anthropic = r->anthropic,
                                .service = r->service,
                                .caller = &r->caller,
                                .container = json_view(r->ask.container),
                                .session = r->history.session,
                                .uploads = r->history.uploads};

    struct err e;

    if (turn_is_gone(r))
        return;
    (void)!buf_put(&r->ask.system, buf_str(&r->history.system), &e);
    r->model = models_find(r->anthropic->config.models, r->caller.tenant, str_of(r->ask.model));
    if (!r->model) {
        r->failure.final = true;
        turn_fail(r, 400, NULL, no_model);
    } else if (!r->ask.version && json_array_size(r->history.uploads) > 0) {
        turn_fail(r, 400, NULL, "messages: container_upload needs the code_execution tool");
    } else if (!r->ask.version && r->history.waiting_count > 0) {
        turn_fail(
            r, 400, NULL,
            "messages: a tool use of code execution was found without a corresponding result, but "
            "no code_execution tool was provided");
    } else if (!r->ask.version) {
        work(r);
    } else if (r->history.pending_code && !spec.container.n && !*r->history.session) {
        turn_fail(
            r, 400, NULL,
            "container_id is required when there are pending tool uses generated by code execution "
            "with tools.");
    } else {
        r->waits++;
        lodging_start(&spec, on_lodged, r);
    }
}

struct turn *turn_start(const struct turn_spec *spec, struct ask *ask, struct history *h,
                        loop_fn *on_news, void *arg)
{
    struct turn *r = mem_zalloc(sizeof(*r));

    *r = (struct turn){.anthropic = spec->anthropic,
                       .service = spec->service,
                       .caller = *spec->caller,
                       .ask = *ask,
                       .history = *h,
                       .on_news = on_news,
                       .arg = arg,
                       .begun_us = time_mono_us(),
                       .outputs = json_array(),
                       .log = json_array()};
    *ask = (struct ask){0};
    *h = (struct history){0};
    message_init(&r->message, r->ask.model, r->ask.stream);
    r->waits++;
    loop_later(spec->anthropic->config.loop, begin, r);
    return r;
}
