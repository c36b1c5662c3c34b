/*
 * One call of a server tool.
 *
 * Theory of operation: a command, a cell or an edit (edit.c) is an execution of the service, with a
 * folder of its own, $OUTPUT_DIR, for files that are given to the user. When a person must agree
 * first and does not do so in time, the turn pauses, and the same call finds the approval later.
 *
 * Code may call client tools (client_tools.c): the message ends with these calls, and the call is
 * parked until the next request brings the answers. When no request comes, the code gets an error
 * in their place, and the result of the call is kept for a while.
 */
#include "doors/anthropic/tool_call_int.h"

#include <stdio.h>
#include <stdlib.h>

#define PRINTED_MAX   (32 * MiB) /* the pool's own limit is lower */
#define IMAGES_MAX    4
#define IMAGE_BASE64  (2 * MiB * 4 / 3) /* of one image, for the model */
#define KEPT_MS       600000            /* the result of a call whose client has not come back */
#define COMMAND_SHORT (24 * KiB)        /* a longer one is a script in the workspace */
#define VALUE_MAX     (9 * KiB)         /* CALLABLE_MAX names of 128 bytes */

static void tool_call_free(struct tool_call *c)
{
    timer_free(c->timer);
    for (size_t i = 0; i < c->path_count; i++)
        free(c->paths[i]);
    free(c->paths);
    buf_done(&c->out);
    buf_done(&c->err);
    json_decref(c->images);
    json_decref(c->outputs);
    json_decref(c->listed);
    json_decref(c->input);
    json_decref(c->callable);
    json_decref(c->fresh);
    json_decref(c->content);
    free(c->client_calls);
    free(c);
}

bool tool_call_is_gone(struct tool_call *c)
{
    c->waits--;
    if (c->left && c->waits == 0)
        tool_call_free(c);
    else if (!c->left)
        return false;
    return true;
}

void tool_call_leave(struct tool_call *c)
{
    if (c->link)
        tool_call_unpark(c);
    c->turn = NULL;
    c->left = true;
    if (c->execution)
        execution_leave(take_ptr(&c->execution));
    timer_clear(c->timer);
    if (c->waits == 0)
        tool_call_free(c);
}

/* --- telling the turn --- */

static void tell(void *arg)
{
    struct tool_call *c = arg;
    json_t *fresh;

    c->telling = false;
    if (tool_call_is_gone(c) || !c->turn)
        return;
    if (c->content) {
        c->left = true;
        turn_on_result(take_ptr(&c->turn), c->content, c->listed, c->images, c->text);
        if (c->waits == 0)
            tool_call_free(c);
    } else if (json_array_size(c->fresh) > 0) {
        fresh = c->fresh;
        c->fresh = json_array();
        turn_on_client_calls(c->turn, fresh);
        json_decref(fresh);
    }
}

void tool_call_tell(struct tool_call *c)
{
    if (c->telling)
        return;
    c->telling = true;
    c->waits++;
    loop_later(c->anthropic->config.loop, tell, c);
}

/* Takes content. */
static void end(struct tool_call *c, json_t *content)
{
    c->content = content;
    timer_clear(c->timer);
    if (!c->turn)
        timer_set(c->timer, KEPT_MS);
    tool_call_tell(c);
}

static void end_error(struct tool_call *c, const char *code, const char *text)
{
    c->text = text;
    end(c, content_error(c->tool, code));
}

static void end_failed(struct tool_call *c, const struct err *failed)
{
    static const char *const codes[] = {
        [ERR_NONE] = "unavailable",         [ERR_CALLER] = "invalid_tool_input",
        [ERR_LIMIT] = "invalid_tool_input", [ERR_MISSING] = "unavailable",
        [ERR_CONFLICT] = "unavailable",     [ERR_BUSY] = "too_many_requests",
        [ERR_DENIED] = "unavailable",       [ERR_FULL] = "unavailable",
        [ERR_DAMAGED] = "unavailable",      [ERR_SETUP] = "unavailable",
        [ERR_AWAY] = "unavailable",         [ERR_HOST] = "unavailable",
    };

    if (failed->kind == ERR_HOST || failed->kind == ERR_DAMAGED || failed->kind == ERR_FULL ||
        failed->kind == ERR_AWAY || failed->kind == ERR_SETUP)
        log_error("%s: %s", c->caller.request, failed->text);
    end_error(c, codes[failed->kind], NULL);
}

/* --- what the code printed --- */

/* A NUL becomes U+FFFD: clients send results back, and not all of them, nor all models, can read a
 * NUL in JSON. */
static void put(struct buf *b, struct str text)
{
    while (text.n > 0) {
        size_t n = strnlen(text.p, text.n);

        buf_put(b, (struct str){text.p, n});
        if (n == text.n)
            break;
        buf_put(b, STR("\xef\xbf\xbd"));
        text = (struct str){text.p + n + 1, text.n - n - 1};
    }
}

static void end_line(struct buf *b)
{
    if (b->n > 0 && b->p[b->n - 1] != '\n')
        buf_put(b, STR("\n"));
}

static void put_line(struct buf *b, struct str text)
{
    put(b, text);
    if (text.n > 0)
        end_line(b);
}

static void put_note(struct tool_call *c, struct str text)
{
    end_line(&c->err);
    buf_put(&c->err, STR("["));
    put(&c->err, text);
    buf_put(&c->err, STR("]\n"));
}

static void take_image(struct tool_call *c, const struct event_reader *r)
{
    const json_t *image = r->preview ? r->preview : r->image;
    const char *mime = r->preview ? r->preview_mime : r->mime;
    json_t *part;

    if (!image || strcmp(mime, "image/svg+xml") == 0 || json_string_length(image) > IMAGE_BASE64 ||
        json_array_size(c->images) == IMAGES_MAX)
        return;
    part = model_image((json_t *)image);
    if (part)
        json_array_append_new(c->images, part);
}

/* Files at the top of $OUTPUT_DIR, and of the workspace where the settings say so. */
static bool is_for_user(const struct tool_call *c, struct str path)
{
    size_t n = strlen(c->folder);

    if (path.n > n + 1 && memcmp(path.p, c->folder, n) == 0 && path.p[n] == '/')
        return !memchr(path.p + n + 1, '/', path.n - n - 1);
    return c->anthropic->config.capture_cwd && !memchr(path.p, '/', path.n);
}

static void take_file(struct tool_call *c, const json_t *ev)
{
    struct str path = event_text(ev, "path");

    if (str_is(event_text(ev, "change"), "deleted") || !is_for_user(c, path))
        return;
    if (json_is_true(json_object_get(ev, "too_large"))) {
        c->too_large = true;
    } else if (c->path_count == OUTPUTS_MAX) {
        c->left_out++;
    } else {
        if (!c->paths)
            c->paths = mem_zalloc(OUTPUTS_MAX * sizeof(*c->paths));
        c->paths[c->path_count++] = mem_strndup(path);
    }
}

static void take_events(struct tool_call *c, const json_t *events)
{
    struct event_reader r;

    event_reader_init(&r, events);
    r.settles = true;
    while (event_reader_next(&r)) {
        switch (r.kind) {
        case EVENT_STDOUT:
            put(&c->out, r.text);
            break;
        case EVENT_STDERR:
            put(&c->err, r.text);
            break;
        case EVENT_DISPLAY:
        case EVENT_RESULT:
            put_line(&c->out, r.text);
            take_image(c, &r);
            break;
        case EVENT_ERROR:
            put_line(&c->err, event_text(r.event, "traceback"));
            break;
        case EVENT_STATUS:
            put_note(c, r.text);
            break;
        case EVENT_FILE:
            take_file(c, r.event);
            break;
        case EVENT_CLEAR:
            break;
        }
    }
    event_reader_done(&r);
}

/* --- how it ends --- */

static void conclude(struct tool_call *c)
{
    if (c->tool == TOOL_EDITOR)
        return end(c, edit_content(c, buf_str(&c->out)));
    end(c, content_ran(c->tool, buf_str(&c->out), buf_str(&c->err), c->return_code,
                       json_incref(c->outputs), c->dropped));
}

static void keep_file(struct tool_call *c);

static void on_kept(void *arg, const struct file_row *file, const struct err *failed)
{
    struct tool_call *c = arg;
    struct str path = str_of(c->paths[c->path_at++]);
    json_t *name;

    if (failed) {
        if (c->refused++ == 0)
            c->refusal = *failed;
        if (failed->kind == ERR_HOST)
            log_error("%s: %s", c->caller.request, failed->text);
    } else {
        name = record_text(str_of(file->name));
        json_array_append_new(c->outputs,
                              json_pack("{s:s, s:s, s:O, s:I, s:s}", "type",
                                        server_tools[c->tool].output_type, "file_id", file->id,
                                        "filename", name, "size_bytes", (json_int_t)file->size,
                                        "mime_type", file->mime));
        json_array_append_new(c->listed, json_pack("{s:o, s:I, s:s, s:s, s:s, s:o}", "name", name,
                                                   "size", (json_int_t)file->size, "sha256",
                                                   file->hash, "mime", file->mime, "file_id",
                                                   file->id, "path", record_text(path)));
    }
    if (!tool_call_is_gone(c))
        keep_file(c);
}

/* One note for all files that the user does not get, however many there are. */
static void note_missing(struct tool_call *c)
{
    char text[sizeof(c->refusal.text) + 128];

    if (c->left_out > 0) {
        snprintf(text, sizeof(text),
                 "%zu more files in $OUTPUT_DIR are not given to the user: a call gives %d",
                 c->left_out, OUTPUTS_MAX);
        put_note(c, str_of(text));
    }
    if (c->refused > 0) {
        snprintf(text, sizeof(text), "%zu of the files in $OUTPUT_DIR could not be given: %s",
                 c->refused, c->refusal.kind == ERR_HOST ? "the server failed" : c->refusal.text);
        put_note(c, str_of(text));
    }
}

/* Makes the next path a file that the user can download. */
static void keep_file(struct tool_call *c)
{
    if (c->path_at == c->path_count) {
        note_missing(c);
        return conclude(c);
    }
    c->waits++;
    service_file_of_space(c->service, &c->caller, str_of(c->session), str_of(c->paths[c->path_at]),
                          on_kept, c);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void on_end(void *arg, const struct exec_info *info, const struct err *failed)
{
    struct tool_call *c = arg;
    const struct outcome *o;

    c->execution = NULL;
    timer_clear(c->timer);
    if (failed && failed->kind == ERR_DENIED)
        return end_error(c, "unavailable",
                         "Error: it was not run: the person who must agree has not agreed.");
    if (failed)
        return end_failed(c, failed);
    assert(info->how); /* it has just ended */
    o = info->how;
    if (c->turn) { /* they are there */
        json_array_clear(c->turn->uploads);
        json_array_clear(c->turn->skill_files);
    }
    take_events(c, info->events);
    c->return_code = o->exit_code;
    c->dropped = o->output_dropped;
    switch (o->status) {
    case OUTCOME_OK:
        break;
    case OUTCOME_RAISED:
        c->return_code = c->tool == TOOL_PYTHON ? 1 : o->exit_code;
        break;
    case OUTCOME_SESSION_LOST:
        return end_error(c, "unavailable", NULL);
    case OUTCOME_TIMEOUT:
        if (c->tool != TOOL_PYTHON || !c->repl)
            return end_error(c, "execution_time_exceeded", NULL);
        put_note(c, STR("detection_timeout: the cell took longer than it may"));
        c->return_code = 1;
        break;
    case OUTCOME_MEMORY:
        c->return_code = 137;
        break;
    case OUTCOME_INTERRUPTED:
        c->return_code = 130;
        break;
    case OUTCOME_DIED:
        c->return_code = o->exit_code ? o->exit_code : 1;
        break;
    }
    if (o->status != OUTCOME_OK && o->status != OUTCOME_RAISED)
        put_note(c, str_of(o->line));
    if (c->too_large)
        return end_error(c, c->tool == TOOL_EDITOR ? "invalid_tool_input" : "output_file_too_large",
                         NULL);
    if (c->path_count > 1)
        qsort(c->paths, c->path_count, sizeof(*c->paths), by_name);
    keep_file(c);
}

/* --- running --- */

static void on_queued(void *arg, const struct exec_info *info)
{
    struct tool_call *c = arg;

    (void)info;
    c->approval[0] = '\0';
    timer_clear(c->timer);
    if (c->turn)
        turn_on_session(c->turn);
}

static void on_event(void *arg, const struct event *ev)
{
    tool_call_on_event(arg, ev);
}

static bool on_ask(void *arg, const struct approval_info *info)
{
    struct tool_call *c = arg;

    if (info->verdict != APPROVAL_WAIT || !info->row)
        return false;
    memcpy(c->approval, info->row->id, sizeof(c->approval));
    c->approval_expires_ms = info->row->expires_ms;
    timer_set(c->timer, c->anthropic->config.approval_ms);
    return true;
}

/* The turn pauses; the same call finds the approval again when the client comes back. */
static void pause_for_approval(struct tool_call *c)
{
    turn_on_approval(c->turn, c->approval, c->approval_expires_ms);
    tool_call_leave(c);
}

static void on_timer(void *arg)
{
    struct tool_call *c = arg;

    if (c->content)
        tool_call_leave(c); /* no client has come for the result */
    else if (*c->approval)
        pause_for_approval(c);
    else
        tool_call_time_is_up(c);
}

/* "/workspace/.calls,name,name" */
static void name_tools(const struct tool_call *c, char *ret, size_t size)
{
    size_t n = (size_t)snprintf(ret, size, "%s", PLACE CALLS_FOLDER);
    const json_t *one;
    size_t i;

    json_array_foreach(c->callable, i, one) {
        const char *name = text_of(one, "name");
        if (n + strlen(name) + 2 < size)
            n += (size_t)snprintf(ret + n, size - n, ",%s", name);
    }
}

/* The files of the spec: folders of the call, its script if it is long, and uploads and skills that
 * no call has brought along yet. */
struct call_files {
    struct file_input at[3 + UPLOADS_SHOWN + SKILL_FILES_MAX];
    size_t count;
};

static void add_uploads(struct call_files *f, const json_t *uploads)
{
    const json_t *one;
    size_t i;

    json_array_foreach((json_t *)uploads, i, one)
        f->at[f->count++] =
            (struct file_input){.path = view_of(one, "path"), .file_id = view_of(one, "id")};
}

static void add_skills(struct call_files *f, const json_t *skill_files)
{
    const json_t *one;
    size_t i;

    json_array_foreach((json_t *)skill_files, i, one) {
        struct str uri = view_of(one, "uri");
        struct file_input file = {.path = view_of(one, "path")};

        if (uri.n) {
            file.has_content = true;
            file.content = own_skill_bytes(uri);
        } else {
            file.hash = text_of(one, "hash");
            file.size = (uint64_t)json_integer_value(json_object_get(one, "size"));
        }
        f->at[f->count++] = file;
    }
}

static void execute(struct tool_call *c, struct str text)
{
    static const struct exec_watcher watcher = {on_queued, on_event, on_end, on_ask};
    static const struct exec_watcher plain = {on_queued, NULL, on_end, on_ask};
    bool cell = c->tool == TOOL_PYTHON;
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
    AUTO_FREE struct call_files *files = mem_zalloc(sizeof(*files));
    struct exec_spec spec = {
        .session = str_of(c->session),
        .makes = !c->turn->exists,
        .pool = str_of(config->pool),
        .idle_ms = config->idle_ms,
        .kind = cell ? EXEC_CELL : EXEC_COMMAND,
        .code = text,
        .wall_ms = cell && c->repl ? config->cell_ms : config->timeout_ms,
        .env = env,
        .env_count = cell ? COUNT(env) : 2,
        .files = files->at,
        .alone = !cell, /* a changed file is given to the user with the call that ran */
        .ask = {.tool = str_of(server_tools[c->tool].name),
                .args = c->input,
                .implied = !c->turn->exists, /* a restart forgets the id that was promised */
                .code = c->tool == TOOL_EDITOR ? edit_code(c->input) : text,
                .reads = c->tool == TOOL_EDITOR && edit_reads(c->input)},
    };

    snprintf(output, sizeof(output), PLACE "%s", c->folder);
    env[1].value = str_of(output);
    name_tools(c, tools, sizeof(tools));
    env[3].value = str_of(tools);
    files->at[files->count++] = (struct file_input){.path = str_of(c->folder), .is_folder = true};
    files->at[files->count++] = (struct file_input){.path = STR(INPUT_DIR), .is_folder = true};
    if (!cell && text.n > COMMAND_SHORT) {
        snprintf(script, sizeof(script), "%s.sh", c->folder);
        snprintf(command, sizeof(command), ". " PLACE "%s", script);
        files->at[files->count++] = (struct file_input){
            .path = str_of(script), .has_content = true, .content = text, .is_ours = true};
        spec.code = str_of(command);
    }
    add_uploads(files, c->turn->uploads);
    add_skills(files, c->turn->skill_files);
    spec.file_count = files->count;
    c->execution = service_execute(c->service, &c->caller, &spec, cell ? &watcher : &plain, c);
}

/* --- the beginning --- */

static void begin(struct tool_call *c)
{
    json_t *text = json_object_get(c->input, c->tool == TOOL_BASH ? "command" : "code");
    AUTO_FREE char *edit = c->tool == TOOL_EDITOR ? edit_command(c->input) : NULL;

    if (edit)
        execute(c, str_of(edit));
    else if (!json_is_string(text))
        end_error(c, "invalid_tool_input", NULL);
    else
        execute(c, json_view(text));
}

struct tool_call *tool_call_start(struct turn *r, const struct pending_call *p)
{
    struct tool_call *c = mem_zalloc(sizeof(*c));

    *c = (struct tool_call){.anthropic = r->anthropic,
                            .service = r->service,
                            .caller = r->caller,
                            .tool = p->tool,
                            .repl = r->params.version->repl,
                            .input = json_incref(p->input),
                            .callable = json_incref(r->params.callable),
                            .turn = r,
                            .fresh = json_array(),
                            .out = BUF(PRINTED_MAX),
                            .err = BUF(PRINTED_MAX),
                            .images = json_array(),
                            .outputs = json_array(),
                            .listed = json_array()};
    memcpy(c->id, p->id, sizeof(c->id));
    memcpy(c->session, r->session, sizeof(c->session));
    snprintf(c->folder, sizeof(c->folder), "%.39s/%u", r->message.id, ++r->calls);
    c->timer = timer_new(r->anthropic->config.loop, on_timer, c);
    begin(c);
    return c;
}
