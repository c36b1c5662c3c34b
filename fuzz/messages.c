/*
 * The body of a message request: what is asked for, and the history as a model reads it.
 * Whatever passes, roles take turns, each call has exactly one result or waits for it, and
 * no id is longer than an endpoint takes.
 *
 * links: src/doors/anthropic/request_params.c src/doors/anthropic/history.c
 * links: src/doors/anthropic/history_user.c src/doors/anthropic/edit.c src/engine/mime.c
 * links: src/doors/anthropic/tools.c src/doors/values/values.c src/engine/limits.c
 * links: src/engine/outcome.c src/record/dump.c src/record/record.c src/store/id.c
 */
#include "doors/anthropic/messages_int.h"

#include "support/fuzz.h"

/* The service reads the files of skills; here any will do. */
int skills_check(const json_t *skills, struct err *e)
{
    (void)skills;
    (void)e;
    return 0;
}

static void count(json_t *open, const char *id, int by)
{
    json_int_t n = json_integer_value(json_object_get(open, id));

    EXPECT(strlen(id) <= 40);
    json_object_set_new(open, id, json_integer(n + by));
}

static void look_at_parts(const json_t *message, json_t *open, bool model)
{
    const json_t *part;
    size_t i;

    json_array_foreach(json_object_get(message, "parts"), i, part) {
        const char *type = text_of(part, "type");

        EXPECT(type);
        if (strcmp(type, "call") == 0) {
            EXPECT(model && json_is_object(json_object_get(part, "args")));
            count(open, text_of(part, "id"), 1);
        } else if (strcmp(type, "result") == 0) {
            EXPECT(!model && text_of(part, "text"));
            count(open, text_of(part, "id"), -1);
        } else if (strcmp(type, "text") == 0) {
            EXPECT(text_of(part, "text"));
        } else if (strcmp(type, "kept") == 0) {
            EXPECT(model);
        } else {
            EXPECT(strcmp(type, "image") == 0 && !model);
        }
    }
}

static void look_at(struct history *h)
{
    json_t *open = json_object(), *text = json_string("x"), *message, *left;
    const char *id, *before = "";
    size_t i;

    for (i = 0; i < h->pending_count; i++)
        history_answer(h, h->pending[i].model_call_id, text, NULL);
    history_close(h);
    json_array_foreach(h->messages, i, message) {
        const char *role = text_of(message, "role");

        EXPECT(strcmp(role, before) != 0);
        before = role;
        look_at_parts(message, open, strcmp(role, "assistant") == 0);
    }
    json_object_foreach(open, id, left)
        EXPECT(json_integer_value(left) == 0);
    json_decref(open);
    json_decref(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *body = json_loadb((const char *)data, size, JSON_REJECT_DUPLICATES, NULL);
    struct request_params params = {0};
    struct history h = {0};
    struct err e = {0};

    if (!body)
        return 0;
    if (request_params_read(&params, body, &e) == 0) {
        EXPECT(params.model && json_array_size(params.callable) <= CALLABLE_MAX);
        if (history_read(&h, json_object_get(body, "messages"), &e) == 0)
            look_at(&h);
    }
    EXPECT(e.kind == ERR_NONE || (e.kind == ERR_CALLER && *e.text));
    history_done(&h);
    request_params_done(&params);
    return 0;
}
