/*
 * Executes the code of a round: tells watchers what it prints, saves the figures that it
 * showed as files, and hands the observation to step().
 */
#include "agent/agent_run.h"
#include "loop/loop.h"
#include "record/record.h"

#include <stdio.h>

#define KILL_AFTER_MS 1000
#define PLOTS_MAX     10000
#define FIGURES_MAX   20 /* of one execution */
#define FIGURE_MAX    (64 * MiB)

/* --- while the code runs --- */

static void tell_console(struct agent_run *run, enum event_kind stream, bool last)
{
    struct buf *b = &run->console[stream == EVENT_STDERR];
    struct str text = buf_str(b);
    size_t torn = last ? 0 : utf8_torn(text);
    json_t *ev;

    text.n -= torn;
    if (text.n == 0 || run->console_bytes > CONSOLE_MAX) {
        b->n = run->console_bytes > CONSOLE_MAX ? 0 : b->n;
        return;
    }
    run->console_bytes += text.n;
    ev = json_pack("{s:s, s:s, s:o}", "type", "console", "stream",
                   stream == EVENT_STDERR ? "stderr" : "stdout", "text", record_text(text));
    if (run->console_bytes > CONSOLE_MAX)
        json_object_set_new(ev, "text", json_string("[what follows is in the logs alone]\n"));
    memmove(b->p, b->p + text.n, torn);
    b->n = torn;
    run_tell(run, ev);
}

static void on_queued(void *arg, const struct exec_info *info)
{
    struct agent_run *run = arg;

    run_stop_waiting(run);
    run->answer = ANSWER_NONE;
    run_event(run, json_pack("{s:s, s:s}", "type", "queued", "execution", info->row->id));
}

static void on_event(void *arg, const struct event *ev)
{
    struct agent_run *run = arg;

    if (ev->kind == EVENT_STDOUT || ev->kind == EVENT_STDERR) {
        buf_put(&run->console[ev->kind == EVENT_STDERR], ev->text);
        tell_console(run, ev->kind, false);
    }
}

/* --- figures: those that were shown become files --- */

static const char *suffix_of(const char *mime)
{
    return strcmp(mime, "image/svg+xml") == 0 ? "svg"
           : strcmp(mime, "image/jpeg") == 0  ? "jpg"
                                              : mime + strlen("image/");
}

static bool is_named(const json_t *list, const char *key, const char *name)
{
    const json_t *v;
    size_t i;

    json_array_foreach(list, i, v) {
        if (key ? json_is(v, key, name) : str_is(json_text(v), name))
            return true;
    }
    return false;
}

/* plot_0.png, or the next free name. */
static void name_figure(struct agent_run *run, const char *mime, char *ret, size_t size)
{
    int64_t n = run->record.plots;

    for (; n < PLOTS_MAX; n++) {
        snprintf(ret, size, "plot_%lld.%s", (long long)n, suffix_of(mime));
        if (!is_named(run->record.known, NULL, ret) && !is_named(run->record.files, "path", ret) &&
            !is_named(json_object_get(run->seen, "files"), "path", ret))
            break;
    }
    run->record.plots = n + 1;
}

static void tell_ran(struct agent_run *run)
{
    run_event(run, json_pack("{s:s, s:o}", "type", "ran", "seen", take_ptr(&run->seen)));
}

static void save_figure(struct agent_run *run);

static void on_figure(void *arg, const struct space_file *file, size_t count,
                      const struct err *failed)
{
    struct agent_run *run = arg;

    if (run_release(run))
        return;
    if (failed)
        log_debug("agent run %s: a figure is not saved: %s", run->id, failed->text);
    else if (count > 0)
        json_array_append_new(json_object_get(run->seen, "files"),
                              json_pack("{s:s, s:s, s:I, s:b, s:o, s:o}", "change", "created",
                                        "mime", file->mime, "size", (json_int_t)file->size, "image",
                                        1, "path", text_value(file->path), "name",
                                        text_value(file->path)));
    save_figure(run);
}

/* The number of bytes of an image. */
static int64_t size_of(struct str image, const char *mime)
{
    size_t n = image.n;

    if (strcmp(mime, "image/svg+xml") == 0)
        return (int64_t)n;
    while (n > 0 && image.p[n - 1] == '=')
        n--;
    return (int64_t)(n / 4 * 3 + (n % 4 ? n % 4 - 1 : 0));
}

/* Whether the code has saved the same figure itself, to an image that it made in this run: the
 * figure says so (figures.py), or there is an image of exactly as many bytes. */
static bool is_saved(const struct agent_run *run, const struct event_reader *shown)
{
    const json_t *of = json_object_get(json_object_get(shown->event, "metadata"), "retort"), *f;
    struct str path = json_str(of, "file");
    int64_t size = size_of(json_text(shown->image), shown->mime);
    size_t i;

    json_array_foreach(json_object_get(run->seen, "files"), i, f)
        if (json_on(f, "image") &&
            (str_eq(json_str(f, "path"), path) || json_num(f, "size") == size))
            return true;
    return false;
}

/* The next image that was shown and not saved; NULL: there are no more. Borrowed. */
static json_t *next_figure(struct agent_run *run, const char **ret_mime)
{
    json_t *found = NULL;
    struct event_reader r;

    event_reader_init(&r, run->transcript);
    while (!found && event_reader_next(&r))
        if (r.image && r.images > run->figure_at && r.images <= FIGURES_MAX) {
            run->figure_at = r.images;
            found = is_saved(run, &r) ? NULL : (json_t *)r.image;
        }
    *ret_mime = r.mime;
    event_reader_done(&r);
    return found;
}

/* Sends a data URL, which the service decodes. */
static void save_figure(struct agent_run *run)
{
    const char *mime;
    json_t *data = next_figure(run, &mime);
    AUTO(buf_done) struct buf url = BUF(FIGURE_MAX);
    char name[64];

    if (!data)
        return tell_ran(run);
    data = strcmp(mime, "image/svg+xml") == 0 ? record_base64(json_text(data)) : json_incref(data);
    buf_put(&url, STR("data:;base64,"));
    buf_put(&url, json_text(data));
    json_decref(data);
    name_figure(run, mime, name, sizeof(name));
    service_space_fetch(run->agent->config.service, run->caller, json_text(run->record.sandbox_id),
                        str_of(name), buf_str(&url), on_figure, run_hold(run));
}

/* --- interrupting --- */

static void on_interrupted(void *arg, const struct exec_info *info, const struct err *failed)
{
    (void)arg, (void)info, (void)failed; /* on_end() follows */
}

static void on_ended(void *arg, const struct session_info *info, const struct err *failed)
{
    (void)arg, (void)info, (void)failed; /* on_end() follows */
}

/* Restarting the interpreter also ends every process that the code has started. */
static void end_interpreter(struct agent_run *run, session_fn *fn, void *arg)
{
    service_session_restart(run->agent->config.service, run->caller,
                            json_text(run->record.sandbox_id), fn, arg);
}

static void on_kill(void *arg)
{
    end_interpreter(arg, on_ended, NULL);
}

static void on_restarted(void *arg, const struct session_info *info, const struct err *failed)
{
    struct agent_run *run = arg;

    (void)info;
    if (run_release(run))
        return;
    if (failed)
        log_warn("agent run %s: its interpreter is not ended: %s", run->id, failed->text);
    tell_ran(run);
}

/* The code has a second to end by itself. */
void run_interrupt(struct agent_run *run)
{
    if (!run->x)
        return;
    run->hard = true;
    service_exec_interrupt(run->agent->config.service, run->caller,
                           json_text(run->record.execution), on_interrupted, NULL);
    if (!run->kill)
        run->kill = timer_new(run->agent->config.loop, on_kill, run);
    timer_set(run->kill, KILL_AFTER_MS);
}

/* --- the end of an execution --- */

static void see(struct agent_run *run, const json_t *events, const json_t *outcome)
{
    json_decref(run->seen);
    run->seen =
        observe(events, outcome, json_array_size(run->record.runs) + 1, run->record.budget.run_ms);
}

static void on_end(void *arg, const struct exec_info *info, const struct err *failed)
{
    struct agent_run *run = arg;
    const struct approval_info *asked = execution_approval(take_ptr(&run->x));

    timer_free(take_ptr(&run->kill));
    tell_console(run, EVENT_STDOUT, true);
    tell_console(run, EVENT_STDERR, true);
    if (failed) {
        run_stop_waiting(run);
        run->answer = ANSWER_NONE;
        if (asked)
            return run_refused(run, asked->row);
        return run_event(run, json_pack("{s:s, s:b, s:o}", "type", "unreachable", "busy",
                                        err_will_pass(failed), "message",
                                        text_value(str_of(failed->text))));
    }
    see(run, info->events, info->outcome);
    json_put(&run->transcript, json_incref(info->events));
    run->figure_at = 0;
    if (run->hard)
        end_interpreter(run, on_restarted, run_hold(run));
    else
        save_figure(run);
}

void run_exec(struct agent_run *run)
{
    static const struct exec_watcher watcher = {on_queued, on_event, on_end, run_on_ask};
    const struct run_record *r = &run->record;
    int64_t wall = (int64_t)r->budget.run_ms;
    int64_t left = r->deadline_ms - time_now_ms();
    /* Code looks into /home/uploaded_files, which is this folder, with or without a file in it. */
    const struct file_input uploads = {.path = STR("uploaded_files"), .is_folder = true};
    const struct exec_spec spec = {
        .session = json_text(r->sandbox_id),
        .kind = EXEC_CELL,
        .code = json_text(r->code),
        .wall_ms = (uint64_t)(left < wall ? left > 1000 ? left : 1000 : wall),
        .files = &uploads,
        .file_count = 1,
        .ask = {.tool = json_text(r->tool),
                .conversation = str_of(run->id),
                .answers = json_str(r->question, "approval"),
                .can_ask = r->can_answer,
                .external = r->external},
    };

    json_put(&run->transcript, NULL);
    run->x = service_execute(run->agent->config.service, run->caller, &spec, &watcher, run);
    if (run->answer != ANSWER_NONE)
        execution_answer(run->x, run->answer);
}

/* --- an execution that was cut off by a restart --- */

static void see_lost(struct agent_run *run)
{
    json_t *outcome =
        json_pack("{s:s, s:b, s:s}", "status", "session_lost", "state_lost", 1, "message",
                  "the server was restarted while this ran; how far it got is not "
                  "known, and it is not run again");

    see(run, NULL, outcome);
    json_decref(outcome);
}

static void on_record(void *arg, const struct exec_info *info, const struct err *failed)
{
    struct agent_run *run = arg;

    if (run_release(run))
        return;
    if (failed || !info->outcome)
        see_lost(run);
    else
        see(run, info->events, info->outcome);
    tell_ran(run);
}

void run_recover(struct agent_run *run)
{
    service_exec_get(run->agent->config.service, run->caller, json_text(run->record.execution),
                     on_record, run_hold(run));
}

/* --- output of an earlier execution --- */

static void on_page(void *arg, const struct exec_info *info, const struct err *failed)
{
    struct agent_run *run = arg;
    const json_t *page = run->record.page;
    json_t *text;

    if (run_release(run))
        return;
    text = failed ? json_string("What it printed is not on record any more.")
                  : observe_page(info->events, (uint64_t)json_num(page, "offset"),
                                 (uint64_t)json_num(page, "limit"));
    run_event(run,
              json_pack("{s:s, s:o, s:b}", "type", "page", "text", text, "error", failed != NULL));
}

void run_read_output(struct agent_run *run)
{
    service_exec_get(run->agent->config.service, run->caller,
                     json_str(run->record.page, "execution"), on_page, run_hold(run));
}
