/* How a message ends: with its last event, or with what was wrong. */
#include "doors/anthropic/turn_int.h"

#include <stdio.h>

/* --- ends --- */

static void end(struct turn *r)
{
    r->over = true;
    turn_tell(r);
}

static void on_deleted(void *arg, const struct err *failed)
{
    (void)arg, (void)failed; /* it goes with the retention then */
}

/* Nobody has heard of the container that was made for it. */
static void give_back(struct turn *r)
{
    if (r->made && !r->message.begun)
        service_session_delete(r->service, &r->caller, str_of(r->session), on_deleted, NULL);
    r->made = false;
}

void turn_fail(struct turn *r, int status, const char *code, const char *text)
{
    give_back(r);
    r->failure.status = status;
    r->failure.code = code ? code : CODE_INVALID;
    snprintf(r->failure.text, sizeof(r->failure.text), "%s", text);
    end(r);
}

void turn_fail_err(struct turn *r, const struct err *e, const char *code)
{
    int status = http_status_of(e);

    r->failure.retry_s = e->retry_s;
    if (e->kind == ERR_HOST)
        log_error("%s: %s", r->caller.request, e->text);
    if (e->kind == ERR_BUSY)
        status = 529;
    turn_fail(r, status, code, e->kind == ERR_HOST ? "Internal server error" : e->text);
}

void turn_set_container(struct turn *r, const struct session_row *row)
{
    json_decref(r->message.container);
    r->message.container = container_value(row);
    if (json_array_size(r->ask.skills) > 0)
        json_object_set(r->message.container, "skills", (json_t *)r->ask.skills);
}

static void end_message(struct turn *r)
{
    message_end(&r->message, r->stop);
    if (!r->message.full)
        return end(r);
    r->failure.final = true; /* code has run, and would again */
    turn_fail(r, 500, NULL, "The answer is longer than a message can be.");
}

static void on_session_now(void *arg, const struct session_info *info, const struct err *failed)
{
    struct turn *r = arg;

    if (turn_is_gone(r))
        return;
    if (!failed)
        turn_set_container(r, info->row);
    end_message(r);
}

/* Its deadline moves with each use, so it is asked for at the end. */
static void finish_container(struct turn *r)
{
    if (!*r->session)
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

/* What the user has been given, where code finds it again: <job>/manifest.json. */
static bool write_manifest(struct turn *r)
{
    char path[ID_MAX + 32], container[ID_MAX];
    struct blob *blob;
    struct err e;
    json_t *v;

    container_of_session(r->session, container);
    v = json_pack("{s:s, s:s, s:O, s:O}", "job", r->message.id, "container", container, "calls",
                  r->log, "outputs", r->outputs);
    AUTO_FREE char *text = json_dumps(v, JSON_INDENT(2));
    json_decref(v);
    blob = service_blob_new(r->service, &r->caller, &e);
    if (!text || !blob || blob_write(blob, str_of(text), &e) < 0) {
        blob_free(blob);
        return false;
    }
    snprintf(path, sizeof(path), "%s/manifest.json", r->message.id);
    r->waits++;
    service_space_put(r->service, &r->caller, str_of(r->session), str_of(path), blob, on_manifest,
                      r);
    return true;
}

void turn_finish(struct turn *r, const char *stop)
{
    r->stop = stop;
    if (json_array_size(r->outputs) == 0 || !write_manifest(r))
        finish_container(r);
}

/* --- a model that does not reply --- */

static void fail_model(struct turn *r, const struct model_failure *f)
{
    switch (f->trouble) {
    case MODEL_BUSY:
        r->failure.retry_s = (int)(f->retry_ms / 1000) + (f->retry_ms % 1000 != 0);
        turn_fail(r, f->status == 429 ? 429 : 529, NULL, "The model is busy. Try again later.");
        break;
    case MODEL_TOO_LONG:
        turn_fail(r, 400, NULL, "prompt is too long: it is more than the model takes");
        break;
    case MODEL_NO_TOOLS:
        turn_fail(r, 400, NULL, "tools: the model of this server knows no tools");
        break;
    case MODEL_DENIED:
        r->failure.final = true;
        if (f->err.kind == ERR_CALLER)
            turn_fail(r, 400, NULL, f->err.text);
        else
            turn_fail(r, 500, NULL, "The model refuses this server. Its log says more.");
        break;
    case MODEL_NONSENSE:
        turn_fail(r, 502, NULL, "The model has not given an answer that can be read.");
        break;
    }
}

void turn_no_reply(struct turn *r, const struct model_failure *f)
{
    log_warn("%s: the model has not replied: %s", r->caller.request, f->err.text);
    if (r->text_told || json_array_size(r->message.content) == 0)
        fail_model(r, f);
    else
        turn_finish(r,
                    f->trouble == MODEL_TOO_LONG ? "model_context_window_exceeded" : "pause_turn");
}
