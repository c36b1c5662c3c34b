/*
 * The replies of the model: asks it, writes what it says as blocks of the message, and takes its
 * calls down, which turn.c makes.
 */
#include "doors/anthropic/turn_int.h"

#include <stdio.h>

static bool is_type(const json_t *block, const char *type)
{
    return str_is(view_of(block, "type"), type);
}

/* --- a model that does not reply --- */

static void fail_model(struct turn *r, const struct model_failure *f)
{
    switch (f->trouble) {
    case MODEL_BUSY:
        r->failure.retry_s = (int)(f->retry_ms / 1000) + (f->retry_ms % 1000 != 0);
        turn_fail_with(r, f->status == 429 ? 429 : 529, NULL,
                       "The model is busy. Try again later.");
        break;
    case MODEL_TOO_LONG:
        turn_fail_with(r, 400, NULL, "prompt is too long: it is more than the model takes");
        break;
    case MODEL_NO_TOOLS:
        turn_fail_with(r, 400, NULL, "tools: the model of this server knows no tools");
        break;
    case MODEL_DENIED:
        r->failure.final = true;
        if (f->err.kind == ERR_CALLER || f->status == 400 || f->status == 404 || f->status == 422)
            turn_fail_with(r, f->status == 404 ? 404 : 400, NULL, f->err.text);
        else
            turn_fail_with(r, 500, NULL, "The model refuses this server. Its log says more.");
        break;
    case MODEL_NONSENSE:
        turn_fail_with(r, 502, NULL, "The model has not given an answer that can be read.");
        break;
    }
}

/* Ends what was being written when the reply broke off, as answer_broken(). */
static void close_open(struct turn *r)
{
    struct message *m = &r->message;
    const char *id = text_of(m->open, "id");
    bool server = is_type(m->open, "server_tool_use");
    json_t *result = NULL;

    if (server)
        result = block_result((enum server_tool)r->open_tool, id,
                              content_error((enum server_tool)r->open_tool, "unavailable"));
    message_close(m, NULL);
    if (server)
        turn_put(r, result);
}

static void no_reply(struct turn *r, const struct model_failure *f)
{
    log_warn("%s: the model has not replied: %s", r->caller.request, f->err.text);
    if (r->message.runs == 0 && (r->parts_begun > 0 || json_array_size(r->message.content) == 0)) {
        fail_model(r, f);
        return;
    }
    close_open(r);
    turn_finish(r, f->trouble == MODEL_TOO_LONG ? "model_context_window_exceeded" : "pause_turn");
}

/* --- tools --- */

static uint64_t tell_seconds(uint64_t ms, uint64_t most)
{
    return (ms && ms < most ? ms : most) / 1000;
}

static json_t *tools_of(struct turn *r)
{
    const struct anthropic_config *config = &r->anthropic->config;
    json_t *tools =
        r->params.forced_server && !r->replied ? json_array() : json_copy(r->params.tools);
    struct pool_info pool;
    struct tool_limits limits;

    if (!r->params.version)
        return tools;
    service_pool_get(r->service, 0, &pool);
    for (size_t i = 1; config->pool && i < service_pool_count(r->service) &&
                       strcmp(pool.pool->name, config->pool) != 0;
         i++)
        service_pool_get(r->service, i, &pool);
    limits = (struct tool_limits){
        .call_s = tell_seconds(config->timeout_ms, pool.pool->limits.wall_ms),
        .cell_s = tell_seconds(r->params.version->repl ? config->cell_ms : config->timeout_ms,
                               pool.pool->limits.wall_ms),
        .outside = pool.pool->egress == EGRESS_ALLOW_LIST};
    tools_offer(tools, r->params.server_tools, r->params.callable, &limits);
    return tools;
}

/* --- replies --- */

/* Which tool the model may call by this name: enum server_tool, -1 a client tool, -2 none. */
static int tool_named(const struct turn *r, const char *name)
{
    int tool = *r->session ? server_tool_find(name) : -1;

    if (tool >= 0 && r->params.server_tools & IN(tool))
        return tool;
    return tool < 0 && list_has(r->params.tools, "name", name) ? -1 : -2;
}

/* A tool that was not offered, such as bash with a version that has only Python, or a call too
 * many. The model hears of it, and the client, who could not answer the call, does not. */
static void refuse_call(struct turn *r, const char *name, const char *model_call_id)
{
    json_t *tools = tools_of(r), *one;
    AUTO(buf_done) struct buf b = BUF(64 * KiB);
    size_t i;

    if (tool_named(r, name) >= -1) {
        buf_printf(&b, "Error: it was not called: a reply may have %d calls.", REPLY_CALLS);
    } else {
        buf_printf(&b, "Error: there is no tool `%.128s`. The tools are:", name);
        json_array_foreach(tools, i, one)
            buf_printf(&b, "%s %s", i ? "," : "", text_of(one, "name"));
    }
    json_decref(tools);
    one = record_text(buf_str(&b));
    history_answer(&r->history, model_call_id, one, NULL);
    json_decref(one);
    r->wrong_calls++;
}

/* --- pieces, written as they come --- */

/* What has been written of a part of the reply. */
static json_t *told_of(const struct turn *r, size_t part)
{
    return json_array_get(r->parts_told, part);
}

static size_t place_of(const json_t *told)
{
    return (size_t)json_integer_value(json_object_get(told, "at"));
}

static void begin_call(struct turn *r, const struct model_piece *p)
{
    int tool = tool_named(r, p->name);
    json_t *none = json_object(), *block;
    char id[TOOL_ID_MAX];

    if (tool < -1 || r->calls_told == REPLY_CALLS) {
        message_close(&r->message, NULL);
        json_decref(none);
        return; /* the client is not shown the call */
    }
    tool_id_make(id, tool < 0 ? "toolu_" : "srvtoolu_", r->session);
    block = tool < 0 ? block_client_use(id, p->name, none, NULL)
                     : block_use((enum server_tool)tool, id, none);
    message_open_use(&r->message, block);
    json_decref(block);
    json_decref(none);
    r->open_tool = tool;
    r->called |= tool >= 0;
    r->calls_told++;
    json_object_set_new(told_of(r, p->part), "id", json_string(id));
}

static void begin_kept(struct turn *r, const json_t *block)
{
    if (!text_of(block, "type"))
        return;
    if (!is_type(block, "thinking"))
        return turn_put(r, json_deep_copy(block));
    message_open_thinking(&r->message);
    if (view_of(block, "thinking").n > 0)
        message_more(&r->message, "thinking_delta", "thinking", view_of(block, "thinking"));
    if (view_of(block, "signature").n > 0)
        message_more(&r->message, "signature_delta", "signature", view_of(block, "signature"));
}

static void begin_part(struct turn *r, const struct model_piece *p)
{
    message_close(&r->message, NULL);
    r->parts_begun = p->part + 1;
    while (json_array_size(r->parts_told) <= p->part)
        json_array_append_new(
            r->parts_told,
            json_pack("{s:I}", "at", (json_int_t)json_array_size(r->message.content)));
    if (p->kind == MODEL_PIECE_CALL)
        begin_call(r, p);
    else if (p->kind == MODEL_PIECE_KEPT)
        begin_kept(r, p->block);
}

static void on_piece(void *arg, const struct model_piece *p)
{
    struct turn *r = arg;
    struct message *m = &r->message;

    if (p->part >= r->parts_begun)
        begin_part(r, p);
    r->bytes += p->text.n;
    if (p->kind == MODEL_PIECE_TEXT)
        message_text(m, p->text);
    else if (p->kind == MODEL_PIECE_CALL && m->open && p->text.n > 0)
        message_more(m, "input_json_delta", "partial_json", p->text);
    else if (p->kind == MODEL_PIECE_KEPT && m->open && p->key)
        message_more(m, strcmp(p->key, "signature") == 0 ? "signature_delta" : "thinking_delta",
                     p->key, p->text);
    turn_tell(r);
}

/* --- the whole reply --- */

/* Returns whether it is a call of a client tool. */
static bool take_call(struct turn *r, size_t i, json_t *part)
{
    const char *name = text_of(part, "name") ? text_of(part, "name") : "";
    json_t *args = json_object_get(part, "args"), *raw = json_object_get(part, "raw"), *input;
    const json_t *told = told_of(r, i);
    char model_call_id[24];
    int tool = tool_named(r, name);

    history_call_id(&r->history, model_call_id);
    json_object_set_new(part, "id", json_string(model_call_id));
    if (!text_of(told, "id")) {
        refuse_call(r, name, model_call_id);
        return false;
    }
    if (json_is_object(args))
        input = json_incref(args);
    else
        input = raw ? json_pack("{s:O}", "raw", raw) : json_object();
    json_object_set(json_array_get(r->message.content, place_of(told)), "input", input);
    if (tool < 0)
        json_decref(input);
    else
        history_pend(&r->history, (enum server_tool)tool, text_of(told, "id"), model_call_id, input)
            ->broken = !json_is_object(args);
    return tool < 0;
}

/* Takes the calls of a reply down, and completes the blocks of the message. Returns the number of
 * calls of client tools. */
static size_t take_parts(struct turn *r, json_t *parts)
{
    size_t i, client = 0;
    json_t *part;

    r->wrong_calls = 0;
    message_close(&r->message, NULL);
    json_array_foreach(parts, i, part) {
        json_t *block = json_object_get(part, "block");

        if (is_type(part, "call"))
            client += take_call(r, i, part);
        else if (is_type(part, "kept") && is_type(block, "thinking"))
            json_array_set(r->message.content, place_of(told_of(r, i)), block);
    }
    return client;
}

static const char *const stops[] = {
    [MODEL_DONE] = "end_turn",     [MODEL_CALLS] = "end_turn",
    [MODEL_LENGTH] = "max_tokens", [MODEL_REFUSAL] = "refusal",
    [MODEL_PAUSE] = "end_turn",    [MODEL_WINDOW] = "model_context_window_exceeded",
};

/* A copy; calls get other ids in it. */
static json_t *parts_copy(const json_t *parts)
{
    json_t *v = json_array(), *part;
    size_t i;

    json_array_foreach((json_t *)parts, i, part)
        json_array_append_new(v, json_copy(part));
    return v;
}

/* Calls that the reply broke off in get their result at once: a client that sends the message back
 * has made some input of the half that it has read, and that must not run. */
static void answer_broken(struct turn *r)
{
    for (size_t i = 0; i < r->history.pending_count; i++) {
        const struct pending_call *p = &r->history.pending[i];
        if (p->broken)
            turn_put(r, block_result(p->tool, p->id, content_error(p->tool, "invalid_tool_input")));
    }
}

static void take_reply(struct turn *r, const struct model_reply *reply)
{
    json_t *parts = parts_copy(reply->parts);
    size_t client = take_parts(r, parts);

    r->message.input_tokens += reply->input_tokens - reply->cache_read - reply->cache_written;
    r->message.output_tokens += reply->output_tokens;
    r->message.cache_read += reply->cache_read;
    r->message.cache_written += reply->cache_written;
    r->message.cache_hour += reply->cache_hour;
    r->replied = true;
    history_reply(&r->history, parts);
    turn_tell(r);
    bool cut =
        reply->stop == MODEL_LENGTH || reply->stop == MODEL_REFUSAL || reply->stop == MODEL_WINDOW;
    if (!cut && client == 0 &&
        (r->history.pending_count > 0 || r->wrong_calls > 0 || reply->stop == MODEL_PAUSE))
        return turn_work(r);
    if (reply->stop == MODEL_DONE && reply->stop_sequence && client == 0) {
        r->message.stop_sequence = mem_strdup(reply->stop_sequence);
        return turn_finish(r, "stop_sequence");
    }
    if (cut)
        answer_broken(r);
    turn_finish(r, !cut && client > 0 ? "tool_use" : stops[reply->stop]);
}

/* --- asking the model --- */

static void on_reply(void *arg, const struct model_reply *reply, const struct model_failure *failed)
{
    struct turn *r = arg;

    r->asking = NULL;
    if (failed)
        no_reply(r, failed);
    else
        take_reply(r, reply);
}

void turn_ask(struct turn *r)
{
    static const struct model_watcher watcher = {on_piece, on_reply};
    json_t *tools;

    history_close(&r->history);
    if (r->turns > 0 && (r->turns >= r->anthropic->config.turns || !turn_has_time(r) ||
                         turn_is_long(r) || r->anthropic->draining)) {
        turn_finish(r, "pause_turn");
        return;
    }
    r->turns++;
    tools = tools_of(r);
    const struct model_ask ask = {
        .system = buf_str(&r->params.system),
        .system_cache = r->params.system_cache,
        .messages = r->history.messages,
        .tools = json_array_size(tools) > 0 ? tools : NULL,
        .choice = r->replied && r->params.choice == MODEL_MUST_CALL ? MODEL_AUTO : r->params.choice,
        .tool = r->replied ? (struct str){0} : str_of(r->params.forced),
        .one_at_a_time = r->params.one_at_a_time,
        .stop = r->params.stop,
        .options = r->params.body,
        .max_tokens = r->params.max_tokens,
        .name = str_of(r->params.model),
        .betas = r->params.betas,
        .turn = r->history.replies,
    };

    r->parts_begun = 0;
    json_array_clear(r->parts_told);
    r->calls_told = 0;
    r->asking = model_ask(r->model, &ask, &watcher, r);
    json_decref(tools);
}
