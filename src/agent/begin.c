/*
 * The beginning: a sandbox, the files that were given, and the facts that a model is told.
 * Each step ends in a callback that begins the next.
 */
#include "agent/quest.h"
#include "loop/loop.h"

#include <stdlib.h>
#include <unistd.h>

#define TRIES_MAX 4
#define FACTS_MAX (16 * KiB)

static void fail(struct quest *q, const char *code, const struct err *why)
{
    json_t *ev = json_pack("{s:s, s:s}", "type", "failed", "code", code);

    json_put_str(ev, "message", str_of(why->text));
    quest_event(q, ev);
}

/* --- bytes into the workspace --- */

struct placing {
    struct quest *q; /* held */
    struct blob *blob;
    char *path;       /* owned */
    struct str bytes; /* borrowed */
    int fd;           /* owned, or -1 */
    placed_fn *fn;
    struct err failed;
};

static void place_end(struct placing *p, const struct space_file *file, const struct err *failed)
{
    p->fn(p->q, file, failed);
    fd_closep(&p->fd);
    free(p->path);
    free(p);
}

static void on_put(void *arg, const struct space_file *files, size_t count,
                   const struct err *failed)
{
    struct placing *p = arg;

    if (!failed && count == 0)
        err_set(&p->failed, ERR_HOST, "nothing was put");
    place_end(p, failed ? NULL : files, failed ? failed : count == 0 ? &p->failed : NULL);
}

static void write_bytes(void *arg)
{
    struct placing *p = arg;
    int rc = p->fd >= 0 ? blob_write_fd(p->blob, p->fd, &p->failed)
                        : blob_write(p->blob, p->bytes, &p->failed);

    if (rc < 0)
        blob_free(take_ptr(&p->blob));
}

static void on_written(void *arg)
{
    struct placing *p = arg;
    struct quest *q = p->q;

    if (q->closed && p->blob) {
        blob_free(take_ptr(&p->blob));
        err_set(&p->failed, ERR_CONFLICT, "the loop has ended");
    }
    if (!p->blob) {
        place_end(p, NULL, &p->failed);
        return;
    }
    service_space_put(q->agent->config.service, &q->caller, json_str(q->record, "sandbox_id"),
                      str_of(p->path), p->blob, on_put, p);
}

static void on_no_blob(void *arg)
{
    struct placing *p = arg;

    place_end(p, NULL, &p->failed);
}

void quest_place(struct quest *q, struct str path, struct str bytes, int fd, placed_fn *fn)
{
    struct placing *p = mem_zalloc(sizeof(*p));

    *p = (struct placing){
        .q = quest_hold(q), .path = mem_strndup(path), .bytes = bytes, .fd = fd, .fn = fn};
    p->blob = service_blob_new(q->agent->config.service, &q->caller, &p->failed);
    if (p->blob)
        loop_work(q->agent->config.loop, write_bytes, on_written, p);
    else
        loop_later(q->agent->config.loop, on_no_blob, p);
}

/* --- the facts --- */

static json_t *names_of(json_t *packages)
{
    json_t *names = json_array(), *version;
    const char *name;

    json_object_foreach(packages, name, version) json_array_append_new(names, json_string(name));
    return names;
}

static bool is_given(const struct quest *q, struct str path)
{
    for (size_t i = 0; i < q->file_count; i++)
        if (q->files[i].path && str_is(path, q->files[i].path))
            return true;
    return false;
}

static struct str base_of(struct str path)
{
    const char *slash = path.n ? memrchr(path.p, '/', path.n) : NULL;

    return slash ? (struct str){slash + 1, path.n - (size_t)(slash + 1 - path.p)} : path;
}

/* A file may lie under two names; it is one. */
static void add_input(json_t *inputs, const struct space_file *f)
{
    struct str name = base_of(f->path);
    const json_t *v;
    json_t *input;
    size_t i;

    json_array_foreach(inputs, i, v)
    {
        if (str_eq(json_str(v, "name"), name))
            return;
    }
    input = json_pack("{s:I, s:s}", "size", (json_int_t)f->size, "mime", f->mime);
    json_put_str(input, "name", name);
    json_array_append_new(inputs, input);
}

static void find_pool(struct quest *q, struct pool_info *ret)
{
    struct service *sv = q->agent->config.service;
    struct str name = json_str(quest_inner(q), "pool");

    for (size_t i = service_pool_count(sv); i > 0; i--) {
        service_pool_get(sv, i - 1, ret);
        if (str_is(name, ret->pool->name))
            return;
    }
}

static void on_list(void *arg, const struct space_file *files, size_t count,
                    const struct err *failed)
{
    struct quest *q = arg;
    json_t *ev, *inputs, *known;
    struct pool_info pool = {0};
    struct model *m;
    struct buf facts;

    if (quest_back(q))
        return;
    if (failed) {
        fail(q, "CodeSandboxUnreachable", failed);
        return;
    }
    inputs = json_array();
    known = json_array();
    for (size_t i = 0; i < count && i < KNOWN_MAX; i++) {
        json_t *path = json_stringn(files[i].path.n ? files[i].path.p : "", files[i].path.n);
        json_array_append_new(known, path ? path : json_string(""));
        if (is_given(q, files[i].path))
            add_input(inputs, &files[i]);
    }
    find_pool(q, &pool);
    m = quest_model(q);
    json_object_set(quest_inner(q), "inputs", inputs);
    buf_init(&facts, FACTS_MAX);
    prompt_facts(&facts, &pool, quest_inner(q));
    ev = json_pack("{s:s, s:O, s:o, s:o, s:o, s:b, s:b, s:b}", "type", "begun", "sandbox",
                   json_object_get(quest_inner(q), "session"), "inputs", inputs, "known", known,
                   "packages", names_of(pool.packages), "gated",
                   service_asks(q->agent->config.service), "network",
                   pool.pool->egress != EGRESS_NONE, "text_mode", m && m->text_only);
    json_put_str(ev, "facts", buf_str(&facts));
    buf_done(&facts);
    quest_event(q, ev);
}

/* --- the files --- */

static void place_next(struct quest *q);

static void placed(struct quest *q, const struct space_file *file, const struct err *failed)
{
    struct given_file *g = &q->files[q->file_at];
    struct err e;

    if (failed) {
        e = *failed;
        err_wrap(&e, "the input %s",
                 g->file_id && *g->file_id ? g->file_id
                 : g->url && *g->url       ? g->url
                 : g->path                 ? g->path
                                           : "");
        fail(q, "InputFailed", &e);
        return;
    }
    free(g->path); /* as it is kept */
    g->path = mem_strndup(file->path);
    free(take_ptr(&g->content));
    q->file_at++;
    place_next(q);
}

static void on_placed(void *arg, const struct space_file *file, const struct err *failed)
{
    struct quest *q = arg;

    if (!quest_back(q))
        placed(q, file, failed);
}

static void on_fetched(void *arg, const struct space_file *files, size_t count,
                       const struct err *failed)
{
    struct quest *q = arg;
    struct err e;

    if (quest_back(q))
        return;
    err_set(&e, ERR_HOST, "nothing was put");
    placed(q, files, failed ? failed : count == 0 ? &e : NULL);
}

static void on_opened(void *arg, int *fd, const struct file_row *file, const struct err *failed)
{
    struct quest *q = arg;
    struct given_file *g = &q->files[q->file_at];

    if (quest_back(q))
        return;
    if (failed) {
        placed(q, NULL, failed);
        return;
    }
    quest_place(q, str_of(g->path && *g->path ? g->path : file->name), (struct str){0}, take_fd(fd),
                on_placed);
}

static void place_next(struct quest *q)
{
    const struct given_file *g = &q->files[q->file_at];
    struct service *sv = q->agent->config.service;

    if (q->file_at >= q->file_count)
        service_space_list(sv, &q->caller, json_str(q->record, "sandbox_id"), on_list,
                           quest_hold(q));
    else if (g->file_id)
        service_file_open(sv, &q->caller, str_of(g->file_id), on_opened, quest_hold(q));
    else if (g->url)
        service_space_fetch(sv, &q->caller, json_str(q->record, "sandbox_id"), str_of(g->path),
                            str_of(g->url), on_fetched, quest_hold(q));
    else
        quest_place(q, str_of(g->path), (struct str){g->content, g->n}, -1, on_placed);
}

/* --- the sandbox --- */

static void on_session(void *arg, const struct session_info *info, const struct err *failed)
{
    struct quest *q = arg;

    if (quest_back(q))
        return;
    if (failed && failed->kind == ERR_BUSY && q->begin_tries < TRIES_MAX) {
        quest_wait(q, 1000u << q->begin_tries++, json_pack("{s:s}", "do", "begin"));
        return;
    }
    if (failed) {
        fail(q, failed->kind == ERR_MISSING ? "SandboxGone" : "CodeSandboxUnreachable", failed);
        return;
    }
    json_object_set_new(q->record, "sandbox_id", json_string(info->row->id));
    json_object_set_new(quest_inner(q), "session", json_string(info->row->id));
    json_object_set_new(quest_inner(q), "pool", json_string(info->row->pool));
    place_next(q);
}

void quest_begin(struct quest *q)
{
    struct service *sv = q->agent->config.service;
    const json_t *inner = quest_inner(q);
    struct str session = json_str(inner, "session");
    json_t *metadata;

    if (json_on(inner, "inputs_lost")) {
        struct err e;
        err_set(&e, ERR_CONFLICT, "the server was restarted before the files were in place");
        fail(q, "InputFailed", &e);
        return;
    }
    if (session.n > 0) {
        service_session_get(sv, &q->caller, session, on_session, quest_hold(q));
        return;
    }
    metadata = json_pack("{s:O}", AGENT_OWNER, json_object_get(q->record, "owner"));
    service_session_create(
        sv, &q->caller,
        &(struct session_spec){.pool = json_str(inner, "pool"), .metadata = metadata}, on_session,
        quest_hold(q));
    json_decref(metadata);
}
