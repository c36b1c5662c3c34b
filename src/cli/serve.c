/*
 * retort serve: builds the server and runs it until a signal ends it.
 *
 * Theory of operation, in three parts. prepare() does what needs root or may be refused,
 * while there is one thread and nothing to undo: the settings, the isolation floor, the
 * state directory, the sockets, the certificates, and the packages of each pool's
 * interpreter (asked as the user who will serve). settle() forks the warden and changes
 * to that user. build() starts threads, opens the database and reads the first byte from
 * a client. SIGTERM goes the same way back: no new connections, running code may end,
 * then everything is closed in reverse order.
 *
 * While it serves, a server whose sandboxes have user ids of their own keeps CAP_SETUID and
 * CAP_SETGID over these ids (sandbox/server_user.c, sandbox/subids.c). Any other server keeps
 * no rights.
 */
#include "agent/agent.h"
#include "cli/serve_int.h"
#include "cli/state.h"
#include "doors/http/http.h"
#include "loop/loop.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define TICK_MS     20
#define ANSWERS_MS  3000 /* for the answers of what was ended */
#define CHECK_MAX   (256 * KiB)
#define CHANGES_MAX (4 * KiB)

struct server {
    const struct settings *s; /* borrowed */
    struct pool_set pools;
    char guest_dir[PATH_MAX];
    struct server_user user;
    int lock;   /* owned: of the state directory */
    int notify; /* owned, or -1 */
    int peers;  /* owned, or -1: nobody needs to know */
    bool keys;  /* there were some at start */
    struct listeners listeners;
    struct model_set model_set;
    struct blob_set blob_set;
    struct node_set node_set;
    struct store_config store_config; /* borrows the password, and from the settings */
    char *store_password;             /* owned, or NULL */
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
    struct doors doors;
    struct timer *tick;  /* until a pool is up; then until nobody is left */
    struct timer *limit; /* of the draining */
    char why[256];       /* why no pool is up, as last told */
    bool ending;
    bool is_down;  /* the rooms are being freed: a signal finds nothing to act on */
    bool ends_all; /* the time for what runs is over */
    bool empty;    /* the service has nothing left to do */
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
    sv->lock = state_lock(sv->s->state, e);
    if (sv->lock < 0 || listeners_open(&sv->listeners, sv->s, e) < 0 ||
        access_check(sv->s, &sv->listeners, e) < 0 ||
        state_store(sv->s, &sv->store_config, &sv->store_password, e) < 0 ||
        model_set_open(&sv->model_set, sv->s, e) < 0 ||
        blob_set_open(&sv->blob_set, sv->s, e) < 0 || node_set_open(&sv->node_set, sv->s, e) < 0)
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
    if (sv->s->prisme.sources && strstr(sv->s->prisme.sources, "unix:") &&
        peers_start(&sv->user, &sv->peers, e) < 0)
        return -1;
    return pool_set_open(&sv->pools, sv->s, &sv->user, e);
}

/* The last moment with one thread: the warden stays who we are, and we become somebody else. */
static int settle(struct server *sv, struct err *e)
{
    sv->loop = loop_new(e);
    if (!sv->loop)
        return -1;
    sv->engine = engine_of(sv->loop, &sv->pools, sv->guest_dir, NULL, &sv->user, e);
    (void)server_go_first(); /* the warden does so itself, and our workers do not: loop_new() */
    if (!sv->engine || server_user_enter(&sv->user, e) < 0 || state_reach(sv->s->state, e) < 0)
        return -1;
    signal(SIGPIPE, SIG_IGN); /* not before: the warden's children would inherit it */
    return 0;
}

static void on_home(void *arg, const char *tenant)
{
    struct server *sv = arg;

    if (!sv->ending)
        agent_resume(sv->agent, tenant);
}

/* What is in memory here is another node's affair, and nothing of it can be kept. Our parent starts
 * us again. */
static void on_fenced(void *arg)
{
    struct server *sv = arg;

    log_error("another node has taken over from this one, which ends");
    sv->status = EXIT_OURS;
    loop_stop(sv->loop);
}

static int build_service(struct server *sv, struct err *e)
{
    sv->store_config.s3 = sv->blob_set.in_s3 ? &sv->blob_set.s3 : NULL;
    sv->store_config.node = sv->node_set.on ? &sv->node_set.node : NULL;
    sv->store = store_open(sv->loop, &sv->store_config, e);
    if (!sv->store)
        return -1;
    sv->models = model_set_start(&sv->model_set, sv->loop, e);
    if (!sv->models)
        return -1;
    sv->service = service_of(&sv->pools, sv->loop, sv->engine, sv->store, e);
    if (!sv->service)
        return -1;
    sv->agent = agent_of(sv->s, sv->loop, sv->service, sv->store, sv->models);
    if (!service_has_nodes(sv->service)) {
        agent_resume(sv->agent, NULL);
        return 0;
    }
    service_on_home(sv->service, NULL, NULL, on_home, sv);
    service_on_fenced(sv->service, on_fenced, sv);
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
        .public_url = s->public_url,
        .peer = peers_ask,
        .peer_arg = &sv->peers,
        .peer_secret = sv->node_set.on ? sv->node_set.peers : NULL,
        .peer_ca = sv->node_set.ca >= 0 ? sv->node_set.ca_path : NULL,
        .peer_cert = sv->node_set.cert >= 0 ? sv->node_set.cert_path : NULL,
        .peer_key = sv->node_set.key >= 0 ? sv->node_set.key_path : NULL,
    };
    struct doors_config doors = {
        .settings = sv->s,
        .models = sv->models,
        .agent = the_agent,
        .agent_arg = sv,
        .mcp = {.loop = sv->loop,
                .service = the_service,
                .arg = sv,
                .answer_ms = s->answer_ms,
                .outside = pools_reach_out(sv->s),
                .public_url = s->public_url,
                .oauth_servers = s->oauth_servers}
    };

    if (sv->node_set.on) /* what one node has signed another one may be shown */
        memcpy(doors.mcp.secret, sv->node_set.mcp, sizeof(doors.mcp.secret));
    else if (state_secret(sv->s->state, doors.mcp.secret, sizeof(doors.mcp.secret), e) < 0)
        return -1;
    doors.mcp.has_model = models_find(sv->models, "", (struct str){0}) != NULL;
    sv->http = doors.http = http_new(sv->loop, &config, e);
    if (!sv->http || doors_open(&sv->doors, &doors, e) < 0)
        return -1;
    mcp_follow(sv->doors.at[DOOR_MCP].mcp, sv->service);
    for (size_t i = 0; i < sv->listeners.count; i++) {
        struct listener *l = &sv->listeners.item[i];
        if (listener_begin(l, e) < 0 || http_listen(sv->http, take_fd(&l->fd), l->local, e) < 0)
            return -1;
    }
    return 0;
}

static int build(struct server *sv, struct err *e)
{
    if (keys_check(&sv->store_config, &sv->listeners, &sv->keys, e) < 0 || build_service(sv, e) < 0)
        return -1;
    return build_doors(sv, e);
}

/* --- serving --- */

static void greet(struct server *sv)
{
    notify_say(sv->notify, "READY=1");
    log_info("ready: %zu %s, state in %s", sv->s->pool_count,
             sv->s->pool_count == 1 ? "pool" : "pools", sv->s->state);
    if (engine_shared_user(sv->engine))
        log_info("sandboxes and the server are one user: %s", engine_shared_user(sv->engine));
    hello_say(sv->s, &sv->listeners, sv->keys);
}

/* A pool whose Python refuses is told of, and the rest is served. When there is no rest, the server
 * ends: nothing would ever make it ready. */
static bool is_settled(struct server *sv)
{
    const struct service_pools pools = service_look_at_pools(sv->service);

    if (pools.refused == 0 || pools.up + pools.refused < pools.all)
        return false;
    log_error("pool %s: %s", pools.pool, pools.why);
    if (pools.up > 0) {
        greet(sv);
    } else {
        fprintf(stderr, "retort: no pool can run anything: pool %s: %s\n", pools.pool, pools.why);
        sv->status = EXIT_USAGE;
        loop_stop(sv->loop);
    }
    return true;
}

/* Until the first pool is up. */
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
    if (is_settled(sv))
        return;
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
    AUTO(buf_done) struct buf changed = BUF(CHANGES_MAX);
    struct err e;

    settings_init(&fresh);
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
    settings_done(&fresh);
}

static void on_reload(void *arg, int signum)
{
    struct server *sv = arg;

    (void)signum;
    if (sv->ending || sv->is_down)
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

    if (sv->ends_all) /* who does not read its answer by now gets none */
        return loop_stop(sv->loop);
    sv->ends_all = true;
    log_warn("what still runs after %.1f seconds is ended", (double)sv->s->serve.drain_ms / 1000);
    service_end_all(sv->service);
    timer_set(sv->limit, ANSWERS_MS);
}

/* Nothing can be run any more, and only root can start another warden: our parent restarts us. */
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

    if (sv->is_down)
        return;
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
    doors_drain(&sv->doors);
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
    sv->is_down = true;
    timer_free(sv->tick);
    timer_free(sv->limit);
    doors_stop(&sv->doors);
    if (sv->http)
        http_free(sv->http);
    agent_free(sv->agent);
    if (sv->service)
        service_free(sv->service);
    if (sv->store)
        store_close(sv->store);
    if (sv->loop) {
        loop_later(sv->loop, stop, sv->loop);
        loop_run(sv->loop);
    }
    doors_free(&sv->doors); /* a request may outlive the listeners */
    models_free(sv->models);
    model_set_done(&sv->model_set);
    blob_set_done(&sv->blob_set);
    node_set_done(&sv->node_set);
    free(sv->store_password);
    engine_free(sv->engine);
    if (sv->loop)
        loop_free(sv->loop);
    listeners_done(&sv->listeners);
    pool_set_done(&sv->pools);
    fd_closep(&sv->cert.fd);
    fd_closep(&sv->key.fd);
    fd_closep(&sv->client_ca.fd);
    fd_closep(&sv->notify);
    fd_closep(&sv->peers);
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
    AUTO(buf_done) struct buf text = BUF(CHECK_MAX);
    int status;

    config_show(s, &text);
    status = stdout_put(buf_str(&text));
    return status;
}

int serve_main(const struct settings *s)
{
    struct server sv = {
        .s = s,
        .lock = -1,
        .notify = -1,
        .peers = -1,
        .cert.fd = -1,
        .key.fd = -1,
        .client_ca.fd = -1,
        .blob_set.ca = -1,
        .node_set = {.ca = -1, .cert = -1, .key = -1}
    };
    struct err e = {0};

    if (egress_check(s, &e) < 0 || approval_rules_check(s, &e) < 0 ||
        models_settings_check(s, &e) < 0 || blobs_settings_check(s, &e) < 0)
        return command_failed(&e);
    if (s->serve.check_config)
        return check_config(s);
    log_set_level(s->serve.log_level);
    log_set_format(s->serve.log_format);
    memory_give_back();
    if (prepare(&sv, &e) < 0 || settle(&sv, &e) < 0 || build(&sv, &e) < 0)
        sv.status = command_failed(&e);
    else
        live(&sv);
    take_down(&sv);
    return sv.status;
}
