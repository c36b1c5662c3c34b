/*
 * One call of code_interpreter or python_executor: local files in, the code, the work dir, the
 * text.
 *
 * The call owns itself until its reply. A client that disconnects ends the execution. A worker
 * that is busy for the call finishes, and its result is dropped.
 */
#include "doors/qwen/qwen_int.h"
#include "fetch/fetch.h"
#include "lenient/lenient.h"

#include <stdio.h>
#include <stdlib.h>

static void on_deleted(void *arg, const struct err *failed)
{
    (void)arg, (void)failed; /* the session goes when its retention is over, then */
}

static void input_file_done(struct input_file *in)
{
    free(take_ptr(&in->bytes));
    fd_closep(&in->fd);
}

static void interpreter_call_free(struct interpreter_call *c)
{
    if (c->spec.stateless && *c->session)
        service_session_delete(c->spec.service, &c->caller, str_of(c->session), on_deleted, NULL);
    for (size_t i = 0; i < c->input_count; i++)
        input_file_done(&c->inputs[i]);
    free(c->inputs);
    call_params_done(&c->params);
    json_decref(c->events);
    json_decref(c->outcome);
    buf_done(&c->notes);
    buf_done(&c->text);
    free(c);
}

static bool is_gone(struct interpreter_call *c)
{
    if (c->fn)
        return false;
    interpreter_call_free(c);
    return true;
}

/* --- replies: each ends the call --- */

static void tell_uploaded(struct interpreter_call *c)
{
    size_t n = 0, room = sizeof(c->uploaded);

    for (size_t i = 0; i < c->input_count && n < room - 300; i++) {
        const char *name = c->inputs[i].name;
        bool image = strncmp(mime_of(str_of(name)), "image/", 6) == 0;
        if (*name)
            n += (size_t)snprintf(c->uploaded + n, room - n, "%s%s(%s)", n ? " " : "(Uploaded ",
                                  image ? "![image]" : "[file]", name);
    }
    if (n > 0)
        snprintf(c->uploaded + n, room - n, ") ");
}

static void answer(struct interpreter_call *c, int status, bool is_error, struct str text)
{
    c->status = status;
    c->is_error = is_error;
    c->reply = text;
    tell_uploaded(c);
    if (c->fn)
        c->fn(c->arg, c);
    interpreter_call_free(c);
}

/* In the words of Qwen-Agent's own wrapper for a tool that failed. */
static void fail(struct interpreter_call *c, const struct err *why)
{
    static const char *const types[] = {
        [ERR_NONE] = "RuntimeError",        [ERR_CALLER] = "ValueError",
        [ERR_LIMIT] = "ValueError",         [ERR_MISSING] = "LookupError",
        [ERR_CONFLICT] = "RuntimeError",    [ERR_BUSY] = "ToolServiceError",
        [ERR_DENIED] = "PermissionError",   [ERR_FULL] = "ToolServiceError",
        [ERR_DAMAGED] = "ToolServiceError", [ERR_SETUP] = "ToolServiceError",
        [ERR_AWAY] = "ToolServiceError",    [ERR_HOST] = "ToolServiceError",
    };
    char text[1024];

    if (why->kind == ERR_HOST)
        log_error("%s: %s", c->caller.request, why->text);
    snprintf(text, sizeof(text),
             "An error occurred when calling tool `%s`:\n%s: %s\nTraceback:\n  in the server, "
             "request %s",
             c->spec.tool, types[why->kind],
             why->kind == ERR_HOST ? "the sandbox could not be reached" : why->text,
             c->caller.request);
    answer(c, http_status_of(why), true, str_of(text));
}

static void deny(struct interpreter_call *c, const struct approval_info *info)
{
    char text[512];

    if (info->verdict != APPROVAL_WAIT || !info->row) {
        answer(c, 403, true,
               STR("Nothing has been run: the person who must agree has not agreed."));
        return;
    }
    snprintf(text, sizeof(text),
             "Nothing has been run yet: a person must agree first. The approval %s is pending; "
             "send the same call again when it has been given.",
             info->row->id);
    answer(c, 202, true, str_of(text));
}

/* --- the text --- */

static void put_link(void *arg, struct buf *b, size_t n, const char *mime)
{
    struct interpreter_call *c = arg;
    const struct qwen *q = c->spec.qwen;
    const char *folder = c->params.work_dir;
    char tenant[TENANT_FOLDER_MAX];

    if (c->has_images_dir) {
        buf_printf(b, "%s/%s-%zu.%s", q->images_dir, c->execution, n, suffix_of(mime));
        return;
    }
    if (!q->has_work_dir && !q->config.static_url && c->spec.attaches) {
        buf_printf(b, "attachment:fig-%03zu.%s", n, suffix_of(mime));
        return;
    }
    if (q->config.static_url)
        buf_printf(b, "%s/", q->config.static_url);
    else
        buf_printf(b, "%s%s", q->has_work_dir ? q->roots[0].path : c->base,
                   q->has_work_dir ? "/" : "/qwen/static/");
    if (q->has_work_dir)
        buf_printf(b, "%s/%s%s%s-%zu.%s", tenant_folder(c->caller.tenant, tenant),
                   folder ? folder : "", folder ? "/" : "", c->execution, n, suffix_of(mime));
    else
        image_name(q, c->caller.tenant, c->execution, n, mime, b);
}

static void put_text(struct interpreter_call *c)
{
    const struct markdown m = {.events = c->events,
                               .outcome = c->outcome,
                               .traceback = c->params.traceback,
                               .note = buf_str(&c->notes),
                               .link = put_link,
                               .arg = c};

    markdown_put(&c->text, &m);
}

static void put_pair(struct interpreter_call *c, const struct exec_info *info)
{
    json_t *pair = pair_of(c->spec.qwen, &c->params, info);
    AUTO_FREE char *text = record_dump(pair, false, NULL);

    buf_put(&c->text, str_of(text));
    json_decref(pair);
}

/* --- the execution --- */

static void note_missing(struct interpreter_call *c, const struct input_file *in, const char *why)
{
    char shown[NAME_SHOWN];

    buf_printf(&c->notes, "%sthe file %s is not there: %s.", c->notes.n ? " " : "",
               name_show(shown, str_of(in->source ? in->source : in->name)), why);
}

static bool on_input(void *arg, size_t i, const char *mime, const struct err *failed)
{
    struct interpreter_call *c = arg;

    (void)mime;
    if (failed) {
        note_missing(c, &c->inputs[i], failed->text);
        c->inputs[i].name[0] = '\0';
    }
    return true;
}

static void on_queued(void *arg, const struct exec_info *info)
{
    struct interpreter_call *c = arg;

    snprintf(c->execution, sizeof(c->execution), "%s", info->row->id);
    snprintf(c->session, sizeof(c->session), "%s", info->row->session);
}

static void on_exported(struct interpreter_call *c, struct str notes)
{
    if (is_gone(c))
        return;
    if (notes.n > 0)
        buf_printf(&c->text, "\n\nNote: %.*s", (int)notes.n, notes.p);
    answer(c, 200, false, buf_str(&c->text));
}

/* Links name the folder when the images are there. */
static void on_images_written(struct interpreter_call *c, struct str notes)
{
    if (is_gone(c))
        return;
    c->has_images_dir = notes.n == 0;
    put_text(c);
    on_exported(c, notes);
}

static bool has_images(const struct interpreter_call *c)
{
    const char *mime;

    return events_image(c->events, 1, &mime) != NULL;
}

/* MCP may end its call from inside, and the interpreter call with it. */
static bool on_ask(void *arg, const struct approval_info *info)
{
    struct interpreter_call *c = arg;

    return c->spec.call && call_on_ask(c->spec.call, c->x, info);
}

static void on_end(void *arg, const struct exec_info *info, const struct err *failed)
{
    struct interpreter_call *c = arg;
    const struct execution *x = take_ptr(&c->x);
    const struct approval_info *approval = execution_approval(x);
    const struct qwen *q = c->spec.qwen;

    if (c->spec.call && call_on_end(c->spec.call, x, failed))
        return interpreter_call_free(c);
    if (approval)
        return deny(c, approval);
    if (failed)
        return fail(c, failed);
    c->events = json_incref(info->events);
    c->outcome = json_incref(info->outcome);
    if (c->spec.stateless) {
        put_pair(c, info);
        answer(c, 200, false, buf_str(&c->text));
    } else if (q->images_dir && !q->has_work_dir && !q->config.static_url && has_images(c)) {
        export_images_start(c, on_images_written);
    } else {
        put_text(c);
        if (q->has_work_dir)
            export_start(c, on_exported);
        else
            answer(c, 200, false, buf_str(&c->text));
    }
}

static void execute(struct interpreter_call *c)
{
    static const struct exec_watcher watcher = {
        .on_queued = on_queued, .on_end = on_end, .on_ask = on_ask, .on_input = on_input};
    static const struct env_var profile = {STR("RETORT_PROFILE"), STR("qwen")};
    const struct qwen_config *config = &c->spec.qwen->config;
    AUTO_FREE struct file_input *files = mem_zalloc((c->input_count + 1) * sizeof(*files));
    char name[INSTANCE_MAX + 16] = "";
    AUTO(buf_done) struct buf code = BUF(c->params.code_n + SOURCE_MAX + 2);
    const char *answer = c->params.answer_symbol ? c->params.answer_symbol : c->params.answer_expr;
    struct exec_spec spec = {
        .pool = str_of(config->pool),
        .kind = EXEC_CELL,
        .wall_ms = c->params.wall_ms   ? c->params.wall_ms
                   : c->spec.stateless ? config->executor_ms
                                       : config->timeout_ms,
        .wall_is_asked = c->params.wall_ms > 0 && c->params.wall_ms < WALL_ALL_THERE_IS,
        .env = &profile,
        .env_count = 1,
        .files = files,
        .file_count = c->input_count,
        .lane = c->spec.lane,
        .ask = {.tool = str_of(c->spec.tool), .conversation = str_of(c->params.instance)},
    };

    buf_put(&code, (struct str){c->params.code, c->params.code_n});
    if (c->spec.stateless && answer)
        buf_printf(&code, "\n%s", answer);
    if (!c->spec.stateless)
        snprintf(name, sizeof(name), "qwen/%s", c->params.instance);
    for (size_t i = 0; i < c->input_count; i++)
        files[i] = (struct file_input){
            .path = str_of(c->inputs[i].name),
            .url = str_of(c->inputs[i].fd < 0 ? c->inputs[i].source : NULL),
            .content = c->inputs[i].content,
            .has_content = c->inputs[i].content.p != NULL,
            .fd = c->inputs[i].fd >= 0 ? &c->inputs[i].fd : NULL,
        };
    spec.code = buf_str(&code);
    spec.name = str_of(name);
    if (c->spec.call)
        spec.ask = call_approval_ask(
            c->spec.call,
            json_view(json_object_get(json_object_get(c->spec.call->params, "arguments"), "code")));
    c->x = service_execute(c->spec.service, &c->caller, &spec, &watcher, c);
    for (size_t i = 0; i < c->input_count; i++)
        input_file_done(&c->inputs[i]); /* copied */
}

/* --- its files, and the beginning --- */

static void open_inputs(void *arg)
{
    struct interpreter_call *c = arg;
    struct err e;
    size_t kept = 0;

    for (size_t i = 0; i < c->input_count; i++) {
        struct input_file *in = &c->inputs[i];
        if (input_file_blocks(in) && input_file_open(c->spec.qwen, c->caller.tenant, in, &e) < 0) {
            note_missing(c, in, e.text);
            input_file_done(in);
        } else {
            c->inputs[kept++] = *in;
        }
    }
    c->input_count = kept;
}

static void on_read(void *arg)
{
    struct interpreter_call *c = arg;

    if (!is_gone(c))
        execute(c);
}

static void on_blank(void *arg)
{
    answer(arg, 200, false, STR(""));
}

/* True: some have to be opened or decoded. */
static bool list_inputs(struct interpreter_call *c)
{
    size_t count = json_array_size(c->params.files), i;
    bool blocks = false;
    const json_t *one;
    struct err e;

    c->inputs = mem_zalloc((count + 1) * sizeof(*c->inputs));
    json_array_foreach(c->params.files, i, one) {
        struct input_file *in = &c->inputs[c->input_count];
        if (input_file_take(in, one, &e) < 0)
            continue; /* never: the parameters have been checked */
        blocks |= input_file_blocks(in);
        c->input_count++;
    }
    input_files_distinguish(c->inputs, c->input_count, &c->notes);
    return blocks;
}

struct interpreter_call *interpreter_call_start(const struct interpreter_call_spec *spec,
                                                struct call_params *p, call_reply_fn *fn, void *arg)
{
    struct interpreter_call *c = mem_zalloc(sizeof(*c));

    *c = (struct interpreter_call){
        .spec = *spec, .caller = *spec->caller, .fn = fn, .arg = arg, .params = *p};
    *p = (struct call_params){0};
    snprintf(c->base, sizeof(c->base), "%s", spec->base ? spec->base : "");
    buf_init(&c->notes, 64 * KiB);
    buf_init(&c->text, TEXT_MAX);
    if (str_trim((struct str){c->params.code, c->params.code_n}).n == 0)
        loop_later(spec->qwen->config.loop, on_blank, c);
    else if (list_inputs(c))
        service_work(spec->service, open_inputs, on_read, c);
    else
        execute(c);
    return c;
}

void interpreter_call_leave(struct interpreter_call *c)
{
    c->fn = NULL;
    if (!c->x)
        return;
    execution_leave(take_ptr(&c->x));
    interpreter_call_free(c);
}
