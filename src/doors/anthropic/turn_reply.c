/*
 * The replies of the model: asks it, writes what it says as blocks of the message, and takes its
 * calls down, which turn.c makes.
 */
#include "doors/anthropic/turn_int.h"

#include <stdio.h>

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

static void no_reply(struct turn *r, const struct model_failure *f)
{
    log_warn("%s: the model has not replied: %s", r->caller.request, f->err.text);
    if (r->message.runs == 0 && (r->text_told || json_array_size(r->message.content) == 0))
        fail_model(r, f);
    else
        turn_finish(r,
                    f->trouble == MODEL_TOO_LONG ? "model_context_window_exceeded" : "pause_turn");
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

/* A tool that was not offered, such as bash with a version that has only Python. The model hears of
 * it, and the client, who could not answer the call, does not. */
static void refuse_call(struct turn *r, const char *name, const char *model_call_id)
{
    json_t *tools = tools_of(r), *one;
    AUTO(buf_done) struct buf b = BUF(64 * KiB);
    size_t i;

    buf_printf(&b, "Error: there is no tool `%.128s`. The tools are:", name);
    json_array_foreach(tools, i, one)
        buf_printf(&b, "%s %s", i ? "," : "", text_of(one, "name"));
    json_decref(tools);
    one = record_text(buf_str(&b));
    history_answer(&r->history, model_call_id, one, NULL);
    json_decref(one);
    r->wrong_calls++;
}

/* Returns whether it is a call of a client tool. */
static bool put_call(struct turn *r, json_t *part)
{
    const char *name = text_of(part, "name") ? text_of(part, "name") : "";
    json_t *args = json_object_get(part, "args"), *raw = json_object_get(part, "raw");
    int tool = *r->session ? server_tool_find(name) : -1;
    bool client = tool < 0 && list_has(r->params.tools, "name", name);
    char id[TOOL_ID_MAX], model_call_id[24];
    json_t *input;

    history_call_id(&r->history, model_call_id);
    json_object_set_new(part, "id", json_string(model_call_id));
    if (!client && (tool < 0 || !(r->params.server_tools & IN(tool)))) {
        refuse_call(r, name, model_call_id);
        return false;
    }
    if (json_is_object(args))
        input = json_incref(args);
    else
        input = raw ? json_pack("{s:O}", "raw", raw) : json_object();
    tool_id_make(id, client ? "toolu_" : "srvtoolu_", r->session);
    if (client) {
        turn_put(r, block_client_use(id, name, input, NULL));
        json_decref(input);
        return true;
    }
    r->called = true;
    turn_put(r, block_use((enum server_tool)tool, id, input));
    history_pend(&r->history, (enum server_tool)tool, id, model_call_id, input)->broken =
        !json_is_object(args);
    return false;
}

/* Writes what on_text() has not written of a text part. */
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

/* Writes the parts of a reply as blocks. Returns the number of calls of client tools. */
static size_t put_reply(struct turn *r, json_t *parts)
{
    size_t i, client = 0;
    json_t *part;

    r->wrong_calls = 0;
    json_array_foreach(parts, i, part) {
        const char *type = text_of(part, "type");
        const char *api = text_of(part, "api");

        if (strcmp(type, "text") == 0) {
            put_text(r, i, view_of(part, "text"));
        } else if (strcmp(type, "kept") == 0 && api && strcmp(api, "anthropic") == 0 &&
                   json_object_get(json_object_get(part, "block"), "type")) {
            turn_put(r, json_incref(json_object_get(part, "block")));
        } else if (strcmp(type, "call") == 0) {
            client += put_call(r, part);
        }
    }
    message_text_end(&r->message);
    return client;
}

static const char *const stops[] = {
    [MODEL_DONE] = "end_turn",     [MODEL_CALLS] = "end_turn",
    [MODEL_LENGTH] = "max_tokens", [MODEL_REFUSAL] = "refusal",
    [MODEL_PAUSE] = "end_turn",    [MODEL_WINDOW] = "model_context_window_exceeded",
};

/* A copy without the calls past REPLY_CALLS: they are not made, and the model is not shown them. */
static json_t *parts_copy(const json_t *parts)
{
    json_t *v = json_array(), *part;
    size_t i, calls = 0;

    json_array_foreach((json_t *)parts, i, part) {
        const char *type = text_of(part, "type");
        if (strcmp(type, "call") != 0 || calls++ < REPLY_CALLS)
            json_array_append_new(v, json_copy(part));
    }
    return v;
}

static void take_reply(struct turn *r, const struct model_reply *reply)
{
    json_t *parts = parts_copy(reply->parts);
    size_t client = put_reply(r, parts);

    r->message.input_tokens += reply->input_tokens - reply->cache_read - reply->cache_written;
    r->message.output_tokens += reply->output_tokens;
    r->message.cache_read += reply->cache_read;
    r->message.cache_written += reply->cache_written;
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
    turn_finish(r, !cut && client > 0 ? "tool_use" : stops[reply->stop]);
}

/* --- asking the model --- */

static void on_text(void *arg, size_t part, struct str piece)
{
    struct turn *r = arg;

    if (!r->params.stream || piece.n == 0)
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
        no_reply(r, failed);
    else
        take_reply(r, reply);
}

void turn_ask(struct turn *r)
{
    static const struct model_watcher watcher = {on_text, on_reply};
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
        .messages = r->history.messages,
        .tools = json_array_size(tools) > 0 ? tools : NULL,
        .choice = r->replied && r->params.choice == MODEL_MUST_CALL ? MODEL_AUTO : r->params.choice,
        .tool = r->replied ? (struct str){0} : str_of(r->params.forced),
        .one_at_a_time = r->params.one_at_a_time,
        .stop = r->params.stop,
        .options = r->params.body,
        .max_tokens = r->params.max_tokens,
        .name = str_of(r->params.model),
        .turn = r->history.replies,
    };

    r->text_told = false;
    r->asking = model_ask(r->model, &ask, &watcher, r);
    json_decref(tools);
}
