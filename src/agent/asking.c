/* A question to the model: what step() wants to know, put together and waited for. */
#include "agent/quest.h"
#include "loop/loop.h"
#include "record/record.h"

#include <stdlib.h>

#define SYSTEM_MAX  (64 * KiB)
#define IMAGES_MAX  4
#define IMAGE_BYTES (2 * MiB)

struct model *quest_model(const struct quest *q)
{
    struct model *m = NULL;

    if (!json_on(quest_inner(q), "own_only"))
        m = models_find(q->agent->config.models, q->caller.tenant,
                        json_str(quest_inner(q), "model"));
    return m ? m : q->own;
}

/* --- the answer --- */

static const char *const stops[] = {
    [MODEL_DONE] = "done",       [MODEL_CALLS] = "calls", [MODEL_LENGTH] = "length",
    [MODEL_REFUSAL] = "refusal", [MODEL_PAUSE] = "pause",
};
static const char *const troubles[] = {
    [MODEL_BUSY] = "busy",     [MODEL_TOO_LONG] = "too_long", [MODEL_NO_TOOLS] = "no_tools",
    [MODEL_DENIED] = "denied", [MODEL_NONSENSE] = "nonsense",
};

static void on_end(void *arg, const struct model_reply *reply, const struct model_failure *failed)
{
    struct quest *q = arg;
    json_t *ev;

    q->call = NULL;
    json_decref(take_ptr(&q->messages));
    if (failed) {
        ev = json_pack("{s:s, s:s, s:I, s:i}", "type", "trouble", "trouble",
                       troubles[failed->trouble], "retry_ms", (json_int_t)failed->retry_ms,
                       "status", failed->status);
        json_put_str(ev, "message", str_of(failed->err.text));
    } else {
        ev = json_pack("{s:s, s:O, s:s, s:I, s:I}", "type", "reply", "parts", reply->parts, "stop",
                       stops[reply->stop], "input_tokens", (json_int_t)reply->input_tokens,
                       "output_tokens", (json_int_t)reply->output_tokens);
    }
    quest_event(q, ev);
}

/* --- the question --- */

/* Those of the last run, where the model can see them. */
static void add_images(struct quest *q, json_t *messages)
{
    json_t *last = json_array_get(messages, json_array_size(messages) - 1);
    size_t count = 0;

    for (size_t i = 0; i < q->figure_count && count < IMAGES_MAX; i++) {
        const struct figure *f = &q->figures[i];

        if (f->n > IMAGE_BYTES ||
            (strcmp(f->mime, "image/png") != 0 && strcmp(f->mime, "image/jpeg") != 0))
            continue;
        json_array_append_new(json_object_get(last, "parts"),
                              json_pack("{s:s, s:s, s:o}", "type", "image", "mime", f->mime, "data",
                                        record_base64((struct str){f->bytes, f->n})));
        count++;
    }
}

static void ask(struct quest *q, const char *kind)
{
    static const struct model_watcher watcher = {.on_end = on_end};
    const json_t *inner = quest_inner(q);
    bool text_mode = json_on(inner, "text_mode"), plans = strcmp(kind, "plan") == 0;
    json_t *tools = text_mode || plans ? NULL : prompt_tools(q->record);
    json_t *stop = text_mode && !plans ? json_pack("[s]", "Observation:") : NULL;
    struct model *m = quest_model(q);
    struct buf system;
    size_t chars;

    if (!m) {
        quest_event(q, json_pack("{s:s, s:s, s:s}", "type", "failed", "code", "ModelUnavailable",
                                 "message", "the model that was asked is gone"));
        json_decref(tools);
        json_decref(stop);
        return;
    }
    buf_init(&system, SYSTEM_MAX);
    prompt_system(&system, q->record);
    json_decref(q->messages);
    q->messages = history_messages(q->record, kind, &chars);
    if (m->sees_images && !plans)
        add_images(q, q->messages);
    const struct model_ask question = {
        .system = buf_str(&system),
        .messages = q->messages,
        .tools = tools,
        .choice = strcmp(kind, "final") == 0 ? MODEL_NO_CALL : MODEL_AUTO,
        .one_at_a_time = true,
        .stop = stop,
        .wall_ms = (uint64_t)json_num(json_object_get(inner, "budget"), "model_ms"),
        .name = json_str(inner, "model"),
        .turn = (size_t)json_num(inner, "turns"),
    };

    q->call = model_ask(m, &question, &watcher, q);
    buf_done(&system);
    json_decref(tools);
    json_decref(stop);
}

void quest_ask(struct quest *q, const json_t *action)
{
    int64_t after = json_num(action, "after_ms");
    struct str kind = json_str(action, "kind");

    if (after > 0)
        quest_wait(q, (uint64_t)after, json_pack("{s:s, s:s}", "do", "ask", "kind", kind.p));
    else
        ask(q, kind.p);
}

void quest_stop_asking(struct quest *q)
{
    if (q->call)
        model_call_cancel(take_ptr(&q->call));
    json_decref(take_ptr(&q->messages));
    json_decref(take_ptr(&q->later));
    if (q->timer)
        timer_clear(q->timer);
}
