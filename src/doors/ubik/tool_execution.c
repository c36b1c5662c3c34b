/* Tool executions: find one, list them, stop one, answer the question that one waits with. */
#include "doors/ubik/ubik_int.h"

#include <stdio.h>
#include <stdlib.h>

struct execution_lookup {
    struct end_user user;
    struct tool_execution x;
    tool_execution_fn *fn;
    void *arg;
};

static void lookup_end(struct execution_lookup *f, const struct err *failed)
{
    f->fn(f->arg, failed ? NULL : &f->x, failed);
    json_decref(f->x.body);
    json_decref(f->x.record);
    json_decref(f->x.printed);
    free(f->x.owner);
    free(f);
}

static json_t *stream_of(const json_t *events, enum event_kind kind)
{
    AUTO(buf_done) struct buf b = BUF(16 * MiB);

    events_output(events, IN(kind), &b);
    return record_text((struct str){b.p, text_head(buf_str(&b), 1 * MiB)});
}

static void on_runs(void *arg, const struct exec_info *infos, size_t count, bool more,
                    const struct err *failed)
{
    struct execution_lookup *f = arg;

    (void)more;
    if (!failed && count > 0)
        f->x.printed = json_pack(
            "{s:o, s:o, s:s}", "stdout", stream_of(infos[0].events, EVENT_STDOUT), "stderr",
            stream_of(infos[0].events, EVENT_STDERR), "status", infos[0].row->status);
    lookup_end(f, NULL);
}

static void on_record(void *arg, const json_t *record, const struct err *failed)
{
    struct execution_lookup *f = arg;
    const char *tool = json_string_value(json_object_get(f->x.body, "tool"));
    const char *session = json_string_value(json_object_get(record, "sandbox_id"));

    if (failed && failed->kind != ERR_MISSING) {
        lookup_end(f, failed);
        return;
    }
    f->x.record = json_incref((json_t *)record);
    if (session && catalog_named(tool)->kind == CATALOG_SKILL && tool_execution_is_over(&f->x)) {
        const struct exec_filter filter = {.tenant = f->user.caller.tenant, .session = session};
        service_exec_list(f->user.sv, &f->user.caller, &filter, (struct page){.limit = 1}, true,
                          on_runs, f);
    } else {
        lookup_end(f, NULL);
    }
}

static void on_item(void *arg, const struct item_row *item, const struct err *failed)
{
    struct execution_lookup *f = arg;
    struct agent *a;
    struct err e;

    if (!failed && !end_user_owns(&f->user, item->owner)) {
        err_set(&e, ERR_MISSING, "it is another end user's");
        failed = &e;
    }
    if (failed) {
        lookup_end(f, failed);
        return;
    }
    snprintf(f->x.id, sizeof(f->x.id), "%s", item->id);
    f->x.owner = mem_strdup(item->owner);
    f->x.body = json_loads(item->body, 0, NULL);
    f->x.created_ms = item->created_ms;
    if (!json_is_true(json_object_get(f->x.body, "agent")))
        lookup_end(f, NULL);
    else if ((a = ubik_agent(f->user.u, &e)))
        agent_get(a, &f->user.caller, str_of(f->x.id), NULL, on_record, f);
    else
        lookup_end(f, &e);
}

void tool_execution_find(const struct end_user *user, struct str id, tool_execution_fn *fn,
                         void *arg)
{
    struct execution_lookup *f = mem_zalloc(sizeof(*f));

    *f = (struct execution_lookup){.user = *user, .fn = fn, .arg = arg};
    service_item_get(user->sv, &user->caller, "execution", id, on_item, f);
}

/* --- status --- */

/* Clients poll until the status is completed or failed, so every end is one of these two;
 * outputs.status says more. */
static const struct {
    const char *of_agent, *status;
} states[] = {
    {"pending",           "pending"          },
    {"running",           "processing"       },
    {"waiting_for_input", "waiting_for_input"},
    {"completed",         "completed"        },
    {"incomplete",        "completed"        },
    {"failed",            "failed"           },
    {"cancelled",         "failed"           },
};

const char *tool_execution_status(const struct tool_execution *x)
{
    struct str status = json_view(json_object_get(x->record, "status"));

    if (json_object_get(x->body, "outputs"))
        return "completed";
    for (size_t i = 0; i < COUNT(states); i++)
        if (str_is(status, states[i].of_agent))
            return states[i].status;
    return "failed";
}

bool tool_execution_is_over(const struct tool_execution *x)
{
    const char *status = tool_execution_status(x);

    return strcmp(status, "completed") == 0 || strcmp(status, "failed") == 0;
}

/* --- over HTTP --- */

static void on_shown(void *arg, const struct tool_execution *x, const struct err *failed)
{
    struct request *r = arg;
    AUTO_FREE char *base = base_url(request_base_url(r));

    if (failed)
        detail_err(r, failed, "Tool execution not found");
    else
        answer_json(r, 200, tool_execution_show(x, base));
}

static void find(struct request *r, tool_execution_fn *fn)
{
    struct end_user user;

    if (end_user_read(r, &user))
        tool_execution_find(&user, request_path(r, "execution"), fn, r);
}

void handle_execution(struct request *r)
{
    find(r, on_shown);
}

/* --- the list --- */

struct execution_list {
    struct request *r; /* borrowed */
    struct end_user user;
    struct pages pages;
    json_t *ids;   /* owned: strings */
    json_t *items; /* owned */
    uint64_t total;
};

static void list_free(void *arg)
{
    struct execution_list *l = arg;

    json_decref(l->ids);
    json_decref(l->items);
    free(l);
}

static void list_on(struct execution_list *l);

/* An execution that was deleted meanwhile is left out. */
static void on_listed(void *arg, const struct tool_execution *x, const struct err *failed)
{
    struct execution_list *l = arg;
    AUTO_FREE char *base = base_url(request_base_url(l->r));

    if (failed && failed->kind != ERR_MISSING) {
        detail_err(l->r, failed, NULL);
        return;
    }
    if (x) {
        json_t *shown = tool_execution_show(x, base);
        json_object_del(shown, "outputs");
        json_array_append_new(l->items, shown);
    }
    list_on(l);
}

static void list_on(struct execution_list *l)
{
    json_t *id = json_array_get(l->ids, 0);

    if (!id) {
        pages_answer(l->r, &l->pages, json_incref(l->items), l->total);
        return;
    }
    tool_execution_find(&l->user, json_view(id), on_listed, l);
    json_array_remove(l->ids, 0);
}

static void on_items(void *arg, const struct item_row *items, size_t count, uint64_t total,
                     const struct err *failed)
{
    struct execution_list *l = arg;

    if (failed) {
        detail_err(l->r, failed, NULL);
        return;
    }
    for (size_t i = 0; i < count; i++)
        json_array_append_new(l->ids, json_string(items[i].id));
    if (count > 0)
        pages_last(&l->pages, items[count - 1].id, items[count - 1].created_ms);
    l->total = total;
    list_on(l);
}

void handle_executions(struct request *r)
{
    struct execution_list *l = mem_zalloc(sizeof(*l));

    l->r = r;
    request_keep(r, list_free, l);
    if (!end_user_read(r, &l->user) || !pages_read(r, &l->pages))
        return;
    l->ids = json_array();
    l->items = json_array();
    const struct item_filter f = {.kind = "execution",
                                  .view = *l->user.id ? ITEMS_OWN : ITEMS_ALL,
                                  .owner = l->user.id,
                                  .page = pages_wanted(&l->pages),
                                  .count = true};
    service_item_list(request_service(r), request_caller(r), &f, on_items, l);
}

/* --- stop --- */

static void on_stopped(void *arg, const json_t *record, const struct err *failed)
{
    (void)record;
    if (failed && failed->kind != ERR_CONFLICT)
        detail_err(arg, failed, "Tool execution not found");
    else
        handle_execution(arg);
}

void run_cancel(struct request *r, struct str id, agent_fn *fn)
{
    struct err e;
    struct agent *a = ubik_agent(request_ctx(r), &e);

    if (a)
        agent_cancel(a, request_caller(r), id, str_is(request_query(r, "hard"), "true"), fn, r);
    else
        detail_err(r, &e, NULL);
}

static void on_stop(void *arg, const struct tool_execution *x, const struct err *failed)
{
    struct request *r = arg;

    if (failed)
        detail_err(r, failed, "Tool execution not found");
    else if (tool_execution_is_over(x))
        detail(r, 409, "The execution is over already: it has %s", tool_execution_status(x));
    else
        run_cancel(r, str_of(x->id), on_stopped);
}

void handle_execution_stop(struct request *r)
{
    find(r, on_stop);
}

/* --- input --- */

static void on_provided(void *arg, const json_t *record, const struct err *failed)
{
    (void)record;
    if (failed && failed->kind == ERR_CONFLICT)
        detail(arg, 400, "%s", failed->text);
    else if (failed)
        detail_err(arg, failed, "Tool execution not found");
    else
        answer_json(arg, 202,
                    json_pack("{s:s, s:s}", "status", "accepted", "message",
                              "The execution goes on with this input."));
}

/* The answer in the form: a text, a JSON string, or the text of a JSON object; owned. An approval
 * is passed on as it is. NULL: there is none. */
static json_t *provided(struct request *r)
{
    static const char *const keys[] = {"text", "input", "value"};
    size_t count;
    const struct upload *u = request_uploads(r, &count);

    for (size_t i = 0; i < count; i++) {
        json_t *v = NULL, *text;
        struct err e;
        if (u[i].blob || !(str_is(u[i].field, "input_data_json") || str_is(u[i].field, "input")))
            continue;
        text = json_read_any(u[i].text, &v, &e) == 0 ? v : NULL;
        for (size_t k = 0; k < COUNT(keys) && !json_is_string(text); k++)
            text = json_object_get(v, keys[k]);
        text = json_is_string(text) ? json_incref(text) : record_text(u[i].text);
        json_decref(v);
        return text;
    }
    return NULL;
}

static void provide(struct request *r, struct str text)
{
    struct err e;
    struct agent *a = ubik_agent(request_ctx(r), &e);

    if (a)
        agent_provide(a, request_caller(r), request_path(r, "execution"), text, on_provided, r);
    else
        detail_err(r, &e, NULL);
}

static void on_put(void *arg, const struct space_file *files, size_t count,
                   const struct err *failed)
{
    struct request *r = arg;
    json_t *text = provided(r);

    if (failed)
        detail_err(r, failed, NULL);
    else if (text)
        provide(r, json_view(text));
    else if (count > 0) {
        AUTO_FREE char *said = NULL;
        int length = asprintf(&said, "The file is there: /workspace/%.*s", (int)files[0].path.n,
                              files[0].path.p);
        assert(length > 0);
        provide(r, str_of(said));
    }
    json_decref(text);
}

static struct upload *file_of(struct request *r)
{
    size_t count;
    struct upload *u = request_uploads(r, &count);

    for (size_t i = 0; i < count; i++)
        if (u[i].blob && str_is(u[i].field, "file"))
            return &u[i];
    return NULL;
}

static void put_file(struct request *r, const struct tool_execution *x, struct upload *file)
{
    struct str name = str_base(file->name, "/\\");
    char path[NAME_BYTES + 32];

    if (name.n == 0 || name.n > NAME_BYTES) {
        invalid(r, "body", "file", false, "a file's name has 1 to 255 bytes");
        return;
    }
    snprintf(path, sizeof(path), "uploaded_files/%.*s", (int)name.n, name.p);
    service_space_put(request_service(r), request_caller(r),
                      json_view(json_object_get(x->record, "sandbox_id")), str_of(path),
                      take_ptr(&file->blob), on_put, r);
}

static void on_provide(void *arg, const struct tool_execution *x, const struct err *failed)
{
    struct request *r = arg;
    struct upload *file = file_of(r);
    json_t *text;

    if (failed) {
        detail_err(r, failed, "Tool execution not found");
    } else if (strcmp(tool_execution_status(x), "waiting_for_input") != 0) {
        detail(r, 400, "The execution does not wait for input: it is %s", tool_execution_status(x));
    } else if (file) {
        put_file(r, x, file);
    } else if ((text = provided(r))) {
        provide(r, json_view(text));
        json_decref(text);
    } else {
        invalid(r, "body", "input_data_json", true, "");
    }
}

void handle_provide_input(struct request *r)
{
    find(r, on_provide);
}
