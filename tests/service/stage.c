#include "stage.h"

#include <unistd.h>

struct loop *loop;
struct service *service;
struct caller alice = {.tenant = "alice", .request = "req_a", .door = "scene"};
struct caller bob = {.tenant = "bob", .request = "req_b", .door = "scene"};

static struct engine *engine;
static struct store *store;
static unsigned ends;

/* --- waiting --- */

static void on_impatient(void *arg)
{
    fprintf(stderr, "waited too long for %s\n", (const char *)arg);
    exit(1);
}

static void on_tick(void *arg)
{
    (void)arg;
    loop_stop(loop);
}

void wait_for(const bool *flag, const char *what)
{
    struct timer *limit = timer_new(loop, on_impatient, (void *)(uintptr_t)what);
    struct timer *tick = timer_new(loop, on_tick, NULL);

    timer_set(limit, PATIENCE_MS);
    while (!*flag) {
        timer_set(tick, 5);
        loop_run(loop);
    }
    timer_free(limit);
    timer_free(tick);
}

void pause_ms(uint64_t ms)
{
    int64_t until = time_mono_us() + (int64_t)ms * 1000;
    struct timer *tick = timer_new(loop, on_tick, NULL);

    while (time_mono_us() < until) {
        timer_set(tick, 5);
        loop_run(loop);
    }
    timer_free(tick);
}

/* --- up and down --- */

static void wait_ready(const struct setting *s)
{
    struct pool_info info;
    const char *why;

    for (int i = 0; i < PATIENCE_MS / 10; i++) {
        pause_ms(10);
        service_pool_get(service, 0, &info);
        if (service_is_ready(service, &why) && info.parked >= s->ready)
            return;
    }
    fprintf(stderr, "not ready: %s\n", why ? why : "");
    exit(1);
}

void stage_up(const struct setting *s)
{
    char name[] = "main";
    struct engine_environment environment = {0};
    struct engine_config ec = {
        .guest_dir = s->guest_dir, .environments = &environment, .environment_count = 1};
    struct store_config sc = {.dir = s->data_dir, .reserve = s->reserve};
    struct service_pool pool = {.name = name,
                                .ready = s->ready,
                                .max_sessions = s->max_sessions ? s->max_sessions : 100,
                                .idle_ms = s->idle_ms ? s->idle_ms : 600000,
                                .lifetime_ms = s->lifetime_ms ? s->lifetime_ms : 3600000,
                                .approval = s->approval,
                                .approval_by = s->approval_by,
                                .approval_timeout_ms = s->approval_ms ? s->approval_ms : 60000,
                                .approval_wait_ms = s->approval_ms ? s->approval_ms : 60000};
    struct service_config config = {
        .pools = &pool,
        .pool_count = 1,
        .tenant_sessions = s->tenant_sessions ? s->tenant_sessions : 100,
        .retention_ms = s->retention_ms ? s->retention_ms : 3600000,
        .file_bytes = 64 * MiB,
        .fetch_bytes = MiB,
        .fetch_ms = 5000,
        .held_bytes = s->held_bytes,
        .tenant_bytes = s->tenant_bytes,
    };
    struct err e;

    limits_default(&pool.limits);
    pool.limits.memory_bytes = 256 * MiB;
    pool.limits.wall_ms = 20000;
    if (s->disk_bytes)
        pool.limits.disk_bytes = s->disk_bytes;
    loop = loop_new(&(struct err){0});
    engine = engine_new(loop, &ec, &e);
    CHECK(engine);
    store = store_open(loop, &sc, &e);
    if (!store)
        fprintf(stderr, "%s\n", e.text);
    CHECK(store);
    service = service_new(loop, engine, store, &config, &e);
    CHECK(service);
    wait_ready(s);
}

void stage_down(void)
{
    service_free(service);
    engine_free(engine);
    store_close(store);
    loop_free(loop);
}

/* --- answers --- */

static bool take_err(struct answer *a, const struct err *failed)
{
    CHECK(!a->done); /* exactly once */
    a->done = true;
    a->err = failed ? *failed : (struct err){0};
    loop_stop(loop);
    return failed != NULL;
}

void on_session(void *arg, const struct session_info *info, const struct err *failed)
{
    struct answer *a = arg;

    CHECK(!info == !!failed);
    if (take_err(a, failed))
        return;
    snprintf(a->id, sizeof(a->id), "%s", info->row->id);
    a->state = info->state;
    a->existed = info->existed;
    a->has_note = info->note != NULL;
    a->executions = info->row->executions;
    a->count = info->queued;
}

void on_done(void *arg, const struct err *failed)
{
    take_err(arg, failed);
}

void on_space_files(void *arg, const struct space_file *files, size_t count,
                    const struct err *failed)
{
    struct answer *a = arg;

    take_err(a, failed);
    a->count = count;
    for (size_t i = 0, n = 0; i < count; i++)
        n += (size_t)snprintf(a->text + n, sizeof(a->text) - n, "%s%.*s:%llu", i ? " " : "",
                              (int)files[i].path.n, files[i].path.p,
                              (unsigned long long)files[i].size);
}

static void on_open(void *arg, int *fd, const struct space_file *file, const struct err *failed)
{
    struct answer *a = arg;

    if (take_err(a, failed))
        return;
    ssize_t n = pread(*fd, a->text, sizeof(a->text) - 1, 0);
    CHECK(n >= 0 && (uint64_t)n == file->size);
}

void create(struct answer *a, const struct session_spec *spec)
{
    *a = (struct answer){0};
    service_session_create(service, &alice, spec, on_session, a);
    CHECK(!a->done); /* never from inside the call */
    wait_for(&a->done, "a session");
    if (a->err.kind)
        fprintf(stderr, "%s\n", a->err.text);
    CHECK(a->err.kind == ERR_NONE);
}

const char *new_session(void)
{
    static struct answer a;

    create(&a, &(struct session_spec){0});
    return a.id;
}

void get_session(struct answer *a, const struct caller *c, const char *id)
{
    *a = (struct answer){0};
    service_session_get(service, c, str_of(id), on_session, a);
    CHECK(!a->done);
    wait_for(&a->done, "a session");
}

enum session_state state_of(const char *id)
{
    struct answer a;

    get_session(&a, &alice, id);
    CHECK(a.err.kind == ERR_NONE);
    return a.state;
}

void wait_state(const char *id, enum session_state s)
{
    for (int i = 0; i < PATIENCE_MS / 10 && state_of(id) != s; i++)
        pause_ms(10);
    CHECK(state_of(id) == s);
}

void delete_session(struct answer *a, const struct caller *c, const char *id)
{
    *a = (struct answer){0};
    service_session_delete(service, c, str_of(id), on_done, a);
    CHECK(!a->done);
    wait_for(&a->done, "a deletion");
}

struct blob *blob_of(const char *text)
{
    struct err e;
    struct blob *b = service_blob_new(service, &alice, &e);

    CHECK(b && blob_write(b, str_of(text), &e) == 0);
    return b;
}

void put_file(struct answer *a, const char *id, const char *path, const char *text)
{
    *a = (struct answer){0};
    service_space_put(service, &alice, str_of(id), str_of(path), blob_of(text), on_space_files, a);
    CHECK(!a->done);
    wait_for(&a->done, "an upload");
}

void list_files(struct answer *a, const struct caller *c, const char *id)
{
    *a = (struct answer){0};
    service_space_list(service, c, str_of(id), on_space_files, a);
    CHECK(!a->done);
    wait_for(&a->done, "a list of files");
}

void read_file(struct answer *a, const struct caller *c, const char *id, const char *path)
{
    *a = (struct answer){0};
    service_space_open(service, c, str_of(id), str_of(path), on_open, a);
    CHECK(!a->done);
    wait_for(&a->done, "a file");
}

void wait_file(const char *id, const char *path, const char *text)
{
    struct answer a;

    for (int i = 0; i < PATIENCE_MS / 10; i++) {
        read_file(&a, &alice, id, path);
        if (a.err.kind == ERR_NONE && strcmp(a.text, text) == 0)
            return;
        pause_ms(10);
    }
    CHECK(!"a file with that text");
}

/* --- executions --- */

static void put(char *to, struct str s)
{
    size_t n = strlen(to);

    snprintf(to + n, TEXT_MAX - n, "%.*s", (int)s.n, s.p);
}

static void on_queued(void *arg, const struct exec_info *info)
{
    struct run *r = arg;

    CHECK(!r->queued && !r->done && (r->background || json_array_size(info->events) == 0));
    r->queued = true;
    snprintf(r->id, sizeof(r->id), "%s", info->row->id);
    snprintf(r->session, sizeof(r->session), "%s", info->row->session);
    if (!r->leave_when_queued)
        return;
    execution_leave(r->job);
    if (r->on_end)
        r->on_end(r);
}

static void on_event(void *arg, const struct event *ev)
{
    struct run *r = arg;

    CHECK(r->queued && !r->done);
    if (ev->kind == EVENT_STDOUT)
        put(r->text, ev->text);
    if (ev->kind == EVENT_STATUS)
        put(r->notes, ev->text);
    if (ev->kind == EVENT_FILE) {
        put(r->files, ev->file.path);
        put(r->files, STR(" "));
    }
    for (size_t i = 0; ev->kind == EVENT_RESULT && i < ev->bundle.count; i++)
        if (str_is(ev->bundle.part[i].mime, "text/plain"))
            put(r->text, ev->bundle.part[i].data);
}

static void on_end(void *arg, const struct exec_info *info, const struct err *failed)
{
    struct run *r = arg;

    CHECK(!r->done);
    r->done = true;
    r->order = ++ends;
    if (failed)
        r->err = *failed;
    if (execution_approval(r->job))
        r->verdict = execution_approval(r->job)->verdict;
    if (info) {
        r->status = info->how->status;
        r->state_lost = info->how->state_lost;
        r->engine_us = info->how->wall_us;
    }
    if (r->on_end)
        r->on_end(r);
    loop_stop(loop);
}

static bool on_ask(void *arg, const struct approval_info *info)
{
    struct run *r = arg;

    return r->on_ask && r->on_ask(r, info);
}

void start(struct run *r, const struct caller *c, const struct exec_spec *spec)
{
    static const struct exec_watcher w = {on_queued, on_event, on_end, on_ask};

    *r = (struct run){.leave_when_queued = r->leave_when_queued,
                      .on_end = r->on_end,
                      .on_ask = r->on_ask,
                      .background = spec->background};
    r->job = service_execute(service, c, spec, &w, r);
    CHECK(r->job && !r->queued && !r->done);
}

void finish(struct run *r)
{
    wait_for(&r->done, "the end of an execution");
}

void run_into(struct run *r, const char *session, const char *code)
{
    struct exec_spec spec = {.session = str_of(session), .code = str_of(code)};

    start(r, &alice, &spec);
    finish(r);
    if (r->err.kind || r->status != OUTCOME_OK)
        fprintf(stderr, "%s: %s %s\n", code, outcome_status_name(r->status), r->err.text);
    CHECK(r->err.kind == ERR_NONE && r->status == OUTCOME_OK);
}

const char *run(const char *session, const char *code)
{
    static struct run r;

    run_into(&r, session, code);
    return r.text;
}

/* --- records --- */

static void on_record(void *arg, const struct exec_info *info, const struct err *failed)
{
    struct record *r = arg;

    r->done = true;
    r->failed = failed ? failed->kind : ERR_NONE;
    if (info) {
        AUTO_FREE char *events = json_dumps(info->events, JSON_COMPACT);
        snprintf(r->status, sizeof(r->status), "%s", info->row->status);
        snprintf(r->text, sizeof(r->text), "%s", events);
        r->has_outcome = info->outcome != NULL;
    }
    loop_stop(loop);
}

void get_record(struct record *r, const struct caller *c, const char *id)
{
    *r = (struct record){0};
    service_exec_get(service, c, str_of(id), on_record, r);
    CHECK(!r->done);
    wait_for(&r->done, "a record");
}

void wait_said(const struct run *r, const char *text)
{
    struct record rec;

    wait_for(&r->queued, "the queue");
    for (int i = 0; i < PATIENCE_MS / 10; i++) {
        get_record(&rec, &alice, r->id);
        if (strcmp(rec.status, "running") == 0 && strstr(rec.text, text))
            return;
        pause_ms(10);
    }
    CHECK(!"it has said that");
}

char *keep(const char *s)
{
    static char kept[16][ID_MAX];
    static size_t n;

    snprintf(kept[n % COUNT(kept)], ID_MAX, "%s", s);
    return kept[n++ % COUNT(kept)];
}
