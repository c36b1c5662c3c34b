/*
 * A model that plays a script: for tests, and for whoever wants to see how everything
 * works without a model.
 *
 * The script is in what the user says, so one server plays a different one in every
 * conversation and keeps nothing of them; a file has one for those that bring none.
 */
#include "loop/loop.h"
#include "model/model.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#define FILE_MAX_BYTES (4 * MiB)

struct scripted {
    struct model model;
    struct loop *loop; /* borrowed */
    json_t *turns;     /* owned: of the file, or NULL */
};

struct play {
    struct model_call call;
    struct model_watcher watcher;
    void *arg;
    json_t *parts; /* owned */
    struct model_failure failed;
    bool fails;
    bool cancelled;
};

/* --- the script --- */

/* NULL when the text is none. */
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

    if (strcmp(json_string_value(json_object_get(message, "role")), "user") != 0)
        return NULL;
    json_array_foreach(json_object_get(message, "parts"), i, part)
    {
        const char *text = json_string_value(json_object_get(part, "text"));
        const char *type = json_string_value(json_object_get(part, "type"));
        json_t *turns = text && strcmp(type, "text") == 0 ? turns_of(text) : NULL;

        if (turns)
            return turns;
    }
    return NULL;
}

/* The script of the conversation, owned, or NULL; and how many replies came before it. */
static json_t *find_turns(const struct scripted *s, const json_t *messages, size_t *ret_before)
{
    for (size_t i = json_array_size(messages); i > 0; i--) {
        json_t *turns = turns_in(json_array_get(messages, i - 1));

        if (!turns)
            continue;
        for (size_t k = 0; k + 1 < i; k++) {
            const json_t *role = json_object_get(json_array_get(messages, k), "role");
            *ret_before += strcmp(json_string_value(role), "assistant") == 0;
        }
        return turns;
    }
    return json_incref(s->turns);
}

/* --- a turn --- */

static bool is_offered(const json_t *tools, const char *name)
{
    const json_t *tool;
    size_t i;

    json_array_foreach(tools, i, tool)
    {
        if (strcmp(json_string_value(json_object_get(tool, "name")), name) == 0)
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

/* A step that runs something: the tool, as the doors and the loop call theirs. */
static const struct {
    const char *step, *arg; /* arg NULL: the step is the arguments */
    const char *tools[3];
} runs[] = {
    {"bash",   "command", {"bash_code_execution", "run_shell"}},
    {"python", "code",    {"code_execution", "run_python"}    },
    {"edit",   NULL,      {"text_editor_code_execution"}      },
};

static json_t *part_of(const json_t *step, const json_t *tools, size_t turn, size_t i)
{
    const json_t *text = json_object_get(step, "text"), *tool = json_object_get(step, "tool");
    const char *name = json_string_value(json_object_get(tool, "name"));

    if (json_is_string(text))
        return json_pack("{s:s, s:O}", "type", "text", "text", text);
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

static json_t *parts_of(const json_t *turn, const json_t *tools, size_t n, struct err *e)
{
    json_t *parts = json_array();
    const json_t *step;
    size_t i;

    json_array_foreach(turn, i, step)
    {
        json_t *part = part_of(step, tools, n, i);

        if (!part) {
            err_set(e, ERR_CALLER, "step %zu of turn %zu of the script is none that is known", i,
                    n);
            json_decref(parts);
            return NULL;
        }
        json_array_append_new(parts, part);
    }
    return parts;
}

static bool has_call(const json_t *parts)
{
    const json_t *part;
    size_t i;

    json_array_foreach(parts, i, part)
    {
        if (strcmp(json_string_value(json_object_get(part, "type")), "call") == 0)
            return true;
    }
    return false;
}

/* --- a call --- */

static void play_free(struct play *p)
{
    json_decref(p->parts);
    free(p);
}

static void tell(struct play *p)
{
    struct model_reply reply = {.parts = p->parts, .name = "scripted"};
    const json_t *part;
    size_t i;

    reply.stop = has_call(p->parts) ? MODEL_CALLS : MODEL_DONE;
    json_array_foreach(p->parts, i, part)
    {
        const json_t *text = json_object_get(part, "text");

        if (text && p->watcher.on_text)
            p->watcher.on_text(p->arg, i,
                               (struct str){json_string_value(text), json_string_length(text)});
        if (p->cancelled)
            return;
    }
    p->watcher.on_end(p->arg, &reply, NULL);
}

static void on_turn(void *arg)
{
    struct play *p = arg;

    if (!p->cancelled && p->fails)
        p->watcher.on_end(p->arg, NULL, &p->failed);
    else if (!p->cancelled)
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

    *p = (struct play){.call.model = m, .watcher = *w, .arg = arg};
    turn = ask->turn > before ? ask->turn - before : 0;
    if (turns)
        p->parts = parts_of(json_array_get(turns, turn), ask->tools, turn, &p->failed.err);
    else
        err_set(&p->failed.err, ERR_CALLER,
                "the scripted model has no script: begin the request with {\"turns\": [...]}, or "
                "name a file with --model-script");
    p->fails = !p->parts;
    p->failed.trouble = MODEL_DENIED;
    json_decref(turns);
    loop_later(s->loop, on_turn, p);
    return &p->call;
}

static void scripted_cancel(struct model_call *c)
{
    ((struct play *)c)->cancelled = true;
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
