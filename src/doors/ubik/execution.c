/* Executions: what was ordered, and how far it is. */
#include "doors/ubik/ubik_int.h"

#include <stdio.h>
#include <stdlib.h>

/* --- finding one --- */

struct finding {
    struct ubik *u;     /* borrowed */
    struct service *sv; /* borrowed */
    struct caller caller;
    struct who who;
    struct execution x;
    execution_fn *fn;
    void *arg;
};

static void finding_end(struct finding *f, const struct err *failed)
{
    f->fn(f->arg, failed ? NULL : &f->x, failed);
    json_decref(f->x.body);
    json_decref(f->x.record);
    json_decref(f->x.printed);
    free(f->x.owner);
    free(f);
}

static json_t *stream_of(const json_t *events, const char *name)
{
    const json_t *ev;
    struct buf b;
    struct err e;
    json_t *v;
    size_t i;

    buf_init(&b, 1 * MiB);
    json_array_foreach(events, i, ev) if (event_is(ev, name))
    {
        struct str text = event_text(ev, "text");
        if (text.n > b.max - b.n)
            text.n = text_head(text, b.max - b.n);
        (void)!buf_put(&b, text, &e);
    }
    v = record_text(buf_str(&b));
    buf_done(&b);
    return v;
}

static void on_runs(void *arg, const struct exec_info *infos, size_t count, bool more,
                    const struct err *failed)
{
    struct finding *f = arg;

    (void)more;
    if (!failed && count > 0)
        f->x.printed =
            json_pack("{s:o, s:o, s:s}", "stdout", stream_of(infos[0].events, "stdout"), "stderr",
                      stream_of(infos[0].events, "stderr"), "status", infos[0].row->status);
    finding_end(f, NULL);
}

static void on_record(void *arg, const json_t *record, const struct err *failed)
{
    struct finding *f = arg;
    const char *tool = json_string_value(json_object_get(f->x.body, "tool"));
    const char *session = json_string_value(json_object_get(record, "sandbox_id"));

    if (failed && failed->kind != ERR_MISSING) {
        finding_end(f, failed);
        return;
    }
    f->x.record = json_incref((json_t *)record);
    if (session && catalog_named(tool)->kind == WORK_SKILL && execution_is_over(&f->x)) {
        const struct exec_filter filter = {.tenant = f->caller.tenant, .session = session};
        service_exec_list(f->sv, &f->caller, &filter, (struct page){.limit = 1}, true, on_runs, f);
    } else {
        finding_end(f, NULL);
    }
}

static void on_item(void *arg, const struct item_row *item, const struct err *failed)
{
    struct finding *f = arg;
    struct agent *a;
    struct err e;

    if (!failed && !who_owns(&f->who, item->owner)) {
        err_set(&e, ERR_MISSING, "it is another end user's");
        failed = &e;
    }
    if (failed) {
        finding_end(f, failed);
        return;
    }
    snprintf(f->x.id, sizeof(f->x.id), "%s", item->id);
    f->x.owner = mem_strdup(item->owner);
    f->x.body = json_loads(item->body, 0, NULL);
    f->x.created_ms = item->created_ms;
    if (!json_is_true(json_object_get(f->x.body, "agent")))
        finding_end(f, NULL);
    else if ((a = ubik_agent(f->u, &e)))
        agent_get(a, &f->caller, str_of(f->x.id), NULL, on_record, f);
    else
        finding_end(f, &e);
}

void execution_find(struct ubik *u, struct service *sv, const struct caller *c, const struct who *w,
                    struct str id, execution_fn *fn, void *arg)
{
    struct finding *f = mem_zalloc(sizeof(*f));

    *f = (struct finding){.u = u, .sv = sv, .caller = *c, .who = *w, .fn = fn, .arg = arg};
    service_item_get(sv, c, "execution", id, on_item, f);
}

/* --- how far it is --- */

/* Clients poll until it is completed or failed, so these two are all ends there are; outputs.status
 * says more. */
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

const char *execution_status(const struct execution *x)
{
    struct str status = json_view(json_object_get(x->record, "status"));

    if (json_object_get(x->body, "outputs"))
        return "completed";
    for (size_t i = 0; i < COUNT(states); i++)
        if (str_is(status, states[i].of_agent))
            return states[i].status;
    return "failed";
}

bool execution_is_over(const struct execution *x)
{
    const char *status = execution_status(x);

    return strcmp(status, "completed") == 0 || strcmp(status, "failed") == 0;
}

/* --- over HTTP --- */

static void on_shown(void *arg, const struct execution *x, const struct err *failed)
{
    struct request *r = arg;
    AUTO_FREE char *base = base_url(request_ctx(r), r);

    if (failed)
        detail_err(r, failed, "Tool execution not found");
    else
        answer_json(r, 200, execution_show(x, base));
}

static void find(struct request *r, execution_fn *fn)
{
    struct who w;

    if (who_read(r, &w))
        execution_find(request_ctx(r), request_service(r), request_caller(r), &w,
                       request_path(r, "execution"), fn, r);
}

void handle_execution(struct request *r)
{
    find(r, on_shown);
}

/* --- all of them --- */

struct listing {
    struct request *r; /* borrowed */
    struct who who;
    struct pages pages;
    json_t *ids;   /* owned: strings */
    json_t *items; /* owned */
    uint64_t total;
};

static void listing_free(void *arg)
{
    struct listing *l = arg;

    json_decref(l->ids);
    json_decref(l->items);
    free(l);
}

static void list_on(struct listing *l);

/* One that is gone meanwhile is left out. */
static void on_listed(void *arg, const struct execution *x, const struct err *failed)
{
    struct listing *l = arg;
    AUTO_FREE char *base = base_url(request_ctx(l->r), l->r);

    if (failed && failed->kind != ERR_MISSING) {
        detail_err(l->r, failed, NULL);
        return;
    }
    if (x) {
        json_t *shown = execution_show(x, base);
        json_object_del(shown, "outputs");
        json_array_append_new(l->items, shown);
    }
    list_on(l);
}

static void list_on(struct listing *l)
{
    json_t *id = json_array_get(l->ids, 0);

    if (!id) {
        pages_answer(l->r, &l->pages, json_incref(l->items), l->total);
        return;
    }
    execution_find(request_ctx(l->r), request_service(l->r), request_caller(l->r), &l->who,
                   json_view(id), on_listed, l);
    json_array_remove(l->ids, 0);
}

static void on_items(void *arg, const struct item_row *items, size_t count, uint64_t total,
                     const struct err *failed)
{
    struct listing *l = arg;

    if (failed) {
        detail_err(l->r, failed, NULL);
        return;
    }
    for (size_t i = 0; i < count; i++)
        json_array_append_new(l->ids, json_string(items[i].id));
    l->total = total;
    list_on(l);
}

void handle_executions(struct request *r)
{
    struct listing *l = mem_zalloc(sizeof(*l));

    l->r = r;
    request_keep(r, listing_free, l);
    if (!who_read(r, &l->who) || !pages_read(r, &l->pages))
        return;
    l->ids = json_array();
    l->items = json_array();
    const struct item_filter f = {.kind = "execution",
                                  .view = *l->who.user ? ITEMS_OWN : ITEMS_ALL,
                                  .owner = l->who.user,
                                  .offset = (l->pages.page - 1) * l->pages.limit,
                                  .limit = l->pages.limit};
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

static void on_stop(void *arg, const struct execution *x, const struct err *failed)
{
    struct request *r = arg;
    struct err e;
    struct agent *a = failed ? NULL : ubik_agent(request_ctx(r), &e);

    if (failed)
        detail_err(r, failed, "Tool execution not found");
    else if (execution_is_over(x))
        detail(r, 409, "The execution is over already: it has %s", execution_status(x));
    else if (!a)
        detail_err(r, &e, NULL);
    else
        agent_cancel(a, request_caller(r), str_of(x->id), str_is(request_query(r, "hard"), "true"),
                     on_stopped, r);
}

void handle_execution_stop(struct request *r)
{
    find(r, on_stop);
}

/* --- an answer to its question --- */

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
                              "The execution goes on with it."));
}

/* Text of the form, or of an object in it: {"text": ...}, {"input": ...}; an approval as it is. */
static json_t *provided(const struct upload *u, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        json_t *v = NULL;
        struct err e;
        if (u[i].blob || !(str_is(u[i].field, "input_data_json") || str_is(u[i].field, "input")))
            continue;
        if (json_read_any(u[i].text, &v, &e) < 0)
            return record_text(u[i].text);
        for (const char *const *key = (const char *const[]){"text", "input", "value", NULL}; *key;
             key++)
            if (json_is_string(json_object_get(v, *key))) {
                json_t *text = json_incref(json_object_get(v, *key));
                json_decref(v);
                return text;
            }
        bool plain = json_is_string(v);
        if (plain)
            return v;
        json_decref(v);
        return record_text(u[i].text);
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

/* A file lies beside the others before the code goes on. */
static void on_put(void *arg, const struct space_file *files, size_t count,
                   const struct err *failed)
{
    struct request *r = arg;
    size_t n;
    const struct upload *u = request_uploads(r, &n);
    json_t *text = provided(u, n);

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

static void put_file(struct request *r, const struct execution *x, struct upload *file)
{
    struct str name = last_segment(file->name);
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

static void on_provide(void *arg, const struct execution *x, const struct err *failed)
{
    struct request *r = arg;
    size_t count;
    const struct upload *u = request_uploads(r, &count);
    struct upload *file = file_of(r);
    json_t *text;

    if (failed) {
        detail_err(r, failed, "Tool execution not found");
    } else if (strcmp(execution_status(x), "waiting_for_input") != 0) {
        detail(r, 400, "The execution does not wait for input: it is %s", execution_status(x));
    } else if (file) {
        put_file(r, x, file);
    } else if ((text = provided(u, count))) {
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
