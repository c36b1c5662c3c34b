/*
 * The messages of a request, in the form that models take.
 *
 * One assistant message of a client holds several replies of the model with results between them,
 * and a result may come in a later message than its call. So blocks are sorted into exchanges: a
 * block of the model begins a new one when the last one has results; a result goes to the exchange
 * of its call, which its id tells. Calls get new ids, as those of other servers may be longer than
 * an endpoint takes.
 *
 * Calls that code has made of client tools, and their results, are left out: they are between the
 * code and the client.
 */
#include "doors/anthropic/history_int.h"

#include <stdio.h>
#include <stdlib.h>

/* --- exchanges --- */

struct exchange *history_last(struct history_reader *g)
{
    return &g->reply[g->count - 1];
}

static void begin_reply(struct history_reader *g)
{
    if ((g->count & (g->count - 1)) == 0)
        g->reply = mem_realloc(g->reply, (g->count ? 2 * g->count : 1) * sizeof(*g->reply));
    g->reply[g->count++] = (struct exchange){json_array(), json_array(), json_array()};
}

/* The exchange that a block of the model goes to. */
static struct exchange *making(struct history_reader *g)
{
    if (g->count == 1 || json_array_size(history_last(g)->results) ||
        json_array_size(history_last(g)->rest))
        begin_reply(g);
    return history_last(g);
}

static struct known_call *know(struct history_reader *g, const json_t *block, int tool)
{
    struct known_call *k;

    if ((g->known_count & (g->known_count - 1)) == 0)
        g->known =
            mem_realloc(g->known, (g->known_count ? 2 * g->known_count : 1) * sizeof(*g->known));
    k = &g->known[g->known_count++];
    *k = (struct known_call){.reply = g->count - 1,
                             .message = g->at,
                             .tool = tool,
                             .id = text_of(block, "id"),
                             .input = json_object_get(block, "input")};
    json_object_set_new(g->by_id, k->id, json_integer((json_int_t)g->known_count - 1));
    return k;
}

struct known_call *history_find(struct history_reader *g, const char *id)
{
    const json_t *at = id ? json_object_get(g->by_id, id) : NULL;

    return at ? &g->known[json_integer_value(at)] : NULL;
}

void history_put_result(struct history_reader *g, struct known_call *k, json_t *text,
                        json_t *attached, bool error)
{
    json_t *part =
        json_pack("{s:s, s:s, s:o}", "type", "result", "id", k->model_call_id, "text", text);

    if (json_array_size(attached))
        json_object_set(part, "attached", attached);
    if (error)
        json_object_set_new(part, "error", json_true());
    k->answered = true;
    json_array_append_new(g->reply[k->reply].results, part);
}

/* --- blocks of the model --- */

static int check_call(struct history_reader *g, const json_t *block)
{
    if (text_of(block, "id") && text_of(block, "name"))
        return 0;
    return err_set(g->e, ERR_CALLER, "messages.%zu: a tool use has no id or no name", g->at);
}

static void add_call(struct history_reader *g, struct known_call *k, const char *name)
{
    json_t *args = json_is_object(k->input) ? json_incref(k->input) : json_object();

    history_call_id(g->h, k->model_call_id);
    json_array_append_new(g->reply[k->reply].parts,
                          json_pack("{s:s, s:s, s:s, s:o}", "type", "call", "id", k->model_call_id,
                                    "name", name, "args", args));
}

static int take_server_use(struct history_reader *g, const json_t *block)
{
    int tool = server_tool_find(text_of(block, "name"));

    if (check_call(g, block) < 0)
        return -1;
    if (tool < 0)
        return 0; /* a server tool of another server */
    making(g);
    add_call(g, know(g, block, tool), server_tools[tool].name);
    tool_id_session(text_of(block, "id"), g->h->session);
    return 0;
}

static int take_client_use(struct history_reader *g, const json_t *block)
{
    const json_t *caller = json_object_get(block, "caller");
    const char *source = text_of(caller, "tool_id");
    struct known_call *of;

    if (check_call(g, block) < 0)
        return -1;
    if (!caller_is_code(caller)) {
        making(g);
        add_call(g, know(g, block, -1), text_of(block, "name"));
        return 0;
    }
    of = history_find(g, source);
    if (!of || of->tool < 0)
        return err_set(g->e, ERR_CALLER,
                       "source tool `%.100s` not found for tool use block `%.100s`",
                       source ? source : "", text_of(block, "id"));
    size_t at = (size_t)(of - g->known); /* know() may move them */
    know(g, block, -1)->code_of = at + 1;
    return 0;
}

static int take_server_result(struct history_reader *g, const json_t *block, const char *type)
{
    struct known_call *k = history_find(g, text_of(block, "tool_use_id"));
    int tool = server_tool_of_result(type);

    if (k && k->tool == tool && tool >= 0 && !k->answered) {
        json_t *images = json_array(), *image = edit_image(json_object_get(block, "content"));
        if (image)
            json_array_append_new(images, image);
        history_put_result(g, k, content_said(json_object_get(block, "content")), images, false);
        json_decref(images);
    }
    return 0; /* a result without a call is ignored */
}

/* Whether it is thinking that a model broke off in: without its signature, at the very end. */
static bool is_torn_thinking(const struct history_reader *g, const json_t *block)
{
    const json_t *content =
        json_object_get(json_array_get(g->messages, json_array_size(g->messages) - 1), "content");

    return str_is(view_of(block, "type"), "thinking") && view_of(block, "signature").n == 0 &&
           json_array_get(content, json_array_size(content) - 1) == block;
}

static int take_model_block(struct history_reader *g, json_t *block)
{
    const char *type = text_of(block, "type");
    size_t n = type ? strlen(type) : 0;

    if (!type)
        return err_set(g->e, ERR_CALLER, "messages.%zu: a block has no type", g->at);
    if (strcmp(type, "text") == 0) {
        if (view_of(block, "text").n > 0) {
            json_t *parts = making(g)->parts;
            history_add_text(parts, view_of(block, "text"));
            history_cache(json_array_get(parts, json_array_size(parts) - 1), block);
        }
    } else if (strcmp(type, "server_tool_use") == 0) {
        return take_server_use(g, block);
    } else if (strcmp(type, "tool_use") == 0) {
        return take_client_use(g, block);
    } else if (is_torn_thinking(g, block)) {
        return 0;
    } else if (strcmp(type, "thinking") == 0 || strcmp(type, "redacted_thinking") == 0) {
        json_array_append_new(making(g)->parts, json_pack("{s:s, s:s, s:O}", "type", "kept", "api",
                                                          "anthropic", "block", block));
    } else if (n > 12 && strcmp(type + n - 12, "_tool_result") == 0) {
        return take_server_result(g, block, type);
    }
    return 0;
}

/* --- messages --- */

static int each_block(struct history_reader *g, json_t *content, bool model)
{
    json_t *block;
    size_t i;

    if (json_is_string(content)) {
        if (json_string_length(content) > 0)
            history_add_text(model ? making(g)->parts : history_last(g)->rest, json_view(content));
        return 0;
    }
    if (!json_is_array(content))
        return err_set(g->e, ERR_CALLER,
                       "messages.%zu.content: Input should be a string or an array of blocks",
                       g->at);
    json_array_foreach(content, i, block) {
        if ((model ? take_model_block(g, block) : history_take_user_block(g, block)) < 0)
            return -1;
    }
    return 0;
}

static void add_system(struct history_reader *g, const json_t *content)
{
    const json_t *block;
    size_t i;

    buf_put(&g->h->system, json_view(content));
    json_array_foreach((json_t *)content, i, block)
        buf_put(&g->h->system, view_of(block, "text"));
    buf_put(&g->h->system, STR("\n\n"));
}

/* The very next message of the user has the results of all calls of client tools. */
static int check_answered(struct history_reader *g, size_t from)
{
    for (size_t i = from; i < g->known_count; i++)
        if (g->known[i].tool < 0 && !g->known[i].answered)
            return err_set(g->e, ERR_CALLER,
                           "messages.%zu: `tool_use` ids were found without `tool_result` blocks "
                           "immediately after: %.100s",
                           g->known[i].message, g->known[i].id);
    return 0;
}

/* A message that paused as the model broke off in a call of a client tool is sent back as it is:
 * the call was not made. False: it is none. */
static bool give_up_torn(struct history_reader *g, size_t from)
{
    bool server = false;

    for (size_t i = from; i < g->known_count; i++)
        server |= g->known[i].tool >= 0 && g->known[i].message + 1 == g->at;
    for (size_t i = from; server && i < g->known_count; i++)
        if (g->known[i].tool < 0 && !g->known[i].answered && !g->known[i].code_of)
            history_put_result(g, &g->known[i], json_string("Error: the call was cut off"), NULL,
                               true);
    return server && check_answered(g, from) == 0;
}

static int each_message(struct history_reader *g, const json_t *messages)
{
    size_t checked = 0;
    json_t *message;

    g->messages = messages;

    json_array_foreach((json_t *)messages, g->at, message) {
        const char *role = text_of(message, "role");
        json_t *content = json_object_get(message, "content");
        bool user = role && strcmp(role, "user") == 0;

        if (role && strcmp(role, "system") == 0) {
            add_system(g, content);
            continue;
        }
        if (!user && (!role || strcmp(role, "assistant") != 0))
            return err_set(g->e, ERR_CALLER,
                           "messages.%zu.role: Input should be 'user' or 'assistant'", g->at);
        if (each_block(g, content, !user) < 0)
            return -1;
        if (user && check_answered(g, checked) < 0)
            return -1;
        if (user)
            checked = g->known_count;
    }
    return give_up_torn(g, checked) ? 0 : check_answered(g, checked);
}

/* --- calls without a result, and messages for the model --- */

/* Whether server tool calls of the last reply that have no result are made now: the turn paused, or
 * they waited for client tools. A user who writes new text instead has given them up. */
static bool goes_on(const struct history_reader *g, const struct known_call *k)
{
    const struct exchange *r = &g->reply[g->count - 1];
    bool client = false;

    if (k->reply != g->count - 1)
        return false;
    for (size_t i = 0; i < g->known_count; i++)
        client |= g->known[i].reply == k->reply && g->known[i].tool < 0;
    return client || json_array_size(r->rest) == 0;
}

/* Limits on calls that are made now. */
static int check_open(const struct history_reader *g, const struct known_call *k)
{
    if (strlen(k->id) >= TOOL_ID_MAX)
        return err_set(g->e, ERR_CALLER,
                       "messages.%zu: a tool use without a result has an id of more than %d bytes",
                       k->message, TOOL_ID_MAX - 1);
    if (g->h->pending_count == REPLY_CALLS)
        return err_set(g->e, ERR_CALLER,
                       "messages.%zu: more than %d tool uses of code execution have no result",
                       k->message, REPLY_CALLS);
    return 0;
}

static int sort_open(struct history_reader *g)
{
    struct history *h = g->h;
    /* goes_on() is the same for all calls of the last reply. */
    bool decided = false, on = false;

    for (size_t i = 0; i < g->known_count; i++) {
        struct known_call *k = &g->known[i];

        if (k->tool < 0 || k->answered)
            continue;
        if (k->reply == g->count - 1 && !decided) {
            on = goes_on(g, k);
            decided = true;
        }
        if (k->reply != g->count - 1 || !on) {
            json_t *lost = content_error((enum server_tool)k->tool, "unavailable");
            history_put_result(g, k, content_said(lost), NULL, true);
            json_decref(lost);
            continue;
        }
        if (check_open(g, k) < 0)
            return -1;
        h->pending_code |= k->answers != NULL;
        history_pend(h, (enum server_tool)k->tool, k->id, k->model_call_id,
                     json_is_object(k->input) ? json_incref(k->input) : json_object())
            ->answers = take_ptr(&k->answers);
    }
    return 0;
}

static void add_message(json_t *messages, const char *role, json_t *parts)
{
    if (json_array_size(parts) > 0)
        json_array_append_new(messages, json_pack("{s:s, s:O}", "role", role, "parts", parts));
}

/* Writes the exchanges as messages. The user's side of the last one stays open. */
static void write_down(struct history_reader *g)
{
    struct history *h = g->h;
    struct exchange *end = history_last(g);

    /* A message that broke off behind results: many models take no conversation that ends with
     * their own words. */
    if (g->known_count > 0 && json_array_size(end->parts) > 0 && h->pending_count == 0 &&
        json_array_size(end->results) + json_array_size(end->rest) == 0)
        history_add_text(end->rest, STR("[Your reply was cut off here. Please continue.]"));

    for (size_t i = 0; i < g->count; i++) {
        struct exchange *r = &g->reply[i];

        h->replies += json_array_size(r->parts) > 0;
        add_message(h->messages, "assistant", r->parts);
        if (i + 1 == g->count) {
            h->results = json_incref(r->results);
            h->rest = json_incref(r->rest);
            return;
        }
        json_array_extend(r->results, r->rest);
        add_message(h->messages, "user", r->results);
    }
}

static void reading_done(struct history_reader *g)
{
    for (size_t i = 0; i < g->count; i++) {
        json_decref(g->reply[i].parts);
        json_decref(g->reply[i].results);
        json_decref(g->reply[i].rest);
    }
    for (size_t i = 0; i < g->known_count; i++)
        json_decref(g->known[i].answers);
    free(g->reply);
    free(g->known);
    json_decref(g->by_id);
    json_decref(g->files);
}

int history_read(struct history *h, const json_t *messages, struct err *e)
{
    struct history_reader g = {.h = h, .by_id = json_object(), .files = json_object(), .e = e};
    int rc;

    *h = (struct history){.messages = json_array(),
                          .uploads = json_array(),
                          .attached = json_array(),
                          .documents = json_array()};
    buf_init(&h->system, MESSAGES_BODY_MAX);
    begin_reply(&g); /* the first exchange has no reply of the model */
    rc = each_message(&g, messages);
    rc = rc == 0 ? sort_open(&g) : rc;
    if (rc == 0)
        write_down(&g);
    reading_done(&g);
    return rc;
}

void history_done(struct history *h)
{
    history_pending_clear(h);
    json_decref(h->messages);
    json_decref(h->results);
    json_decref(h->rest);
    json_decref(h->uploads);
    json_decref(h->attached);
    json_decref(h->documents);
    buf_done(&h->system);
    *h = (struct history){0};
}

/* --- during the turn --- */

struct pending_call *history_pend(struct history *h, enum server_tool tool, const char *id,
                                  const char *model_call_id, json_t *input)
{
    struct pending_call *p;

    if (!h->pending)
        h->pending = mem_zalloc(REPLY_CALLS * sizeof(*h->pending));
    p = &h->pending[h->pending_count++];
    *p = (struct pending_call){.tool = tool, .input = input};
    snprintf(p->id, sizeof(p->id), "%s", id);
    snprintf(p->model_call_id, sizeof(p->model_call_id), "%s", model_call_id);
    return p;
}

void history_pending_clear(struct history *h)
{
    for (size_t i = 0; i < h->pending_count; i++) {
        json_decref(h->pending[i].input);
        json_decref(h->pending[i].answers);
    }
    free(take_ptr(&h->pending));
    h->pending_count = 0;
}

void history_call_id(struct history *h, char ret[24])
{
    snprintf(ret, 24, "call_%zu", ++h->calls);
}

void history_answer(struct history *h, const char *model_call_id, json_t *text, json_t *attached)
{
    json_t *part =
        json_pack("{s:s, s:s, s:O}", "type", "result", "id", model_call_id, "text", text);

    if (json_array_size(attached))
        json_object_set(part, "attached", attached);
    json_array_append_new(h->results, part);
}

void history_close(struct history *h)
{
    json_array_extend(h->results, h->rest);
    add_message(h->messages, "user", h->results);
    json_array_clear(h->rest);
    json_decref(h->results);
    h->results = json_array();
}

void history_reply(struct history *h, json_t *parts)
{
    h->replies += json_array_size(parts) > 0;
    add_message(h->messages, "assistant", parts);
    json_decref(parts);
}
