/*
 * Prepares a run: a sandbox, the given files, and the facts that the model is told about
 * both. Each step ends in a callback that starts the next.
 */
#include "agent/agent_run.h"

#define TRIES_MAX 4
#define FACTS_MAX (16 * KiB)

/* --- the facts --- */

static json_t *names_of(json_t *packages)
{
    json_t *names = json_array(), *version;
    const char *name;

    json_object_foreach(packages, name, version)
        json_array_append_new(names, json_string(name));
    return names;
}

static bool is_given(const struct agent_run *run, struct str path)
{
    const json_t *given;
    size_t i;

    json_array_foreach(run->record.given, i, given) {
        if (str_eq(path, json_str(given, "path")))
            return true;
    }
    return false;
}

/* A given file may have two paths: the model is told of it once. */
static void add_input(json_t *inputs, const struct space_file *f)
{
    struct str name = str_base(f->path, "/");
    const json_t *v;
    size_t i;

    json_array_foreach(inputs, i, v) {
        if (str_eq(json_str(v, "name"), name))
            return;
    }
    json_array_append_new(inputs, json_pack("{s:I, s:s, s:o}", "size", (json_int_t)f->size, "mime",
                                            f->mime, "name", text_value(name)));
}

static void find_pool(struct agent_run *run, struct pool_info *ret)
{
    struct service *sv = run->agent->config.service;
    struct str name = json_text(run->record.pool);

    size_t i = service_pool_count(sv);

    do
        service_pool_get(sv, --i, ret);
    while (i > 0 && !str_is(name, ret->pool->name));
}

static void on_list(void *arg, const struct space_file *files, size_t count,
                    const struct err *failed)
{
    struct agent_run *run = arg;
    struct run_record *r = &run->record;
    struct pool_info pool = {0};
    const struct model *m;
    AUTO(buf_done) struct buf facts = BUF(FACTS_MAX);

    if (run_release(run))
        return;
    if (failed)
        return run_fail(run, "CodeSandboxUnreachable", failed->text);
    json_put(&r->inputs, json_array());
    json_put(&r->known, json_array());
    for (size_t i = 0; i < count && i < KNOWN_MAX; i++) {
        json_array_append_new(r->known, text_value(files[i].path));
        if (is_given(run, files[i].path))
            add_input(r->inputs, &files[i]);
    }
    find_pool(run, &pool);
    prompt_facts(&facts, &pool, r);
    m = run_model(run);
    r->text_mode = m && m->text_only;
    r->network = pool.pool->egress != EGRESS_NONE;
    json_put(&r->facts, text_value(buf_str(&facts)));
    json_put(&r->packages, names_of(pool.packages));
    run_event(run, json_pack("{s:s, s:O}", "type", "begun", "sandbox", r->session));
}

/* --- the files --- */

static void place_next(struct agent_run *run);

static void on_placed(void *arg, const struct space_file *files, size_t count,
                      const struct err *failed)
{
    struct agent_run *run = arg;
    json_t *given = json_array_get(run->record.given, run->file_at);
    static const char *const names[] = {"path", "url", "file_id"};
    struct err e;

    if (run_release(run))
        return;
    if (failed) {
        const char *name = "";
        for (size_t i = 0; i < COUNT(names); i++)
            name = json_str(given, names[i]).p ? json_str(given, names[i]).p : name;
        e = *failed;
        err_wrap(&e, "the input %s", name);
        run_fail(run, "InputFailed", e.text);
        return;
    }
    assert(count == 1);
    json_put_str(given, "path", files->path); /* as the service has cleaned it */
    run->file_at++;
    place_next(run);
}

static void place_next(struct agent_run *run)
{
    const json_t *given = json_array_get(run->record.given, run->file_at);
    struct str path = json_str(given, "path"), id = json_str(given, "file_id");
    struct str url = json_str(given, "url"), session = json_text(run->record.sandbox_id);
    char *bytes = given ? take_ptr(&run->contents[run->file_at].p) : NULL;
    struct service *sv = run->agent->config.service;

    if (given && !id.n && !url.n && !bytes)
        return run_fail(run, "InputFailed",
                        "the server was restarted before the files were in place");
    run_hold(run);
    if (!given)
        service_space_list(sv, run->caller, session, on_list, run);
    else if (id.n)
        service_space_take(sv, run->caller, session, path, id, on_placed, run);
    else if (url.n)
        service_space_fetch(sv, run->caller, session, path, url, on_placed, run);
    else
        service_space_write(sv, run->caller, session, path, bytes, run->contents[run->file_at].n,
                            on_placed, run);
}

/* --- the sandbox --- */

static void on_session(void *arg, const struct session_info *info, const struct err *failed)
{
    struct agent_run *run = arg;

    if (run_release(run))
        return;
    if (failed && err_will_pass(failed) && run->begin_tries < TRIES_MAX) {
        run_wait(run, 1000u << run->begin_tries++, json_pack("{s:s}", "do", "begin"));
        return;
    }
    if (failed)
        return run_fail(run, failed->kind == ERR_MISSING ? "SandboxGone" : "CodeSandboxUnreachable",
                        failed->text);
    json_put(&run->record.sandbox_id, json_string(info->row->id));
    json_put(&run->record.session, json_string(info->row->id));
    json_put(&run->record.pool, json_string(info->row->pool));
    place_next(run);
}

void run_begin(struct agent_run *run)
{
    struct service *sv = run->agent->config.service;
    const struct run_record *r = &run->record;
    struct str session = json_text(r->session);
    json_t *metadata;

    if (r->state != RUN_BEGIN)
        return; /* cancelled meanwhile */
    if (session.n > 0)
        return service_session_get(sv, run->caller, session, on_session, run_hold(run));
    metadata = json_pack("{s:O}", AGENT_OWNER, r->owner);
    service_session_create(
        sv, run->caller,
        &(struct session_spec){.pool = json_text(r->pool), .metadata = metadata, .asleep = true},
        on_session, run_hold(run));
    json_decref(metadata);
}
