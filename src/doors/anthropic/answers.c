/*
 * Tools of the client that code calls: what it shows becomes calls of the message, what the
 * client answers becomes files that the code waits for; in between the deed is parked.
 */
#include "doors/anthropic/deed_int.h"

#include <stdio.h>

#define CALLS_MIME  "application/vnd.retort.calls+json"
#define CALLS_BYTES (4 * MiB) /* of calls shown together: JSON in JSON */
#define PENDING_MAX 256
#define STANDS_MS   1800000 /* of one deed in all, as its code has no other limit meanwhile */
#define PARKED_MAX  1024
#define PARKED_EACH 128 /* of one tenant */

/* --- time that stands still --- */

static void stand(struct deed *c, bool stands)
{
    int64_t now = time_mono_us();

    if (!c->job || stands == (c->stands_us != 0))
        return;
    if (stands && c->stood_us / 1000 >= STANDS_MS)
        return; /* its own time goes on, and ends it */
    if (!stands)
        c->stood_us += now - c->stands_us;
    c->stands_us = stands ? now : 0;
    job_stop_clock(c->job, stands);
}

/* Its time goes on when it has nothing to wait for: of many answers, the last has come. */
static void go_on(struct deed *c)
{
    if (c->pending_count == 0 && c->coming == 0)
        stand(c, false);
}

/* --- answers --- */

static void on_answered(void *arg, const struct space_file *files, size_t count,
                        const struct err *failed)
{
    struct deed *c = arg;

    (void)files, (void)count;
    if (failed && failed->kind != ERR_MISSING)
        log_warn("%s: an answer did not reach the code: %s", c->caller.request, failed->text);
    c->coming--;
    if (!deed_is_gone(c))
        go_on(c);
}

/* Takes value. */
static void put_answer(struct deed *c, const struct pending *p, json_t *value)
{
    AUTO_FREE char *text = record_dump(value, false, NULL);
    char path[sizeof(CALLS_FOLDER) + IDENT_CHARS + 2];
    struct blob *blob;
    struct err e = {0};

    json_decref(value);
    snprintf(path, sizeof(path), CALLS_FOLDER "/%s", p->ident);
    blob = service_blob_new(c->service, &c->caller, &e);
    if (!blob || !text || blob_write(blob, str_of(text), &e) < 0) {
        blob_free(blob);
        log_warn("%s: an answer did not reach the code: %s", c->caller.request, e.text);
        return;
    }
    c->waits++;
    c->coming++;
    service_space_put(c->service, &c->caller, str_of(c->session), str_of(path), blob, on_answered,
                      c);
}

void deed_time_is_up(struct deed *c)
{
    char text[80];

    snprintf(text, sizeof(text), "the client has not answered within %llu seconds",
             (unsigned long long)c->anthropic->config.answer_ms / 1000);
    for (size_t i = 0; i < c->pending_count; i++)
        put_answer(c, &c->pending[i], json_pack("{s:s, s:s}", "error", "timeout", "text", text));
    c->pending_count = 0;
    go_on(c);
}

static json_t *answer_of(const json_t *result)
{
    const json_t *content = json_object_get(result, "content"), *one;
    json_t *v;
    struct buf b;
    struct err e;
    size_t i;

    buf_init(&b, MESSAGES_BODY_MAX);
    (void)!buf_put(&b, json_view(content), &e);
    json_array_foreach((json_t *)content, i,
                       one)(void) !buf_put(&b, json_view(json_object_get(one, "text")), &e);
    v = json_pack("{s:o}", "text", record_text(buf_str(&b)));
    if (json_is_true(json_object_get(result, "is_error")))
        json_object_set_new(v, "error", json_string("failed"));
    buf_done(&b);
    return v;
}

/* --- calls of the code --- */

static bool is_ident(const char *s)
{
    return s && strlen(s) == IDENT_CHARS && strspn(s, "0123456789abcdef") == IDENT_CHARS;
}

static bool is_callable(const struct deed *c, const char *name)
{
    const json_t *one;
    size_t i;

    json_array_foreach(c->callable, i, one)
    {
        if (name && strcmp(json_string_value(json_object_get(one, "name")), name) == 0)
            return true;
    }
    return false;
}

/* Python writes some JSON that nobody else reads: numbers without end, half characters. */
static void refuse_call(struct deed *c, const char *ident)
{
    struct pending p;

    memcpy(p.ident, ident, sizeof(p.ident));
    put_answer(c, &p,
               json_pack("{s:s, s:s}", "error", "invalid", "text",
                         "the arguments hold what JSON cannot say, or a NUL"));
}

static void take_call(struct deed *c, const json_t *shown)
{
    const char *ident = json_string_value(json_object_get(shown, "id"));
    const char *name = json_string_value(json_object_get(shown, "name"));
    struct str text = json_view(json_object_get(shown, "input"));
    json_t *input;
    struct pending *p;

    if (!is_ident(ident) || !is_callable(c, name) || !text.p || c->pending_count == PENDING_MAX)
        return; /* code that makes up what our own would never say */
    input = json_loadb(text.p, text.n, 0, NULL);
    if (!json_is_object(input)) {
        json_decref(input);
        return refuse_call(c, ident);
    }
    if (!c->pending)
        c->pending = mem_zalloc(PENDING_MAX * sizeof(*c->pending));
    p = &c->pending[c->pending_count++];
    memcpy(p->ident, ident, sizeof(p->ident));
    tool_id_make(p->id, "toolu_", c->session);
    json_array_append_new(c->fresh,
                          json_pack("{s:s, s:s, s:O}", "id", p->id, "name", name, "input", input));
    json_decref(input);
}

bool deed_takes_calls(struct deed *c, const struct event *ev)
{
    json_t *shown, *one;
    size_t i;

    if (ev->kind != EVENT_DISPLAY || ev->bundle.count == 0 ||
        !str_is(ev->bundle.part[0].mime, CALLS_MIME))
        return false;
    if (ev->bundle.part[0].data.n > CALLS_BYTES)
        return true;
    shown = json_loadb(ev->bundle.part[0].data.p, ev->bundle.part[0].data.n, 0, NULL);
    json_array_foreach(json_object_get(shown, "calls"), i, one) take_call(c, one);
    json_decref(shown);
    if (c->pending_count > 0) {
        stand(c, true);
        timer_set(c->timer, c->anthropic->config.answer_ms);
        deed_tell(c);
    }
    return true;
}

/* --- parked --- */

void deed_unpark(struct deed *c)
{
    *c->link = c->next;
    if (c->next)
        c->next->link = c->link;
    c->link = NULL;
    c->anthropic->parked_count--;
}

/* Of this tenant, where it has as many as it may; else of all. */
static void make_room(struct anthropic *a, const char *tenant)
{
    struct deed *oldest = NULL, *own = NULL;
    size_t owns = 0;

    for (struct deed *c = a->parked; c; c = c->next) {
        oldest = c;
        if (strcmp(c->caller.tenant, tenant) == 0) {
            own = c;
            owns++;
        }
    }
    if (owns >= PARKED_EACH)
        deed_leave(own);
    else if (a->parked_count >= PARKED_MAX)
        deed_leave(oldest);
}

void deed_park(struct deed *c)
{
    struct anthropic *a = c->anthropic;

    c->watched = false;
    deed_step_aside(c);
    make_room(a, c->caller.tenant);
    c->next = a->parked;
    c->link = &a->parked;
    if (c->next)
        c->next->link = &c->next;
    a->parked = c;
    a->parked_count++;
}

struct deed *deed_find(struct anthropic *a, const char *tenant, const char *id)
{
    for (struct deed *c = a->parked; c; c = c->next)
        if (strcmp(c->id, id) == 0 && strcmp(c->caller.tenant, tenant) == 0 && !c->left)
            return c;
    return NULL;
}

static bool is_fresh(const struct deed *c, const char *id)
{
    const json_t *one;
    size_t i;

    json_array_foreach(c->fresh, i, one)
    {
        if (strcmp(json_string_value(json_object_get(one, "id")), id) == 0)
            return true;
    }
    return false;
}

bool deed_resume(struct deed *c, const json_t *answers, const struct deed_watcher *w, void *arg)
{
    size_t left = 0;

    for (size_t i = 0; i < c->pending_count; i++)
        if (!json_object_get(answers, c->pending[i].id) && !is_fresh(c, c->pending[i].id))
            return false;
    deed_unpark(c);
    c->watcher = *w;
    c->arg = arg;
    c->watched = true;
    for (size_t i = 0; i < c->pending_count; i++) {
        const json_t *answer = json_object_get(answers, c->pending[i].id);
        if (!answer)
            c->pending[left++] = c->pending[i];
        else if (c->job) /* else its code has ended meanwhile */
            put_answer(c, &c->pending[i], answer_of(answer));
    }
    c->pending_count = left;
    if (left == 0) {
        if (c->job)
            timer_clear(c->timer);
        go_on(c);
    }
    if (c->content || json_array_size(c->fresh) > 0)
        deed_tell(c);
    return true;
}

void deeds_leave(struct anthropic *a)
{
    while (a->parked)
        deed_leave(a->parked);
}
