/*
 * Client tools that code calls. The code announces its calls in a display of a type of its own
 * (guest/py/retort_guest/profile_anthropic.py) and waits for files with the answers. Meanwhile its
 * clock stands still and its tool call is parked.
 */
#include "base/json.h"
#include "doors/anthropic/tool_call_int.h"

#include <stdio.h>

#define CALLS_MIME       "application/vnd.retort.calls+json"
#define CALLS_BYTES      (4 * MiB) /* of one display: JSON in JSON */
#define CLIENT_CALLS_MAX 256
#define STANDS_MS        1800000 /* of one tool call in all; then its clock runs on */
#define PARKED_MAX       1024
#define PARKED_EACH      128 /* of one tenant */

/* --- the clock --- */

static void stand(struct tool_call *c, bool stands)
{
    int64_t now = time_mono_us();

    if (!c->execution || stands == (c->stands_us != 0))
        return;
    if (stands && c->stood_us / 1000 >= STANDS_MS)
        return; /* the time limit ends the code */
    if (!stands)
        c->stood_us += now - c->stands_us;
    c->stands_us = stands ? now : 0;
    execution_stop_clock(c->execution, stands);
}

/* Starts the clock again once all answers have reached the code. */
static void go_on(struct tool_call *c)
{
    if (c->client_call_count == 0 && c->coming == 0)
        stand(c, false);
}

/* --- answers --- */

static void on_answered(void *arg, const struct space_file *files, size_t count,
                        const struct err *failed)
{
    struct tool_call *c = arg;

    (void)files, (void)count;
    if (failed && failed->kind != ERR_MISSING)
        log_warn("%s: an answer did not reach the code: %s", c->caller.request, failed->text);
    c->coming--;
    if (!tool_call_is_gone(c))
        go_on(c);
}

/* Takes text. error: of profile_anthropic.py, or NULL. */
static void put_answer(struct tool_call *c, const char *ident, const char *error, json_t *text)
{
    json_t *v = json_pack("{s:o, s:s*}", "text", text, "error", error);
    char *bytes = record_dump(v, false, NULL);
    char path[sizeof(CALLS_FOLDER) + IDENT_CHARS + 2];

    json_decref(v);
    assert(bytes); /* it is short, or as long as a request */
    snprintf(path, sizeof(path), CALLS_FOLDER "/%s", ident);
    c->waits++;
    c->coming++;
    service_space_reply(c->service, &c->caller, str_of(c->session), str_of(path), bytes,
                        strlen(bytes), on_answered, c);
}

void tool_call_time_is_up(struct tool_call *c)
{
    unsigned long long seconds = c->anthropic->config.answer_ms / 1000;

    for (size_t i = 0; i < c->client_call_count; i++)
        put_answer(c, c->client_calls[i].ident, "timeout",
                   json_sprintf("the client has not answered within %llu seconds", seconds));
    c->client_call_count = 0;
    go_on(c);
}

static void put_result(struct tool_call *c, const char *ident, const json_t *result)
{
    const json_t *content = json_object_get(result, "content"), *one;
    AUTO(buf_done) struct buf b = BUF(MESSAGES_BODY_MAX);
    bool error = json_is_true(json_object_get(result, "is_error"));
    size_t i;

    buf_put(&b, json_view(content));
    json_array_foreach((json_t *)content, i, one)
        buf_put(&b, view_of(one, "text"));
    put_answer(c, ident, error ? "failed" : NULL, record_text(buf_str(&b)));
}

/* --- calls of the code --- */

static bool is_ident(const char *s)
{
    return s && strlen(s) == IDENT_CHARS && strspn(s, "0123456789abcdef") == IDENT_CHARS;
}

static void take_call(struct tool_call *c, const json_t *shown)
{
    const char *ident = text_of(shown, "id");
    const char *name = text_of(shown, "name");
    struct str text = view_of(shown, "input");
    json_t *input;
    struct client_call *p;

    if (!is_ident(ident) || !name || !list_has(c->callable, "name", name) || !text.p ||
        c->client_call_count == CLIENT_CALLS_MAX)
        return; /* not what profile_anthropic.py would write */
    input = json_load_limited(text, 0);
    if (!json_is_object(input)) { /* Python writes NaN and half characters, too */
        json_decref(input);
        return put_answer(c, ident, "invalid",
                          json_string("the arguments hold what JSON cannot say, or a NUL"));
    }
    if (!c->client_calls)
        c->client_calls = mem_zalloc(CLIENT_CALLS_MAX * sizeof(*c->client_calls));
    p = &c->client_calls[c->client_call_count++];
    memcpy(p->ident, ident, sizeof(p->ident));
    tool_id_make(p->id, "toolu_", c->session);
    json_array_append_new(c->fresh,
                          json_pack("{s:s, s:s, s:O}", "id", p->id, "name", name, "input", input));
    json_decref(input);
}

void tool_call_on_event(struct tool_call *c, const struct event *ev)
{
    json_t *shown, *one;
    size_t i;

    if (ev->kind != EVENT_DISPLAY || ev->bundle.count == 0 ||
        !str_is(ev->bundle.part[0].mime, CALLS_MIME) || ev->bundle.part[0].data.n > CALLS_BYTES)
        return;
    shown = json_load_limited(ev->bundle.part[0].data, 0);
    json_array_foreach(json_object_get(shown, "calls"), i, one)
        take_call(c, one);
    json_decref(shown);
    if (c->client_call_count > 0) {
        stand(c, true);
        timer_set(c->timer, c->anthropic->config.answer_ms);
        tool_call_tell(c);
    }
}

/* --- parked --- */

void tool_call_unpark(struct tool_call *c)
{
    *c->link = c->next;
    if (c->next)
        c->next->link = c->link;
    c->link = NULL;
    c->anthropic->parked_count--;
}

/* Leaves the oldest parked call of a tenant, or of all, that has as many as allowed. */
static void make_room(struct anthropic *a, const char *tenant)
{
    struct tool_call *oldest = NULL, *own = NULL;
    size_t owns = 0;

    for (struct tool_call *c = a->parked; c; c = c->next) {
        oldest = c;
        if (strcmp(c->caller.tenant, tenant) == 0) {
            own = c;
            owns++;
        }
    }
    if (owns >= PARKED_EACH)
        tool_call_leave(own);
    else if (a->parked_count >= PARKED_MAX)
        tool_call_leave(oldest);
}

void tool_call_park(struct tool_call *c)
{
    struct anthropic *a = c->anthropic;

    c->turn = NULL;
    make_room(a, c->caller.tenant);
    c->next = a->parked;
    c->link = &a->parked;
    if (c->next)
        c->next->link = &c->next;
    a->parked = c;
    a->parked_count++;
}

struct tool_call *tool_call_find(struct anthropic *a, const char *tenant, const char *id)
{
    for (struct tool_call *c = a->parked; c; c = c->next)
        if (strcmp(c->id, id) == 0 && strcmp(c->caller.tenant, tenant) == 0 && !c->left)
            return c;
    return NULL;
}

bool tool_call_resume(struct tool_call *c, const json_t *answers, struct turn *r)
{
    size_t left = 0;

    for (size_t i = 0; i < c->client_call_count; i++)
        if (!json_object_get(answers, c->client_calls[i].id) &&
            !list_has(c->fresh, "id", c->client_calls[i].id))
            return false;
    tool_call_unpark(c);
    c->turn = r;
    for (size_t i = 0; i < c->client_call_count; i++) {
        const json_t *answer = json_object_get(answers, c->client_calls[i].id);
        if (!answer)
            c->client_calls[left++] = c->client_calls[i];
        else if (c->execution) /* else the code has ended */
            put_result(c, c->client_calls[i].ident, answer);
    }
    c->client_call_count = left;
    if (left == 0) {
        if (c->execution)
            timer_clear(c->timer);
        go_on(c);
    }
    if (c->content || json_array_size(c->fresh) > 0)
        tool_call_tell(c);
    return true;
}

void tool_calls_leave(struct anthropic *a)
{
    while (a->parked)
        tool_call_leave(a->parked);
}
