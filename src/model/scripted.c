/*
 * A model that plays a script, for tests and for trying the server without a model.
 *
 * The script stands in the user's message, so that every conversation can have its own; a
 * file has one for conversations without.
 */
#include "model/model_int.h"

#include "loop/loop.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#define FILE_MAX_BYTES (4 * MiB)
#define SLEEP_MAX_MS   600000

struct scripted {
    struct model model;
    struct loop *loop; /* borrowed */
    json_t *turns;     /* owned: of the file, or NULL */
};

struct play {
    struct model_call call;
    struct model_watcher watcher;
    void *arg;
    struct timer *timer; /* owned */
    json_t *parts;       /* owned */
    struct model_reply reply;
    bool has_stop;
    uint64_t sleep_ms;
    struct model_failure failed;
    bool fails, telling, cancelled;
};

/* --- the script --- */

/* NULL: the text is not a script. */
static json_t *turns_of(const char *text)
{
    json_t *script, *turns;

    if (strncmp(text, "{\"turns\"", 8) != 0)
        return NULL;
    script = json_loads(text, 0, NULL);
    turns = json_object_get(script, "turns");
    if (!json_is_array(turns))
        turns = NULL;
    json_incref(turns);
    json_decref(script);
    return turns;
}

static json_t *turns_in(const json_t *message)
{
    const json_t *part;
    size_t i;

    if (strcmp(text_of(message, "role"), "user") != 0)
        return NULL;
    json_array_foreach(json_object_get(message, "parts"), i, part) {
        bool is_text = strcmp(text_of(part, "type"), "text") == 0;
        json_t *turns = is_text ? turns_of(text_of(part, "text")) : NULL;

        if (turns)
            return turns;
    }
    return NULL;
}

/* The script of the conversation, owned, or NULL; and the number of replies before it. */
static json_t *find_turns(const struct scripted *s, const json_t *messages, size_t *ret_before)
{
    for (size_t i = json_array_size(messages); i > 0; i--) {
        json_t *turns = turns_in(json_array_get(messages, i - 1));

        if (!turns)
            continue;
        for (size_t k = 0; k + 1 < i; k++)
            *ret_before += strcmp(text_of(json_array_get(messages, k), "role"), "assistant") == 0;
        return turns;
    }
    return json_incref(s->turns);
}

/* --- a turn --- */

static bool is_offered(const json_t *tools, const char *name)
{
    const json_t *tool;
    size_t i;

    json_array_foreach(tools, i, tool) {
        if (strcmp(text_of(tool, "name"), name) == 0)
            return true;
    }
    return false;
}

static json_t *call_of(const char *name, json_t *args, size_t turn, size_t i)
{
    char id[48];

    snprintf(id, sizeof(id), "call_%zu_%zu", turn, i);
    return json_pack("{s:s, s:s, s:s, s:o}", "type", "call", "id", id, "name", name, "args", args);
}

/* Steps that call a tool: its name at the Anthropic door, and for the agent. */
static const struct {
    const char *step, *arg; /* arg NULL: the step holds all arguments */
    const char *tools[3];
} runs[] = {
    {"bash",   "command", {"bash_code_execution", "run_shell"}},
    {"python", "code",    {"code_execution", "run_python"}    },
    {"edit",   NULL,      {"text_editor_code_execution"}      },
};

static json_t *raw_call(const json_t *raw, size_t turn, size_t i)
{
    json_t *call = call_of(text_of(raw, "name"), json_null(), turn, i);

    json_object_set_new(call, "raw", text_in(raw, "raw"));
    return call;
}

/* NULL: the step is not a part of the reply. */
static json_t *part_of(const json_t *step, const json_t *tools, size_t turn, size_t i)
{
    const json_t *text = json_object_get(step, "text"), *tool = json_object_get(step, "tool");
    const json_t *raw = json_object_get(step, "raw_call");
    const char *name = json_string_value(json_object_get(tool, "name"));

    if (json_is_string(text))
        return json_pack("{s:s, s:O}", "type", "text", "text", text);
    if (json_is_object(raw))
        return raw_call(raw, turn, i);
    if (name) {
        json_t *input = json_object_get(tool, "input");
        return call_of(name, input ? json_incref(input) : json_object(), turn, i);
    }
    for (size_t k = 0; k < COUNT(runs); k++) {
        json_t *value = json_object_get(step, runs[k].step);
        const char *called = runs[k].tools[0];

        if (!value)
            continue;
        if (runs[k].tools[1] && is_offered(tools, runs[k].tools[1]))
            called = runs[k].tools[1];
        value = runs[k].arg ? json_pack("{s:O}", runs[k].arg, value) : json_incref(value);
        return call_of(called, value, turn, i);
    }
    return NULL;
}

/* --- steps that are not parts --- */

static uint64_t number_in(const json_t *object, const char *key, uint64_t most)
{
    json_int_t n = json_integer_value(json_object_get(object, key));

    return n <= 0 ? 0 : (uint64_t)n < most ? (uint64_t)n : most;
}

static bool take_stop(struct play *p, const json_t *value)
{
    static const struct stop_word words[] = {
        {"length",  MODEL_LENGTH },
        {"refusal", MODEL_REFUSAL},
        {"pause",   MODEL_PAUSE  },
    };

    for (size_t i = 0; i < COUNT(words) && !p->has_stop; i++) {
        p->has_stop = str_is(json_view(value), words[i].word);
        p->reply.stop = words[i].stop;
    }
    return p->has_stop;
}

static bool take_usage(struct play *p, const json_t *value)
{
    p->reply.input_tokens = number_in(value, "input_tokens", INT64_MAX);
    p->reply.output_tokens = number_in(value, "output_tokens", INT64_MAX);
    return json_is_object(value);
}

static bool take_sleep(struct play *p, const json_t *value)
{
    json_int_t ms = json_integer_value(value);

    p->sleep_ms += ms > 0 && ms < SLEEP_MAX_MS ? (uint64_t)ms : 0;
    return json_is_integer(value) && p->sleep_ms < SLEEP_MAX_MS;
}

/* Classified like an error of an endpoint. */
static bool take_fail(struct play *p, const json_t *value)
{
    struct endpoint_error error;

    if (!json_is_object(value))
        return false;
    endpoint_error_of_json(&error, value);
    p->fails = true;
    p->failed.status = (int)number_in(value, "status", 599);
    p->failed.retry_ms = number_in(value, "retry_ms", SLEEP_MAX_MS);
    p->failed.trouble = p->failed.status ? trouble_of(p->failed.status, &error, true) : MODEL_BUSY;
    failure_say(&p->failed, p->call.model->label, NULL,
                p->failed.status ? error.text : "could not be reached");
    endpoint_error_done(&error);
    return true;
}

static const struct {
    const char *step;
    bool (*take)(struct play *p, const json_t *value); /* false: wrong value */
} manners[] = {
    {"stop",     take_stop },
    {"usage",    take_usage},
    {"sleep_ms", take_sleep},
    {"fail",     take_fail },
};

static bool take_manner(struct play *p, const json_t *step)
{
    for (size_t i = 0; i < COUNT(manners); i++) {
        const json_t *value = json_object_get(step, manners[i].step);

        if (value)
            return manners[i].take(p, value);
    }
    return false;
}

/* --- a turn --- */

static int read_turn(struct play *p, const json_t *turn, const json_t *tools, size_t n)
{
    const json_t *step;
    size_t i;

    json_array_foreach(turn, i, step) {
        json_t *part = part_of(step, tools, n, i);

        if (part)
            json_array_append_new(p->parts, part);
        else if (!take_manner(p, step))
            return err_set(&p->failed.err, ERR_CALLER,
                           "step %zu of turn %zu of the script is none that is known", i, n);
    }
    return 0;
}

static bool has_call(const json_t *parts)
{
    const json_t *part;
    size_t i;

    json_array_foreach(parts, i, part) {
        if (strcmp(text_of(part, "type"), "call") == 0)
            return true;
    }
    return false;
}

/* --- a call --- */

static void play_free(struct play *p)
{
    timer_free(p->timer);
    json_decref(p->parts);
    free(p);
}

static void tell_part(struct play *p, size_t i, const json_t *part)
{
    const json_t *args = json_object_get(part, "args");
    AUTO_FREE char *text = json_is_object(args) ? json_dumps(args, JSON_COMPACT) : NULL;
    struct model_piece piece = {.part = i, .kind = MODEL_PIECE_TEXT};

    if (strcmp(text_of(part, "type"), "call") == 0)
        piece = (struct model_piece){.part = i,
                                     .kind = MODEL_PIECE_CALL,
                                     .name = text_of(part, "name"),
                                     .text = str_of(text ? text : text_of(part, "raw"))};
    else
        piece.text = json_view(json_object_get(part, "text"));
    if (p->watcher.on_piece)
        p->watcher.on_piece(p->arg, &piece);
}

static void tell(struct play *p)
{
    const json_t *part;
    size_t i;

    p->reply.parts = p->parts;
    p->reply.name = "scripted";
    if (!p->has_stop)
        p->reply.stop = has_call(p->parts) ? MODEL_CALLS : MODEL_DONE;
    json_array_foreach(p->parts, i, part) {
        tell_part(p, i, part);
        if (p->cancelled)
            return;
    }
    p->watcher.on_end(p->arg, &p->reply, NULL);
}

static void on_turn(void *arg)
{
    struct play *p = arg;

    p->telling = true;
    if (p->fails)
        p->watcher.on_end(p->arg, NULL, &p->failed);
    else
        tell(p);
    play_free(p);
}

static struct model_call *scripted_ask(struct model *m, const struct model_ask *ask,
                                       const struct model_watcher *w, void *arg)
{
    struct scripted *s = (struct scripted *)m;
    struct play *p = mem_zalloc(sizeof(*p));
    size_t before = 0, turn;
    json_t *turns = find_turns(s, ask->messages, &before);

    *p = (struct play){.call.model = m, .watcher = *w, .arg = arg, .parts = json_array()};
    p->failed.trouble = MODEL_DENIED;
    p->timer = timer_new(s->loop, on_turn, p);
    turn = ask->turn > before ? ask->turn - before : 0;
    if (!turns)
        p->fails = err_set(&p->failed.err, ERR_CALLER,
                           "the scripted model has no script: begin the request with {\"turns\": "
                           "[...]}, or name a file with --model-script") < 0;
    else if (read_turn(p, json_array_get(turns, turn), ask->tools, turn) < 0)
        p->fails = true;
    json_decref(turns);
    timer_set(p->timer, p->sleep_ms);
    return &p->call;
}

static void scripted_cancel(struct model_call *c)
{
    struct play *p = (struct play *)c;

    p->cancelled = true;
    if (!p->telling)
        play_free(p);
}

static void scripted_free(struct model *m)
{
    struct scripted *s = (struct scripted *)m;

    json_decref(s->turns);
    free(s);
}

/* --- the file --- */

static int read_script(struct scripted *s, const char *path, struct err *e)
{
    AUTO_FREE char *text = mem_zalloc(FILE_MAX_BYTES);

    if (fd_read_file_at(AT_FDCWD, path, text, FILE_MAX_BYTES) < 0)
        return err_sys(e, "cannot read --model-script %s", path);
    s->turns = turns_of(text);
    if (!s->turns)
        return err_set(e, ERR_CALLER, "--model-script %s does not begin with {\"turns\": [...]}",
                       path);
    return 0;
}

struct model *scripted_new(struct loop *l, const char *path, struct err *e)
{
    static const struct model_ops ops = {scripted_ask, scripted_cancel, scripted_free};
    struct scripted *s = mem_zalloc(sizeof(*s));

    s->model = (struct model){.ops = &ops, .label = "scripted"};
    s->loop = l;
    if (path && read_script(s, path, e) < 0) {
        scripted_free(&s->model);
        return NULL;
    }
    return &s->model;
}
