/*
 * A run: the code goes to the service, what it prints to whoever watches, what came of it
 * to step(). Figures that were shown and not saved become files before that.
 */
#include "agent/quest.h"
#include "loop/loop.h"
#include "record/record.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define KILL_AFTER_MS 1000
#define PLOTS_MAX     10000

/* --- while it runs --- */

static void tell_console(struct quest *q, enum event_kind stream, bool last)
{
    struct buf *b = &q->console[stream == EVENT_STDERR];
    struct str text = buf_str(b);
    size_t torn = last ? 0 : utf8_torn(text);
    json_t *ev;

    text.n -= torn;
    if (text.n == 0 || q->console_bytes > CONSOLE_MAX) {
        b->n = q->console_bytes > CONSOLE_MAX ? 0 : b->n;
        return;
    }
    q->console_bytes += text.n;
    ev = json_pack("{s:s, s:s, s:o}", "type", "console", "stream",
                   stream == EVENT_STDERR ? "stderr" : "stdout", "text", record_text(text));
    if (q->console_bytes > CONSOLE_MAX)
        json_object_set_new(ev, "text", json_string("[what follows is in the logs alone]\n"));
    memmove(b->p, b->p + text.n, torn);
    b->n = torn;
    quest_tell(q, ev);
}

static bool is_image(struct str mime)
{
    return str_is(mime, "image/png") || str_is(mime, "image/jpeg") || str_is(mime, "image/svg+xml");
}

/* The first picture of a bundle is all of them: the rest says the same in other formats. */
static void keep_figure(struct quest *q, const struct event *ev)
{
    for (size_t i = 0; i < ev->bundle.count && q->figure_count < FIGURES_MAX; i++) {
        const struct mime_part *p = &ev->bundle.part[i];
        struct figure *f = &q->figures[q->figure_count];

        if (!is_image(p->mime) || q->figure_bytes + p->data.n > FIGURE_BYTES_MAX)
            continue;
        f->mime = mem_strndup(p->mime);
        f->bytes = mem_zalloc(p->data.n + 1);
        memcpy(f->bytes, p->data.p, p->data.n);
        f->n = p->data.n;
        q->figure_bytes += f->n;
        q->figure_count++;
        return;
    }
}

void quest_drop_figures(struct quest *q)
{
    for (size_t i = 0; i < q->figure_count; i++) {
        free(q->figures[i].mime);
        free(q->figures[i].bytes);
    }
    q->figure_count = q->figure_bytes = q->figure_at = 0;
}

static void on_queued(void *arg, const struct exec_info *info)
{
    struct quest *q = arg;

    json_object_set_new(quest_inner(q), "execution", json_string(info->row->id));
    quest_save(q); /* before its end, which the store hears of later */
}

static void on_event(void *arg, const struct event *ev)
{
    struct quest *q = arg;
    struct err e;

    if (ev->kind == EVENT_STDOUT || ev->kind == EVENT_STDERR) {
        (void)!buf_put(&q->console[ev->kind == EVENT_STDERR], ev->text, &e);
        tell_console(q, ev->kind, false);
    } else if (ev->kind == EVENT_DISPLAY || ev->kind == EVENT_RESULT) {
        keep_figure(q, ev);
    }
}

/* --- figures --- */

static const char *suffix_of(const char *mime)
{
    return strcmp(mime, "image/svg+xml") == 0 ? "svg"
           : strcmp(mime, "image/jpeg") == 0  ? "jpg"
                                              : "png";
}

static bool is_named(const json_t *list, const char *key, const char *name)
{
    const json_t *v;
    size_t i;

    json_array_foreach(list, i, v)
    {
        if (key ? json_is(v, key, name)
                : str_is((struct str){json_string_value(v), json_string_length(v)}, name))
            return true;
    }
    return false;
}

/* plot_0.png, or the next that is free. */
static void name_figure(struct quest *q, char *ret, size_t size)
{
    const char *suffix = suffix_of(q->figures[q->figure_at].mime);
    int64_t n = json_num(quest_inner(q), "plots");

    for (; n < PLOTS_MAX; n++) {
        snprintf(ret, size, "plot_%lld.%s", (long long)n, suffix);
        if (!is_named(json_object_get(quest_inner(q), "known"), NULL, ret) &&
            !is_named(json_object_get(q->record, "files"), "path", ret) &&
            !is_named(json_object_get(q->seen, "files"), "path", ret))
            break;
    }
    json_put_num(quest_inner(q), "plots", n + 1);
}

static void tell_ran(struct quest *q)
{
    quest_event(q, json_pack("{s:s, s:o}", "type", "ran", "seen", take_ptr(&q->seen)));
}

static void save_figure(struct quest *q);

static void on_figure(void *arg, const struct space_file *file, const struct err *failed)
{
    struct quest *q = arg;

    if (quest_back(q))
        return;
    if (failed) {
        log_debug("loop %s: a figure is not saved: %s", q->id, failed->text);
    } else {
        json_t *f =
            json_pack("{s:s, s:s, s:I, s:b}", "change", "created", "mime",
                      q->figures[q->figure_at].mime, "size", (json_int_t)file->size, "image", 1);
        json_put_str(f, "path", file->path);
        json_put_str(f, "name", file->path);
        json_array_append_new(json_object_get(q->seen, "files"), f);
    }
    q->figure_at++;
    save_figure(q);
}

static void save_figure(struct quest *q)
{
    const struct figure *f = &q->figures[q->figure_at];
    char name[64];

    if (q->figure_at >= q->figure_count) {
        tell_ran(q);
        return;
    }
    name_figure(q, name, sizeof(name));
    quest_place(q, str_of(name), (struct str){f->bytes, f->n}, -1, on_figure);
}

/* As many pictures saved as were shown: they are the same. */
static bool has_unsaved(const struct quest *q)
{
    const json_t *f;
    size_t i, saved = 0;

    json_array_foreach(json_object_get(q->seen, "files"), i, f) saved += json_on(f, "image");
    return q->figure_count > saved;
}

/* --- from outside --- */

static void on_interrupted(void *arg, const struct exec_info *info, const struct err *failed)
{
    (void)arg, (void)info, (void)failed; /* the run's own end tells */
}

static void on_ended(void *arg, const struct session_info *info, const struct err *failed)
{
    (void)arg, (void)info, (void)failed; /* likewise */
}

/* What the run has left behind goes with its interpreter: all that it has started. */
static void end_interpreter(struct quest *q, session_fn *fn, void *arg)
{
    service_session_restart(q->agent->config.service, &q->caller, json_str(q->record, "sandbox_id"),
                            fn, arg);
}

static void on_kill(void *arg)
{
    end_interpreter(arg, on_ended, NULL);
}

static void on_restarted(void *arg, const struct session_info *info, const struct err *failed)
{
    struct quest *q = arg;

    (void)info;
    if (quest_back(q))
        return;
    if (failed)
        log_warn("loop %s: its interpreter is not ended: %s", q->id, failed->text);
    tell_ran(q);
}

/* The code may end what it does first, for a second. */
void quest_interrupt(struct quest *q)
{
    if (!q->job)
        return;
    q->hard = true;
    service_exec_interrupt(q->agent->config.service, &q->caller,
                           json_str(quest_inner(q), "execution"), on_interrupted, NULL);
    if (!q->kill)
        q->kill = timer_new(q->agent->config.loop, on_kill, q);
    timer_set(q->kill, KILL_AFTER_MS);
}

/* --- its end --- */

static void see(struct quest *q, const json_t *events, const json_t *outcome)
{
    const json_t *inner = quest_inner(q);
    uint64_t run = json_array_size(json_object_get(inner, "runs")) + 1;

    json_decref(q->seen);
    q->seen = observe(events, outcome, run,
                      (uint64_t)json_num(json_object_get(inner, "budget"), "run_ms"));
}

static void on_end(void *arg, const struct exec_info *info, const struct err *failed)
{
    struct quest *q = arg;
    json_t *ev;

    q->job = NULL;
    timer_free(take_ptr(&q->kill));
    tell_console(q, EVENT_STDOUT, true);
    tell_console(q, EVENT_STDERR, true);
    if (failed) {
        ev = json_pack("{s:s, s:b}", "type", "unreachable", "busy", failed->kind == ERR_BUSY);
        json_put_str(ev, "message", str_of(failed->text));
        quest_event(q, ev);
        return;
    }
    see(q, info->events, info->outcome);
    if (q->hard)
        end_interpreter(q, on_restarted, quest_hold(q));
    else if (has_unsaved(q))
        save_figure(q);
    else
        tell_ran(q);
}

void quest_run(struct quest *q)
{
    static const struct exec_watcher watcher = {on_queued, on_event, on_end};
    const json_t *inner = quest_inner(q), *cleared = json_object_get(inner, "clearance");
    int64_t wall = json_num(json_object_get(inner, "budget"), "run_ms");
    int64_t left = json_num(inner, "deadline_ms") - now_ms();
    struct clearance clearance = {0};
    const struct exec_spec spec = {
        .session = json_str(q->record, "sandbox_id"),
        .kind = EXEC_CELL,
        .code = json_str(inner, "code"),
        .wall_ms = (uint64_t)(left < wall ? left > 1000 ? left : 1000 : wall),
        .clearance = cleared ? &clearance : NULL,
    };

    if (cleared) {
        (void)!str_to_cstr(json_str(cleared, "pool"), clearance.pool, sizeof(clearance.pool));
        (void)!str_to_cstr(json_str(cleared, "approval"), clearance.approval,
                           sizeof(clearance.approval));
    }
    quest_drop_figures(q);
    json_put_on(quest_inner(q), "held", false);
    q->job = service_execute(q->agent->config.service, &q->caller, &spec, &watcher, q);
}

/* --- a run that was under way when the server ended --- */

static void see_lost(struct quest *q)
{
    json_t *events = json_array();
    json_t *outcome =
        json_pack("{s:s, s:b, s:s}", "status", "session_lost", "state_lost", 1, "message",
                  "the server was restarted while this ran; how far it got is not "
                  "known, and it is not run again");

    see(q, events, outcome);
    json_decref(events);
    json_decref(outcome);
}

static void on_record(void *arg, const struct exec_info *info, const struct err *failed)
{
    struct quest *q = arg;

    if (quest_back(q))
        return;
    if (failed || !info->outcome)
        see_lost(q);
    else
        see(q, info->events, info->outcome);
    tell_ran(q);
}

void quest_recover(struct quest *q)
{
    struct str id = json_str(quest_inner(q), "execution");

    if (id.n == 0) {
        see_lost(q);
        tell_ran(q);
        return;
    }
    service_exec_get(q->agent->config.service, &q->caller, id, on_record, quest_hold(q));
}

/* --- pages of an earlier one --- */

static void on_page(void *arg, const struct exec_info *info, const struct err *failed)
{
    struct quest *q = arg;
    const json_t *page = json_object_get(quest_inner(q), "page");
    json_t *text;

    if (quest_back(q))
        return;
    text = failed ? json_string("What it printed is not on record any more.")
                  : observe_page(info->events, (uint64_t)json_num(page, "offset"),
                                 (uint64_t)json_num(page, "limit"));
    quest_event(
        q, json_pack("{s:s, s:o, s:b}", "type", "page", "text", text, "error", failed != NULL));
}

void quest_read(struct quest *q)
{
    service_exec_get(q->agent->config.service, &q->caller,
                     json_str(json_object_get(quest_inner(q), "page"), "execution"), on_page,
                     quest_hold(q));
}
