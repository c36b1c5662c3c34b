/*
 * One call of a tool of ours, from the model's order to its result.
 *
 * Theory of operation: a command or a cell runs as any execution does, with a folder of its
 * own for what the user shall have. Code may call tools of the client: what it says then is
 * a display of a type of its own (guest/py/retort_guest/profile_anthropic.py). The message
 * ends with these calls and the call is parked: its code waits, its time stands still. The
 * next request brings the answers, which are put into the workspace where the code looks
 * for them. If no request comes, the code is told that time is up; when it has ended its
 * result is kept for a while. A call that is not there any more has no result but an error.
 */
#include "doors/anthropic/deed_int.h"

#include <stdio.h>
#include <stdlib.h>

#define KEPT_MS       600000     /* the result of a call whose client has not come back */
#define COMMAND_SHORT (24 * KiB) /* a longer one is a script in the workspace */
#define VALUE_MAX     (9 * KiB)  /* CALLABLE_MAX names of the longest */

static void deed_free(struct deed *c)
{
    approval_unwatch(c->approval);
    timer_free(c->timer);
    capture_done(&c->capture);
    json_decref(c->input);
    json_decref(c->callable);
    json_decref(c->fresh);
    json_decref(c->content);
    free(c->pending);
    free(c);
}

bool deed_is_gone(struct deed *c)
{
    c->waits--;
    if (c->left && c->waits == 0)
        deed_free(c);
    else if (!c->left)
        return false;
    return true;
}

void deed_leave(struct deed *c)
{
    if (c->link)
        deed_unpark(c);
    deed_step_aside(c);
    c->watched = false;
    c->left = true;
    if (c->job)
        job_leave(take_ptr(&c->job));
    timer_clear(c->timer);
    if (c->waits == 0)
        deed_free(c);
}

/* --- telling --- */

static void tell(void *arg)
{
    struct deed *c = arg;
    json_t *fresh;

    c->telling = false;
    if (deed_is_gone(c) || !c->watched)
        return;
    if (c->content) {
        c->watched = false;
        c->left = true;
        c->watcher.on_over(c->arg, c->content, c->capture.listed, c->capture.images, c->text);
        if (c->waits == 0)
            deed_free(c);
    } else if (json_array_size(c->fresh) > 0) {
        fresh = c->fresh;
        c->fresh = json_array();
        c->watcher.on_calls(c->arg, fresh);
        json_decref(fresh);
    }
}

void deed_tell(struct deed *c)
{
    if (c->telling)
        return;
    c->telling = true;
    c->waits++;
    loop_later(c->anthropic->config.loop, tell, c);
}

/* Takes content. */
static void end(struct deed *c, json_t *content)
{
    c->content = content;
    deed_step_aside(c);
    timer_clear(c->timer);
    if (!c->watched)
        timer_set(c->timer, KEPT_MS);
    deed_tell(c);
}

static void end_error(struct deed *c, const char *code, const char *text)
{
    c->text = text;
    end(c, content_error(c->sub, code));
}

static void end_failed(struct deed *c, const struct err *failed)
{
    static const char *const codes[] = {
        [ERR_NONE] = "unavailable",         [ERR_CALLER] = "invalid_tool_input",
        [ERR_LIMIT] = "invalid_tool_input", [ERR_MISSING] = "unavailable",
        [ERR_CONFLICT] = "unavailable",     [ERR_BUSY] = "too_many_requests",
        [ERR_DENIED] = "unavailable",       [ERR_HOST] = "unavailable",
    };

    if (failed->kind == ERR_HOST)
        log_error("%s: %s", c->caller.request, failed->text);
    end_error(c, codes[failed->kind], NULL);
}

/* --- how it ends --- */

static const char *wants_text(enum sub sub)
{
    return sub == SUB_BASH ? "command" : "code";
}

static void conclude(struct deed *c, const struct outcome *o)
{
    struct capture *p = &c->capture;
    int code = o->exit_code;

    if (p->too_large) {
        end_error(c, "output_file_too_large", NULL);
        return;
    }
    if (o->status == OUTCOME_RAISED && c->sub == SUB_PYTHON)
        code = 1;
    end(c, content_ran(c->sub, buf_str(&p->out), buf_str(&p->err), code, json_incref(p->outputs),
                       o->output_dropped));
}

/* The outcome while files are kept; it is small, and so is copied. */
struct ending {
    struct deed *deed;
    struct outcome outcome;
};

static void on_files(void *arg)
{
    struct ending *n = arg;
    struct deed *c = n->deed;

    if (!deed_is_gone(c))
        conclude(c, &n->outcome);
    free(n);
}

static void keep_files(struct deed *c, const struct outcome *o)
{
    struct ending *n;

    if (c->capture.count == 0 || c->capture.too_large) {
        conclude(c, o);
        return;
    }
    n = mem_zalloc(sizeof(*n));
    *n = (struct ending){c, *o};
    c->waits++;
    capture_keep(&c->capture, on_files, n);
}

static void on_end(void *arg, const struct exec_info *info, const struct err *failed)
{
    struct deed *c = arg;
    struct outcome o;

    c->job = NULL;
    if (failed) {
        end_failed(c, failed);
        return;
    }
    assert(info->how); /* it has just ended */
    o = *info->how;
    switch (o.status) {
    case OUTCOME_OK:
    case OUTCOME_RAISED:
        break;
    case OUTCOME_SESSION_LOST:
        end_error(c, "unavailable", NULL);
        return;
    case OUTCOME_TIMEOUT:
        if (c->sub == SUB_BASH || !c->repl) {
            end_error(c, "execution_time_exceeded", NULL);
            return;
        }
        capture_note(&c->capture, "detection_timeout: the cell took longer than it may");
        capture_note(&c->capture, o.line);
        o.exit_code = 1;
        break;
    case OUTCOME_MEMORY:
        o.exit_code = 137;
        capture_note(&c->capture, o.line);
        break;
    case OUTCOME_INTERRUPTED:
        o.exit_code = 130;
        capture_note(&c->capture, o.line);
        break;
    case OUTCOME_DIED:
        o.exit_code = o.exit_code ? o.exit_code : 1;
        capture_note(&c->capture, o.line);
        break;
    }
    keep_files(c, &o);
}

/* --- running --- */

static void on_queued(void *arg, const struct exec_info *info)
{
    (void)arg, (void)info;
}

static void on_event(void *arg, const struct event *ev)
{
    struct deed *c = arg;

    if (!deed_takes_calls(c, ev))
        capture_event(&c->capture, ev);
}

/* "/workspace/.calls,name,name" */
static void name_tools(const struct deed *c, char *ret, size_t size)
{
    size_t n = (size_t)snprintf(ret, size, "%s", PLACE CALLS_FOLDER);
    const json_t *one;
    size_t i;

    json_array_foreach(c->callable, i, one)
    {
        const char *name = json_string_value(json_object_get(one, "name"));
        if (n + strlen(name) + 2 < size)
            n += (size_t)snprintf(ret + n, size - n, ",%s", name);
    }
}

static void execute(struct deed *c)
{
    static const struct exec_watcher watcher = {on_queued, on_event, on_end};
    struct str text = json_view(json_object_get(c->input, wants_text(c->sub)));
    char output[SPACE_PATH_MAX + sizeof(PLACE)], script[SPACE_PATH_MAX],
        command[SPACE_PATH_MAX + 32];
    char tools[VALUE_MAX];
    const struct anthropic_config *config = &c->anthropic->config;
    struct env_var env[] = {
        {STR("INPUT_DIR"),      STR(PLACE INPUT_DIR)},
        {STR("OUTPUT_DIR"),     {output, 0}         },
        {STR("RETORT_PROFILE"), STR("anthropic")    },
        {STR("RETORT_TOOLS"),   {tools, 0}          },
    };
    struct file_input files[] = {
        {.path = str_of(c->capture.folder), .is_folder = true},
        {.path = STR(INPUT_DIR),            .is_folder = true},
        {.has_content = true,               .content = text  },
    };
    struct exec_spec spec = {
        .session = str_of(c->session),
        .kind = c->sub == SUB_BASH ? EXEC_COMMAND : EXEC_CELL,
        .code = text,
        .wall_ms = c->sub == SUB_PYTHON && c->repl ? config->cell_ms : config->timeout_ms,
        .env = env,
        .env_count = c->sub == SUB_BASH ? 2 : COUNT(env),
        .files = files,
        .file_count = 2,
        .clearance = &c->clearance,
    };

    snprintf(output, sizeof(output), PLACE "%s", c->capture.folder);
    env[1].value = str_of(output);
    name_tools(c, tools, sizeof(tools));
    env[3].value = str_of(tools);
    if (c->sub == SUB_BASH && text.n > COMMAND_SHORT) {
        snprintf(script, sizeof(script), "%s.sh", c->capture.folder);
        snprintf(command, sizeof(command), ". " PLACE "%s", script);
        files[spec.file_count++].path = str_of(script);
        spec.code = str_of(command);
    }
    c->job = service_execute(c->service, &c->caller, &spec, &watcher, c);
}

/* --- whoever must agree --- */

static void ask(struct deed *c);

static void on_decided(void *arg)
{
    ask(arg);
}

static void wait_for(struct deed *c, const struct approval_row *row)
{
    if (c->approval)
        return;
    c->approval = service_approval_watch(c->service, row->id, on_decided, c);
    timer_set(c->timer, c->anthropic->config.approval_ms);
}

/* Once more, as it may have been decided in between; and then it is told of. */
static void on_waited_enough(void *arg, const struct approval_info *info, const struct err *failed)
{
    struct deed *c = arg;

    c->asking = false;
    if (deed_is_gone(c))
        return;
    approval_unwatch(take_ptr(&c->approval));
    timer_clear(c->timer);
    if (failed) {
        end_failed(c, failed);
    } else if (info->verdict == APPROVAL_CLEAR) {
        c->clearance = info->clearance;
        execute(c);
    } else if (info->verdict == APPROVAL_WAIT && info->row) {
        c->left = true;
        deed_step_aside(c);
        c->watcher.on_approval(c->arg, info->row);
        if (c->waits == 0)
            deed_free(c);
    } else {
        end_error(c, "unavailable",
                  "Error: it was not run: the person who must agree has not agreed.");
    }
}

static void on_verdict(void *arg, const struct approval_info *info, const struct err *failed)
{
    struct deed *c = arg;

    if (!failed && info->verdict == APPROVAL_WAIT && info->row) {
        c->asking = false;
        if (!deed_is_gone(c))
            wait_for(c, info->row);
        return;
    }
    on_waited_enough(arg, info, failed);
}

static void request(struct deed *c, approval_fn *fn)
{
    const struct approval_spec spec = {
        .tool = str_of(sub_tools[c->sub].name),
        .language = c->sub == SUB_BASH ? STR("shell") : STR("python"),
        .code = json_view(json_object_get(c->input, wants_text(c->sub))),
        .args = c->input,
        .session = str_of(c->session),
    };

    c->asking = true;
    c->waits++;
    service_approval_request(c->service, &c->caller, &spec, fn, c);
}

static void ask(struct deed *c)
{
    if (!c->asking && !c->job && !c->content)
        request(c, on_verdict);
}

static void on_timer(void *arg)
{
    struct deed *c = arg;

    if (c->content)
        deed_leave(c); /* nobody has come for it */
    else if (c->job)
        deed_time_is_up(c);
    else if (!c->asking)
        request(c, on_waited_enough);
}

/* --- the whole --- */

static void on_edited(void *arg, json_t *content)
{
    struct deed *c = arg;

    if (!deed_is_gone(c))
        end(c, json_incref(content));
}

static void begin(struct deed *c)
{
    const struct editor_dirs dirs = {.input = INPUT_DIR, .output = c->capture.folder};

    if (c->sub == SUB_EDITOR) {
        c->waits++;
        editor_run(c->anthropic->config.loop, c->service, &c->caller, str_of(c->session), &dirs,
                   c->input, on_edited, c);
    } else if (!json_is_string(json_object_get(c->input, wants_text(c->sub)))) {
        end_error(c, "invalid_tool_input", NULL);
    } else if (service_asks(c->service)) {
        ask(c);
    } else {
        execute(c);
    }
}

/* --- one at a time in a container: what they leave is told apart by when they ran --- */

static void take_place(struct deed *c)
{
    struct deed **at = &c->anthropic->active;

    while (*at)
        at = &(*at)->after;
    *at = c;
    c->active = at;
}

static bool is_free(const struct deed *c)
{
    for (const struct deed *d = c->anthropic->active; d != c; d = d->after)
        if (strcmp(d->session, c->session) == 0)
            return false;
    return true;
}

static void begin_later(void *arg)
{
    struct deed *c = arg;

    if (!deed_is_gone(c))
        begin(c);
}

static void take_turn(struct deed *c)
{
    c->begun = true;
    c->waits++;
    loop_later(c->anthropic->config.loop, begin_later, c);
}

void deed_step_aside(struct deed *c)
{
    struct deed *d = c->after;

    if (!c->active)
        return;
    *c->active = d;
    if (d)
        d->active = c->active;
    c->active = NULL;
    for (; d; d = d->after)
        if (!d->begun && strcmp(d->session, c->session) == 0) {
            take_turn(d);
            return;
        }
}

struct deed *deed_start(const struct deed_spec *spec, const struct deed_watcher *w, void *arg)
{
    struct deed *c = mem_zalloc(sizeof(*c));

    *c = (struct deed){
        .anthropic = spec->anthropic,
        .service = spec->service,
        .caller = *spec->caller,
        .sub = spec->sub,
        .repl = spec->repl,
        .input = json_is_object(spec->input) ? json_incref(spec->input) : json_object(),
        .callable = spec->callable ? json_incref((json_t *)spec->callable) : json_array(),
        .watcher = *w,
        .arg = arg,
        .watched = true,
        .fresh = json_array()};
    snprintf(c->id, sizeof(c->id), "%s", spec->id);
    snprintf(c->session, sizeof(c->session), "%s", spec->session);
    capture_init(&c->capture, c->sub);
    snprintf(c->capture.folder, sizeof(c->capture.folder), "%.39s/%u", spec->job, spec->number);
    c->capture.cwd = spec->anthropic->config.capture_cwd;
    c->capture.service = c->service;
    c->capture.caller = &c->caller;
    c->capture.session = c->session;
    c->timer = timer_new(spec->anthropic->config.loop, on_timer, c);
    take_place(c);
    if (is_free(c))
        take_turn(c);
    return c;
}
