/*
 * retort serve: builds the house and lives in it until it is told to go.
 *
 * Theory of operation: what needs root or may be refused comes first, while there
 * is one thread and nothing to take back (prepare): the settings, the floor, the
 * state directory, the sockets, the certificates. Then the warden is forked, the
 * server becomes who it is to be (settle), and only then are there threads, a
 * database and strangers' bytes (build). SIGTERM goes the same way back: no new
 * connections, what runs may end, then everything is let go in reverse order.
 *
 * While it serves it keeps, where root started it, CAP_SETUID and CAP_SETGID over
 * the ids of sandboxes (sandbox/server_user.c); else nothing.
 */
#include "agent/agent.h"
#include "cli/serve_int.h"
#include "cli/state.h"
#include "doors/anthropic/anthropic.h"
#include "doors/azure/azure.h"
#include "doors/http/http.h"
#include "doors/mcp/mcp.h"
#include "doors/operator/operator.h"
#include "doors/rest/rest.h"
#include "loop/loop.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define TICK_MS     20
#define CHECK_MAX   (256 * KiB)
#define CHANGES_MAX (4 * KiB)

struct server {
    const struct settings *s;   /* borrowed */
    struct service_pool *pools; /* owned: those of s, complete */
    char guest_dir[PATH_MAX];
    struct server_user user;
    int lock;   /* owned: of the state directory */
    int notify; /* owned, or -1 */
    bool keys;  /* there were some at start */
    struct listeners listeners;
    struct model_set model_set;
    struct {
        int fd; /* owned, or -1 */
        char path[KEPT_PATH_MAX];
    } cert, key, client_ca;

    struct loop *loop; /* owned, as are the rest */
    struct engine *engine;
    struct store *store;
    struct models *models;
    struct service *service;
    struct agent *agent;
    struct http *http;
    struct mcp *mcp;
    struct azure *azure;
    struct anthropic *anthropic;
    struct door rest, operator, mcp_door, azure_door, anthropic_door;
    struct seeds seeds;
    char address[ADDRESS_SHOWN]; /* of the first listener on TCP, or "" */
    struct timer *tick;          /* until a pool is up; then until nobody is left */
    struct timer *limit;         /* of the draining */
    char why[256];               /* why no pool is up, as last told */
    bool ending;
    bool empty; /* the service has nothing left to do */
    int status;
};

/* --- starting --- */

/* Everything that can be refused, and everything that takes root. */
static int prepare(struct server *sv, struct err *e)
{
    const struct serve_settings *s = &sv->s->serve;

    if (guest_dir_find(sv->guest_dir, sizeof(sv->guest_dir), e) < 0 ||
        server_user_find(s->user, &sv->user, e) < 0 || floor_check(sv->s, e) < 0 ||
        state_prepare(sv->s->state, &sv->user, e) < 0)
        return -1;
    sv->lock = state_lock(sv->s->state, &sv->user, e);
    if (sv->lock < 0 || listeners_open(&sv->listeners, sv->s, e) < 0 ||
        access_check(sv->s, &sv->listeners, e) < 0 || model_set_open(&sv->model_set, sv->s, e) < 0)
        return -1;
    if (s->tls_cert) {
        sv->cert.fd = file_keep("--tls-cert", s->tls_cert, sv->cert.path, e);
        sv->key.fd = file_keep("--tls-key", s->tls_key, sv->key.path, e);
        if (sv->cert.fd < 0 || sv->key.fd < 0)
            return -1;
    }
    if (s->tls_client_ca) {
        sv->client_ca.fd = file_keep("--tls-client-ca", s->tls_client_ca, sv->client_ca.path, e);
        if (sv->client_ca.fd < 0)
            return -1;
    }
    sv->notify = notify_open();
    return 0;
}

/* The last moment with one thread: the warden stays who we are, and we become somebody else. */
static int settle(struct server *sv, struct err *e)
{
    const struct engine_config config = {.guest_dir = sv->guest_dir};

    sv->loop = loop_new();
    sv->engine = engine_new(sv->loop, &config, e);
    if (!sv->engine || server_user_enter(&sv->user, e) < 0 || state_reach(sv->s->state, e) < 0)
        return -1;
    signal(SIGPIPE, SIG_IGN); /* not before: the warden's children would inherit it */
    sv->pools = pools_complete(sv->s->pools, sv->s->pool_count, e);
    return sv->pools ? 0 : -1;
}

static int build_service(struct server *sv, struct err *e)
{
    const struct store_config store = {.dir = sv->s->state};

    sv->store = store_open(sv->loop, &store, e);
    if (!sv->store)
        return -1;
    sv->models = model_set_start(&sv->model_set, sv->loop, e);
    if (!sv->models)
        return -1;
    sv->service =
        service_of(sv->s, sv->loop, sv->engine, sv->store, sv->pools, sv->s->pool_count, e);
    if (!sv->service)
        return -1;
    sv->agent = agent_of(sv->s, sv->loop, sv->service, sv->store, sv->models);
    agent_resume(sv->agent);
    return 0;
}

static struct agent *the_agent(void *arg, struct err *e)
{
    struct server *sv = arg;

    (void)e;
    return sv->agent;
}

static struct service *the_service(void *arg, struct err *e)
{
    struct server *sv = arg;

    (void)e;
    return sv->service;
}

static int build_seeds(struct server *sv, const struct mcp_config *mcp, struct err *e)
{
    const struct seeds_config config = {.settings = sv->s,
                                        .mcp = *mcp,
                                        .address = sv->address,
                                        .agent = the_agent,
                                        .agent_arg = sv};

    for (size_t i = 0; i < sv->listeners.count && !*sv->address; i++)
        if (sv->listeners.item[i].address.at.any.sa_family != AF_UNIX)
            listener_show(&sv->listeners.item[i], sv->s->serve.tls_cert != NULL, sv->address);
    return seeds_open(&sv->seeds, &config, e);
}

static void build_anthropic(struct server *sv)
{
    const struct anthropic_config config = {
        .loop = sv->loop,
        .models = sv->models,
        .download_uploads = sv->s->anthropic.download_uploads,
        .pool = sv->s->anthropic.pool,
        .timeout_ms = sv->s->anthropic.timeout_ms,
        .cell_ms = sv->s->anthropic.cell_ms,
        .turns = sv->s->anthropic.turns,
        .wall_ms = sv->s->anthropic.wall_ms,
        .idle_ms = sv->s->anthropic.idle_ms,
        .answer_ms = sv->s->anthropic.answer_ms,
        .approval_ms = sv->s->anthropic.approval_ms,
        .capture_cwd = sv->s->anthropic.capture_cwd,
    };

    sv->anthropic = anthropic_new(&config);
    anthropic_door_init(&sv->anthropic_door, sv->anthropic);
    http_add(sv->http, &sv->anthropic_door);
}

static bool has_pool(const struct server *sv, const char *name)
{
    struct pool_info info;

    for (size_t i = 0; i < service_pool_count(sv->service); i++) {
        service_pool_get(sv->service, i, &info);
        if (strcmp(info.pool->name, name) == 0)
            return true;
    }
    return false;
}

/* Else it would show with the first request. */
static int check_pools(const struct server *sv, struct err *e)
{
    const struct {
        const char *option, *name;
    } rows[] = {
        {"qwen-pool",      sv->s->qwen.pool     },
        {"prisme-pool",    sv->s->prisme.pool   },
        {"anthropic-pool", sv->s->anthropic.pool},
        {"ubik-pool",      sv->s->ubik.pool     },
    };
    char shown[NAME_SHOWN];

    for (size_t i = 0; i < COUNT(rows); i++)
        if (rows[i].name && !has_pool(sv, rows[i].name))
            return err_set(e, ERR_CALLER, "--%s: there is no pool %s", rows[i].option,
                           name_show(shown, str_of(rows[i].name)));
    return 0;
}

static int build_doors(struct server *sv, struct err *e)
{
    const struct serve_settings *s = &sv->s->serve;
    const struct http_config config = {
        .service = sv->service,
        .hosts = s->hosts,
        .origins = s->origins,
        .max_connections = s->max_connections,
        .max_per_address = s->max_per_address,
        .header_ms = s->header_ms,
        .tls_cert = s->tls_cert ? sv->cert.path : NULL,
        .tls_key = s->tls_key ? sv->key.path : NULL,
        .tls_ca = s->tls_client_ca ? sv->client_ca.path : NULL,
    };
    struct mcp_config mcp = {.loop = sv->loop,
                             .service = the_service,
                             .arg = sv,
                             .answer_ms = sv->s->serve.answer_ms,
                             .outside = pools_reach_out(sv->s),
                             .fixtures = sv->s->fixtures,
                             .public_url = s->public_url,
                             .oauth_servers = s->oauth_servers};

    if (check_pools(sv, e) < 0 || state_secret(sv->s->state, mcp.secret, sizeof(mcp.secret), e) < 0)
        return -1;
    sv->http = http_new(sv->loop, &config, e);
    if (!sv->http)
        return -1;
    rest_door_init(&sv->rest, sv->http);
    operator_door(&sv->operator, sv->http);
    mcp.has_model = models_find(sv->models, "", (struct str){0}) != NULL;
    if (build_seeds(sv, &mcp, e) < 0)
        return -1;
    mcp.thinks = &tool_code_execution;
    mcp.thinks_ctx = sv->seeds.ubik.room;
    sv->mcp = mcp_new(&mcp);
    mcp_follow(sv->mcp, sv->service);
    mcp_door_init(&sv->mcp_door, sv->mcp);
    http_add(sv->http, &sv->rest);
    http_add(sv->http, &sv->operator);
    http_add(sv->http, &sv->mcp_door);
    sv->azure = azure_new(sv->mcp);
    azure_door_init(&sv->azure_door, sv->azure);
    http_add(sv->http, &sv->azure_door);
    build_anthropic(sv);
    seeds_add(&sv->seeds, sv->http);
    for (size_t i = 0; i < sv->listeners.count; i++) {
        struct listener *l = &sv->listeners.item[i];
        if (http_listen(sv->http, take_fd(&l->fd), l->local, e) < 0)
            return -1;
    }
    return 0;
}

static int build(struct server *sv, struct err *e)
{
    if (keys_check(sv->s->state, &sv->listeners, &sv->keys, e) < 0 || build_service(sv, e) < 0)
        return -1;
    return build_doors(sv, e);
}

/* --- serving --- */

static void greet(struct server *sv)
{
    notify_say(sv->notify, "READY=1");
    log_info("ready: %zu %s, state in %s", sv->s->pool_count,
             sv->s->pool_count == 1 ? "pool" : "pools", sv->s->state);
    hello_say(sv->s, &sv->listeners, sv->keys);
}

/* Until the first pool is up. A pool that cannot come up is told of, and the rest is served. */
static void on_tick(void *arg)
{
    struct server *sv = arg;
    const char *why = NULL;

    if (sv->ending) {
        if (sv->empty && http_is_idle(sv->http))
            loop_stop(sv->loop);
        else
            timer_set(sv->tick, TICK_MS);
        return;
    }
    if (service_is_ready(sv->service, &why)) {
        greet(sv);
        return;
    }
    if (why && strncmp(why, sv->why, sizeof(sv->why) - 1) != 0) {
        snprintf(sv->why, sizeof(sv->why), "%s", why);
        log_info("not ready: %s", why);
    }
    timer_set(sv->tick, TICK_MS);
}

static void reload_settings(struct server *sv)
{
    static const char *const at_once[] = {"log-level", "log-format", NULL};
    struct settings fresh;
    struct buf changed;
    struct err e;

    settings_init(&fresh);
    buf_init(&changed, CHANGES_MAX);
    if (settings_load(&fresh, &command_serve, sv->s->argc, sv->s->argv, &e) < 0) {
        log_error("reload: %s; the settings stay as they are", e.text);
    } else {
        log_set_level(fresh.serve.log_level);
        log_set_format(fresh.serve.log_format);
        config_differences(sv->s, &fresh, at_once, &changed);
        if (changed.n > 0)
            log_warn("reload: these take a restart: %.*s", (int)changed.n, changed.p);
        log_info("reload: keys and the log's settings are read again");
    }
    buf_done(&changed);
    settings_done(&fresh);
}

static void on_reload(void *arg, int signum)
{
    struct server *sv = arg;

    (void)signum;
    if (sv->ending)
        return;
    reload_settings(sv);
    service_reload(sv->service);
}

/* --- ending --- */

static void on_empty(void *arg)
{
    struct server *sv = arg;

    sv->empty = true;
}

static void on_limit(void *arg)
{
    struct server *sv = arg;

    log_warn("what still runs after %.1f seconds is ended", (double)sv->s->serve.drain_ms / 1000);
    loop_stop(sv->loop);
}

/* Nothing can be run any more, and nobody but root can start another: whoever started us does. */
static void on_warden_lost(void *arg)
{
    struct server *sv = arg;

    log_error("the server cannot go on without the warden, and ends");
    sv->status = EXIT_OURS;
    loop_stop(sv->loop);
}

/* Once: no more work, and an end when the work is done. Twice: an end. */
static void on_end(void *arg, int signum)
{
    struct server *sv = arg;

    if (sv->ending) {
        sv->status = EXIT_INTERRUPTED;
        loop_stop(sv->loop);
        return;
    }
    sv->ending = true;
    log_info("%s: no new requests; at most %.1f seconds for what runs", strsignal(signum),
             (double)sv->s->serve.drain_ms / 1000);
    notify_say(sv->notify, "STOPPING=1");
    http_close_listeners(sv->http);
    mcp_drain(sv->mcp);
    seeds_drain(&sv->seeds);
    anthropic_drain(sv->anthropic);
    agent_drain(sv->agent);
    service_drain(sv->service, on_empty, sv);
    timer_set(sv->limit, sv->s->serve.drain_ms);
    timer_set(sv->tick, TICK_MS);
}

static void stop(void *arg)
{
    loop_stop(arg);
}

/* In reverse order. Rooms let go of the last things from the loop, so it turns once more. */
static void take_down(struct server *sv)
{
    timer_free(sv->tick);
    timer_free(sv->limit);
    anthropic_close(sv->anthropic);
    mcp_free(sv->mcp);
    seeds_free_mcp(&sv->seeds);
    if (sv->http)
        http_free(sv->http);
    seeds_stop(&sv->seeds);
    agent_free(sv->agent);
    if (sv->service)
        service_free(sv->service);
    if (sv->store)
        store_close(sv->store);
    if (sv->loop) {
        loop_later(sv->loop, stop, sv->loop);
        loop_run(sv->loop);
    }
    azure_free(sv->azure); /* a request may outlive the listeners */
    anthropic_free(sv->anthropic);
    seeds_free(&sv->seeds);
    models_free(sv->models);
    model_set_done(&sv->model_set);
    engine_free(sv->engine);
    if (sv->loop)
        loop_free(sv->loop);
    listeners_done(&sv->listeners);
    pools_free(sv->pools, sv->s->pool_count);
    fd_closep(&sv->cert.fd);
    fd_closep(&sv->key.fd);
    fd_closep(&sv->client_ca.fd);
    fd_closep(&sv->notify);
    fd_closep(&sv->lock); /* last: now another one may come */
}

/* --- the command --- */

static void live(struct server *sv)
{
    static const int ends[] = {SIGTERM, SIGINT};

    engine_on_lost(sv->engine, on_warden_lost, sv);
    sv->tick = timer_new(sv->loop, on_tick, sv);
    sv->limit = timer_new(sv->loop, on_limit, sv);
    for (size_t i = 0; i < COUNT(ends); i++)
        loop_on_signal(sv->loop, ends[i], on_end, sv);
    loop_on_signal(sv->loop, SIGHUP, on_reload, sv);
    timer_set(sv->tick, 0);
    loop_run(sv->loop);
}

static int check_config(const struct settings *s)
{
    struct buf text;
    struct err e;
    int rc;

    buf_init(&text, CHECK_MAX);
    config_show(s, &text);
    rc = fd_write_all(STDOUT_FILENO, buf_str(&text), &e);
    buf_done(&text);
    return rc < 0 ? EXIT_OURS : EXIT_OK;
}

static int fail(const struct err *e)
{
    fprintf(stderr, "retort: %s\n", e->text);
    return e->kind == ERR_HOST ? EXIT_OURS : EXIT_USAGE;
}

int serve_main(const struct settings *s)
{
    struct server sv = {
        .s = s, .lock = -1, .notify = -1, .cert.fd = -1, .key.fd = -1, .client_ca.fd = -1};
    struct err e = {0};

    if (egress_check(s, &e) < 0 || approval_rules_check(s, &e) < 0 ||
        models_settings_check(s, &e) < 0)
        return fail(&e);
    if (s->serve.check_config)
        return check_config(s);
    log_set_level(s->serve.log_level);
    log_set_format(s->serve.log_format);
    memory_give_back();
    if (prepare(&sv, &e) < 0 || settle(&sv, &e) < 0 || build(&sv, &e) < 0)
        sv.status = fail(&e);
    else
        live(&sv);
    take_down(&sv);
    return sv.status;
}
