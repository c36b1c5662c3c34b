/*
 * The agent on real sandboxes, a real store and whatever model it is given, with no door
 * in front of it: commands come as lines of JSON on standard input, and what happens goes
 * to standard output, likewise.
 *
 *   agent-driver GUEST-DIR DATA-DIR SETTINGS
 *
 * SETTINGS is a JSON object: approval ("always"), by ("either"), script, ready, wall_ms,
 * idle_ms, tenant_loops, budget.
 */
#include "agent/agent.h"
#include "loop/loop.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define LINE_MAX_ (4 * MiB)

static struct loop *loop;
static struct engine *engine;
static struct store *store;
static struct service *service;
static struct models *models;
static struct agent *agent;
static struct buf input;
static struct watch *reader;

static void die(const char *what, const struct err *e)
{
    fprintf(stderr, "%s: %s\n", what, e->text);
    exit(1);
}

/* Takes v. */
static void print(json_t *v)
{
    char *text = json_dumps(v, JSON_COMPACT);

    printf("%s\n", text);
    fflush(stdout);
    free(text);
    json_decref(v);
}

static struct str text_in(const json_t *v, const char *key)
{
    const json_t *s = json_object_get(v, key);

    return json_is_string(s) ? (struct str){json_string_value(s), json_string_length(s)}
                             : (struct str){0};
}

static struct caller caller_of(const json_t *v)
{
    struct str tenant = text_in(v, "tenant");
    struct caller c = {.request = "req_test", .door = "test", .approver = true};

    snprintf(c.tenant, sizeof(c.tenant), "%.*s", tenant.n ? (int)tenant.n : 5,
             tenant.n ? tenant.p : "alice");
    return c;
}

/* --- answers --- */

struct ask {
    char what[16];
    char tag[64];
    struct caller caller;
};

struct seen {
    char id[ID_MAX];
    struct agent_watch *watch;
};

static struct ask *ask_new(const json_t *v)
{
    struct ask *a = mem_zalloc(sizeof(*a));

    snprintf(a->what, sizeof(a->what), "%s", text_in(v, "do").p);
    snprintf(a->tag, sizeof(a->tag), "%s", text_in(v, "tag").p ? text_in(v, "tag").p : "");
    a->caller = caller_of(v);
    return a;
}

static json_t *answer(struct ask *a, const struct err *failed)
{
    json_t *v = json_pack("{s:s, s:s}", "answer", a->what, "tag", a->tag);

    if (failed)
        json_object_set_new(
            v, "error", json_pack("{s:i, s:s}", "kind", (int)failed->kind, "text", failed->text));
    return v;
}

static void on_watched(void *arg, const json_t *event)
{
    struct seen *s = arg;

    print(json_pack("{s:s, s:O}", "id", s->id, "event", event));
}

static void on_watch_end(void *arg, const json_t *record, const struct err *failed)
{
    struct seen *s = arg;
    json_t *v = json_pack("{s:s, s:O?}", "id", s->id, "end", record);

    if (failed)
        json_object_set_new(v, "error", json_string(failed->text));
    print(v);
    agent_watch_free(s->watch);
    free(s);
}

static void follow(const struct caller *c, struct str id, uint64_t after)
{
    static const struct agent_watcher watcher = {on_watched, on_watch_end};
    struct seen *s = mem_zalloc(sizeof(*s));

    snprintf(s->id, sizeof(s->id), "%.*s", (int)id.n, id.p);
    s->watch = agent_watch(agent, c, id, after, &watcher, s);
}

static void on_record(void *arg, const json_t *record, const struct err *failed)
{
    struct ask *a = arg;
    json_t *v = answer(a, failed);

    if (record)
        json_object_set(v, "record", (json_t *)record);
    print(v);
    if (record && strcmp(a->what, "start") == 0)
        follow(&a->caller, text_in(record, "id"), 0);
    free(a);
}

static void on_execs(void *arg, const struct exec_info *infos, size_t count, bool more,
                     const struct err *failed)
{
    struct ask *a = arg;
    json_t *v = answer(a, failed), *all = json_array();

    (void)more;
    for (size_t i = 0; i < count; i++)
        json_array_append_new(all, json_pack("{s:s, s:s, s:s}", "id", infos[i].row->id, "code",
                                             infos[i].row->code ? infos[i].row->code : "", "status",
                                             infos[i].row->status));
    json_object_set_new(v, "executions", all);
    print(v);
    free(a);
}

static void on_files(void *arg, const struct space_file *files, size_t count,
                     const struct err *failed)
{
    struct ask *a = arg;
    json_t *v = answer(a, failed), *all = json_array();

    for (size_t i = 0; i < count; i++)
        json_array_append_new(all, json_stringn(files[i].path.p, files[i].path.n));
    json_object_set_new(v, "files", all);
    print(v);
    free(a);
}

static void on_approval(void *arg, const struct approval_info *info, const struct err *failed)
{
    (void)info;
    print(answer(arg, failed));
    free(arg);
}

static void on_session(void *arg, const struct session_info *info, const struct err *failed)
{
    (void)info;
    print(answer(arg, failed));
    free(arg);
}

static void on_space(void *arg, const struct space_file *files, size_t count,
                     const struct err *failed)
{
    (void)files, (void)count;
    print(answer(arg, failed));
    free(arg);
}

/* --- commands --- */

static uint64_t number(const json_t *v, const char *key)
{
    return (uint64_t)json_integer_value(json_object_get(v, key));
}

static struct agent_budget budget_of(const json_t *v)
{
    return (struct agent_budget){
        .plan_steps = number(v, "plan_steps"),
        .rounds = number(v, "rounds"),
        .attempts = number(v, "attempts"),
        .run_ms = number(v, "run_ms"),
        .wall_ms = number(v, "wall_ms"),
        .model_ms = number(v, "model_ms"),
        .input_chars = number(v, "input_chars"),
        .tokens = number(v, "tokens"),
        .wait_ms = number(v, "wait_ms"),
    };
}

static void do_start(const json_t *v, struct ask *a)
{
    const json_t *list = json_object_get(v, "files"), *f;
    struct agent_budget budget = budget_of(json_object_get(v, "budget"));
    struct file_input files[8] = {0};
    struct agent_spec spec = {
        .tool = STR("code_execution"),
        .owner = text_in(v, "owner"),
        .request = text_in(v, "request"),
        .context = text_in(v, "context"),
        .sandbox = text_in(v, "sandbox"),
        .input_dir = text_in(v, "input_dir"),
        .model = text_in(v, "model"),
        .files = files,
        .can_answer = json_is_true(json_object_get(v, "can_answer")),
        .budget = &budget,
    };
    size_t i;

    json_array_foreach(list, i, f) {
        files[i] = (struct file_input){.path = text_in(f, "path"),
                                       .file_id = text_in(f, "file_id"),
                                       .url = text_in(f, "url"),
                                       .content = text_in(f, "content"),
                                       .has_content = text_in(f, "content").p != NULL};
        spec.file_count = i + 1;
    }
    agent_start(agent, &a->caller, &spec, on_record, a);
}

static void do_get(const json_t *v, struct ask *a)
{
    struct str owner = text_in(v, "owner");

    agent_get(agent, &a->caller, text_in(v, "id"), owner.p ? &owner : NULL, on_record, a);
}

static void do_provide(const json_t *v, struct ask *a)
{
    agent_provide(agent, &a->caller, text_in(v, "id"), text_in(v, "text"), on_record, a);
}

static void do_cancel(const json_t *v, struct ask *a)
{
    agent_cancel(agent, &a->caller, text_in(v, "id"), json_is_true(json_object_get(v, "hard")),
                 on_record, a);
}

static void do_watch(const json_t *v, struct ask *a)
{
    follow(&a->caller, text_in(v, "id"), number(v, "after"));
    free(a);
}

static void do_executions(const json_t *v, struct ask *a)
{
    struct exec_filter f = {.session = text_in(v, "session").p, .oldest_first = true};

    f.tenant = a->caller.tenant;
    service_exec_list(service, &a->caller, &f, (struct page){.limit = 100}, true, on_execs, a);
}

static void do_files(const json_t *v, struct ask *a)
{
    service_space_list(service, &a->caller, text_in(v, "session"), on_files, a);
}

/* An empty file, for code that waits for one. */
static void do_write(const json_t *v, struct ask *a)
{
    service_space_reply(service, &a->caller, text_in(v, "session"), text_in(v, "path"),
                        mem_zalloc(1), 0, on_space, a);
}

static void do_decide(const json_t *v, struct ask *a)
{
    service_approval_decide(service, &a->caller, text_in(v, "approval"),
                            json_is_true(json_object_get(v, "approve")), text_in(v, "reason"),
                            on_approval, a);
}

static void do_restart(const json_t *v, struct ask *a)
{
    service_session_restart(service, &a->caller, text_in(v, "session"), on_session, a);
}

static void do_drain(const json_t *v, struct ask *a)
{
    (void)v;
    agent_drain(agent);
    print(answer(a, NULL));
    free(a);
}

/* So many cells one after the other, and what each took: what a round is held against. */
struct cells {
    struct ask *ask;
    char session[ID_MAX];
    uint64_t left;
    int64_t begun_us;
    json_t *took; /* owned */
};

static void next_cell(struct cells *c);

static void on_cell_queued(void *arg, const struct exec_info *info)
{
    (void)arg, (void)info;
}

static void on_cell_event(void *arg, const struct event *ev)
{
    (void)arg, (void)ev;
}

static void on_cell_end(void *arg, const struct exec_info *info, const struct err *failed)
{
    struct cells *c = arg;

    (void)info;
    if (failed)
        die("cell", failed);
    json_array_append_new(c->took, json_integer(time_mono_us() - c->begun_us));
    next_cell(c);
}

static void next_cell(struct cells *c)
{
    static const struct exec_watcher watcher = {on_cell_queued, on_cell_event, on_cell_end};
    struct exec_spec spec = {.session = str_of(c->session)};
    char code[64];

    if (c->left == 0) {
        json_t *v = answer(c->ask, NULL);
        json_object_set_new(v, "took", c->took);
        print(v);
        free(c->ask);
        free(c);
        return;
    }
    snprintf(code, sizeof(code), "print(%llu)", (unsigned long long)c->left--);
    spec.code = str_of(code);
    c->begun_us = time_mono_us();
    service_execute(service, &c->ask->caller, &spec, &watcher, c);
}

static void do_cells(const json_t *v, struct ask *a)
{
    struct cells *c = mem_zalloc(sizeof(*c));

    *c = (struct cells){.ask = a, .left = number(v, "count"), .took = json_array()};
    snprintf(c->session, sizeof(c->session), "%s", text_in(v, "session").p);
    next_cell(c);
}

static const struct {
    const char *name;
    void (*fn)(const json_t *v, struct ask *a);
} commands[] = {
    {"start",      do_start     },
    {"get",        do_get       },
    {"provide",    do_provide   },
    {"cancel",     do_cancel    },
    {"watch",      do_watch     },
    {"executions", do_executions},
    {"files",      do_files     },
    {"write",      do_write     },
    {"decide",     do_decide    },
    {"restart",    do_restart   },
    {"cells",      do_cells     },
    {"drain",      do_drain     },
};

static void take_line(struct str line)
{
    json_error_t why;
    json_t *v = json_loadb(line.p, line.n, 0, &why);

    for (size_t i = 0; i < COUNT(commands); i++)
        if (str_is(text_in(v, "do"), commands[i].name)) {
            commands[i].fn(v, ask_new(v));
            json_decref(v);
            return;
        }
    fprintf(stderr, "no command: %.*s (%s)\n", (int)line.n, line.p, why.text);
    exit(1);
}

static void on_readable(void *arg)
{
    char *room = buf_room(&input, 64 * KiB), *end;
    ssize_t n = room ? read(STDIN_FILENO, room, 64 * KiB) : 0;

    (void)arg;
    if (n <= 0) {
        watch_free(take_ptr(&reader));
        loop_stop(loop);
        return;
    }
    input.n += (size_t)n;
    while ((end = memchr(input.p, '\n', input.n))) {
        size_t used = (size_t)(end - input.p) + 1;
        take_line((struct str){input.p, used - 1});
        memmove(input.p, input.p + used, input.n - used);
        input.n -= used;
    }
}

/* --- up and down --- */

static void on_tick(void *arg)
{
    (void)arg;
    loop_stop(loop);
}

static void turn(uint64_t ms)
{
    struct timer *t = timer_new(loop, on_tick, NULL);

    timer_set(t, ms);
    loop_run(loop);
    timer_free(t);
}

static void wait_ready(void)
{
    struct pool_info info;
    const char *why;

    for (int i = 0; i < 6000; i++) {
        service_pool_get(service, 0, &info);
        if (service_is_ready(service, &why) && info.packages)
            return;
        turn(10);
    }
    fprintf(stderr, "not ready: %s\n", why ? why : "");
    exit(1);
}

static void up(const char *guest, const char *data, const json_t *set)
{
    const json_t *m;
    char name[] = "main", python[] = "/usr/bin/python3";
    struct err e;
    struct engine_environment environment = {.python = python};
    struct engine_config ec = {
        .guest_dir = guest, .environments = &environment, .environment_count = 1};
    struct store_config sc = {.dir = data};
    struct service_pool pool = {.name = name,
                                .python = python,
                                .ready = number(set, "ready"),
                                .max_sessions = 1000,
                                .idle_ms = number(set, "idle_ms") ? number(set, "idle_ms") : 600000,
                                .lifetime_ms = 3600000,
                                .approval_timeout_ms = 60000,
                                .approval_wait_ms = 60000};
    struct service_config config = {.pools = &pool,
                                    .pool_count = 1,
                                    .tenant_sessions = 1000,
                                    .retention_ms = 3600000,
                                    .file_bytes = 64 * MiB,
                                    .fetch_bytes = MiB,
                                    .fetch_ms = 5000};
    struct model_config *each = mem_zalloc(64 * sizeof(*each));
    struct models_config mc = {.script = text_in(set, "script").p, .models = each};
    struct agent_config ac = {.tenant_loops = number(set, "tenant_loops"),
                              .budget = budget_of(json_object_get(set, "budget"))};

    json_array_foreach(json_object_get(set, "models"), mc.count, m)
        each[mc.count] = (struct model_config){
            .label = text_in(m, "label").p,
            .api = str_is(text_in(m, "api"), "anthropic") ? MODEL_ANTHROPIC : MODEL_OPENAI,
            .url = text_in(m, "url").p,
            .images = json_is_true(json_object_get(m, "images")),
        };
    limits_default(&pool.limits);
    if (str_is(text_in(set, "approval"), "always"))
        pool.approval = POLICY_ALWAYS_ASK;
    if (str_is(text_in(set, "approval"), "first"))
        pool.approval = POLICY_ASK_FIRST;
    if (str_is(text_in(set, "by"), "either"))
        pool.approval_by = APPROVAL_BY_EITHER;
    if (str_is(text_in(set, "by"), "approver"))
        pool.approval_by = APPROVAL_BY_APPROVER;
    loop = loop_new(&(struct err){0});
    if (!(engine = engine_new(loop, &ec, &e)))
        die("engine", &e);
    if (!(store = store_open(loop, &sc, &e)))
        die("store", &e);
    if (!(service = service_new(loop, engine, store, &config, &e)))
        die("service", &e);
    mc.loop = ac.loop = loop;
    if (!(models = models_new(&mc, &e)))
        die("models", &e);
    free(each);
    ac.service = service;
    ac.store = store;
    ac.models = models;
    wait_ready();
    agent = agent_new(&ac);
    agent_resume(agent, NULL);
}

static void down(void)
{
    agent_free(agent);
    service_free(service);
    store_close(store);
    turn(10);
    models_free(models);
    engine_free(engine);
    loop_free(loop);
    buf_done(&input);
}

int main(int argc, char **argv)
{
    json_t *set = argc == 4 ? json_loads(argv[3], 0, NULL) : NULL;

    if (!set) {
        fprintf(stderr, "agent-driver GUEST-DIR DATA-DIR SETTINGS\n");
        return 2;
    }
    buf_init(&input, LINE_MAX_);
    up(argv[1], argv[2], set);
    json_decref(set);
    print(json_pack("{s:b}", "ready", 1));
    reader = watch_new(loop, STDIN_FILENO, on_readable, NULL);
    loop_run(loop);
    down();
    return 0;
}
