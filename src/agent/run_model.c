/* Calls of the model: builds the question, and hands the reply to step(). */
#include "agent/agent_run.h"
#include "loop/loop.h"
#include "record/record.h"

#define SYSTEM_MAX  (64 * KiB)
#define IMAGES_MAX  4
#define IMAGE_BYTES (2 * MiB)

struct model *run_model(const struct agent_run *run)
{
    struct model *m = NULL;

    if (!run->record.own_only)
        m = models_find(run->agent->config.models, run->caller->tenant,
                        json_text(run->record.model));
    return m ? m : run->own;
}

/* --- the answer --- */

static const char *const stops[] = {
    [MODEL_DONE] = "done",       [MODEL_CALLS] = "calls", [MODEL_LENGTH] = "length",
    [MODEL_REFUSAL] = "refusal", [MODEL_PAUSE] = "pause", [MODEL_WINDOW] = "length",
};
static const char *const troubles[] = {
    [MODEL_BUSY] = "busy",     [MODEL_TOO_LONG] = "too_long", [MODEL_NO_TOOLS] = "no_tools",
    [MODEL_DENIED] = "denied", [MODEL_NONSENSE] = "nonsense",
};

static void on_end(void *arg, const struct model_reply *reply, const struct model_failure *failed)
{
    struct agent_run *run = arg;
    json_t *ev;

    run->call = NULL;
    json_decref(take_ptr(&run->messages));
    if (failed) {
        ev = json_pack("{s:s, s:s, s:I, s:i, s:o}", "type", "trouble", "trouble",
                       troubles[failed->trouble], "retry_ms", (json_int_t)failed->retry_ms,
                       "status", failed->status, "message", text_value(str_of(failed->err.text)));
    } else {
        ev = json_pack("{s:s, s:O, s:s, s:I, s:I}", "type", "reply", "parts", reply->parts, "stop",
                       stops[reply->stop], "input_tokens", (json_int_t)reply->input_tokens,
                       "output_tokens", (json_int_t)reply->output_tokens);
    }
    run_event(run, ev);
}

/* --- the question --- */

/* The images of the last execution, for a model that sees images. */
static void add_images(const struct agent_run *run, json_t *messages)
{
    json_t *last = json_array_get(messages, json_array_size(messages) - 1), *data;
    const char *mime;
    size_t count = 0;

    for (size_t n = 1; count < IMAGES_MAX; n++) {
        data = (json_t *)events_image(run->transcript, n, &mime);
        if (!data)
            return;
        if (json_string_length(data) / 4 * 3 > IMAGE_BYTES ||
            (strcmp(mime, "image/png") != 0 && strcmp(mime, "image/jpeg") != 0))
            continue;
        json_array_append_new(
            json_object_get(last, "parts"),
            json_pack("{s:s, s:s, s:O}", "type", "image", "mime", mime, "data", data));
        count++;
    }
}

void run_ask(struct agent_run *run, const char *kind)
{
    static const struct model_watcher watcher = {.on_end = on_end};
    const struct run_record *r = &run->record;
    bool text_mode = r->text_mode, plans = strcmp(kind, "plan") == 0;
    json_t *tools = text_mode || plans ? NULL : prompt_tools(r);
    json_t *stop = text_mode && !plans ? json_pack("[s]", "Observation:") : NULL;
    struct model *m = run_model(run);
    AUTO(buf_done) struct buf system = BUF(SYSTEM_MAX);
    size_t chars;

    if (!m) {
        run_fail(run, "ModelUnavailable", "the model that was asked is gone");
        json_decref(tools);
        json_decref(stop);
        return;
    }
    prompt_system(&system, r);
    json_decref(run->messages);
    run->messages = history_messages(r, kind, &chars);
    if (m->sees_images && !plans)
        add_images(run, run->messages);
    const struct model_ask question = {
        .system = buf_str(&system),
        .messages = run->messages,
        .tools = tools,
        .choice = strcmp(kind, "final") == 0 ? MODEL_NO_CALL : MODEL_AUTO,
        .one_at_a_time = true,
        .stop = stop,
        .wall_ms = r->budget.model_ms,
        .name = json_text(r->model),
        .turn = (size_t)r->turns,
    };

    run->call = model_ask(m, &question, &watcher, run);
    json_decref(tools);
    json_decref(stop);
}

void run_stop_waiting(struct agent_run *run)
{
    if (run->call)
        model_call_cancel(take_ptr(&run->call));
    json_decref(take_ptr(&run->messages));
    json_decref(take_ptr(&run->later));
    if (run->timer)
        timer_clear(run->timer);
}
