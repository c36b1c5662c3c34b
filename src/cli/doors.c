/*
 * The doors: one row each, and one loop over the rows for each moment in the life of a server. A
 * row with a tool set gets an MCP server of its own beside its routes.
 */
#include "cli/serve_int.h"
#include "doors/anthropic/anthropic.h"
#include "doors/azure/azure.h"
#include "doors/console/console.h"
#include "doors/operator/operator.h"
#include "doors/prisme/prisme.h"
#include "doors/qwen/qwen.h"
#include "doors/rest/rest.h"
#include "doors/ubik/ubik.h"

#include <fcntl.h>

#define KEY_LEAST  32              /* bytes, as RFC 7518 wants of HS256 */
#define IMAGES_DIR "retort-images" /* in the working directory */

/* --- making each from the settings --- */

static void *new_rest(struct doors *d, const struct doors_config *c, struct err *e)
{
    (void)d, (void)e;
    return rest_new(c->http);
}

static void *new_http(struct doors *d, const struct doors_config *c, struct err *e)
{
    (void)d, (void)e;
    return c->http;
}

/* Over HTTP links lead to the server. */
static const char *images_dir_of(const struct doors_config *c)
{
    if (c->http)
        return NULL;
    return c->settings->images_dir ? c->settings->images_dir : IMAGES_DIR;
}

static void *new_qwen(struct doors *d, const struct doors_config *c, struct err *e)
{
    const struct qwen_settings *s = &c->settings->qwen;
    struct qwen_config config = {
        .loop = c->mcp.loop,
        .pool = s->pool,
        .static_url = s->static_url && *s->static_url ? s->static_url : NULL,
        .work_dir = s->work_dir,
        .images_dir = images_dir_of(c),
        .file_dirs = s->file_dirs,
        .timeout_ms = s->timeout_ms,
        .executor_ms = s->executor_ms,
        .executor_chars = s->executor_chars,
        .traceback = s->traceback == TRACEBACK_FULL,
    };
    struct qwen *q;

    (void)d;
    memcpy(config.secret, c->mcp.secret, sizeof(config.secret));
    q = qwen_new(&config, e);
    if (!q)
        err_wrap(e, "--qwen-work-dir, --qwen-file-dirs");
    return q;
}

/* Blanks at its end are a text editor's. */
static int read_key(struct doors *d, const char *path, struct err *e)
{
    ssize_t n = fd_read_file_at(AT_FDCWD, path, d->prisme_key, sizeof(d->prisme_key));

    if (n < 0)
        return err_sys(e, "cannot read --prisme-source-key %s", path);
    while (n > 0 && strchr(" \r\n", d->prisme_key[n - 1]))
        n--;
    d->prisme_key_n = (size_t)n;
    return n >= KEY_LEAST
               ? 0
               : err_set(e, ERR_CALLER, "--prisme-source-key has fewer than %d bytes", KEY_LEAST);
}

static void *new_prisme(struct doors *d, const struct doors_config *c, struct err *e)
{
    const struct prisme_settings *s = &c->settings->prisme;

    if (s->source_key && read_key(d, s->source_key, e) < 0)
        return NULL;
    const struct prisme_config config = {
        .loop = c->mcp.loop,
        .pool = s->pool,
        .builtins = s->builtins,
        .packages = s->packages,
        .packages_more = s->packages_more,
        .sources = s->sources,
        .source_key = {d->prisme_key, d->prisme_key_n},
        .certificates = c->settings->serve.tls_client_ca != NULL,
        .timeout_ms = s->timeout_ms,
        .parallel = s->parallel,
        .user_first = s->activation == ACTIVATION_USER_FIRST,
    };

    struct prisme *p = prisme_new(&config, e);
    if (!p)
        err_wrap(e, "the settings for Prisme");
    return p;
}

static struct ubik_config ubik_config_of(const struct doors_config *c)
{
    struct ubik_config config = {
        .loop = c->mcp.loop,
        .agent = c->agent,
        .arg = c->agent_arg,
        .pool = c->settings->ubik.pool,
        .event_bytes = c->settings->ubik.event_bytes,
        .keep_ms = c->settings->serve.record_ms,
    };

    memcpy(config.secret, c->mcp.secret, sizeof(config.secret));
    return config;
}

static void *new_ubik(struct doors *d, const struct doors_config *c, struct err *e)
{
    const struct ubik_config config = ubik_config_of(c);

    (void)d, (void)e;
    return ubik_new(&config);
}

/* The agent under Prisme's rules: its pool, its scripts, its time, two retries. */
static void *new_prisme_agent(struct doors *d, const struct doors_config *c, struct err *e)
{
    struct prisme *p = d->at[DOOR_PRISME].room;
    struct ubik_config config = ubik_config_of(c);
    struct ubik *u;

    (void)e;
    config.pool = c->settings->prisme.pool;
    prisme_env(p, d->prisme_env);
    config.env = d->prisme_env;
    config.env_count = PRISME_ENV;
    config.run_ms = c->settings->prisme.timeout_ms;
    config.no_replan = true;
    u = ubik_new(&config);
    prisme_think(p, &tool_code_execution, ubik_backend(u), c->mcp.has_model);
    return u;
}

static void *new_azure(struct doors *d, const struct doors_config *c, struct err *e)
{
    (void)e;
    return azure_new(d->at[DOOR_MCP].mcp, c->mcp.loop);
}

static void *new_anthropic(struct doors *d, const struct doors_config *c, struct err *e)
{
    const struct anthropic_settings *s = &c->settings->anthropic;
    const struct anthropic_config config = {
        .loop = c->mcp.loop,
        .service = c->mcp.service(c->mcp.arg, e),
        .models = c->models,
        .download_uploads = s->download_uploads,
        .pool = s->pool,
        .timeout_ms = s->timeout_ms,
        .cell_ms = s->cell_ms,
        .turns = s->turns,
        .wall_ms = s->wall_ms,
        .idle_ms = s->idle_ms,
        .answer_ms = s->answer_ms,
        .approval_ms = s->approval_ms,
        .capture_cwd = s->capture_cwd,
    };

    (void)d;
    return config.service ? anthropic_new(&config) : NULL;
}

/* --- the rows --- */

struct door_row {
    const struct door *door; /* its name, routes and errors; NULL: it has none */
    /* Makes the room that its handlers and tools work with. NULL and *e when that fails. */
    void *(*new)(struct doors *d, const struct doors_config *c, struct err *e);
    const struct tool_set *(*tool_set)(void *room); /* or NULL */
    const char *mcp[2];                             /* paths of its MCP server, or NULL */
    bool mcp_identifies; /* whom its routes let in without a key, its MCP server does, too */
    size_t pool;         /* offset of --NAME-pool in the settings, or 0 */
    /* Or NULL: on SIGTERM, before the service goes, and after the last request. */
    void (*drain)(void *room);
    void (*stop)(void *room);
    void (*free)(void *room);
};

#define SETTING(member) offsetof(struct settings, member)

/* In this order: a room may use those above it. */
// clang-format off
static const struct door_row rows[DOORS] = {
    [DOOR_REST]      = {&rest_door, new_rest, .drain = rest_drain, .stop = rest_stop, .free = rest_free},
    [DOOR_OPERATOR]  = {&operator_door, new_http},
    [DOOR_CONSOLE]   = {&console_door, new_http},
    [DOOR_UBIK]      = {&ubik_door, new_ubik, ubik_tool_set, {"/ubik/mcp", "/mcp/ubik"}, .pool = SETTING(ubik.pool),
                        .stop = ubik_stop, .free = ubik_free},
    [DOOR_MCP]       = {.mcp = {"/mcp"}},
    [DOOR_AZURE]     = {&azure_door, new_azure, azure_tool_set, {"/mcp/azure"}, .free = azure_free},
    [DOOR_ANTHROPIC] = {&anthropic_door, new_anthropic, .pool = SETTING(anthropic.pool), .drain = anthropic_drain,
                        .stop = anthropic_close, .free = anthropic_free},
    [DOOR_QWEN]      = {&qwen_door, new_qwen, qwen_tool_set, {"/qwen/mcp", "/mcp/qwen"}, .pool = SETTING(qwen.pool),
                        .free = qwen_free},
    [DOOR_PRISME]    = {&prisme_door, new_prisme, prisme_tool_set, {"/prisme/mcp", "/mcp/prisme"}, true,
                        .pool = SETTING(prisme.pool), .drain = prisme_drain, .stop = prisme_stop, .free = prisme_free},
    [DOOR_PRISME_AGENT] = {NULL, new_prisme_agent, .stop = ubik_stop, .free = ubik_free},
};
// clang-format on

/* --- the loops --- */

int door_make(struct doors *d, enum door_kind k, const struct doors_config *c, struct err *e)
{
    d->at[k].room = rows[k].new ? rows[k].new(d, c, e) : NULL;
    return d->at[k].room || !rows[k].new ? 0 : -1;
}

const struct tool_set *door_tool_set(const struct doors *d, enum door_kind k)
{
    return rows[k].tool_set ? rows[k].tool_set(d->at[k].room) : NULL;
}

static void add_routes(struct doors *d, enum door_kind k, struct http *h)
{
    struct door *door = &d->at[k].door;

    *door = *rows[k].door;
    door->ctx = door->identify_arg = d->at[k].room;
    http_add(h, door);
}

static void add_mcp(struct doors *d, enum door_kind k, const struct doors_config *c)
{
    struct door *door = &d->at[k].mcp_door;
    struct mcp_config config = c->mcp;

    config.tool_set = door_tool_set(d, k);
    memcpy(config.paths, rows[k].mcp, sizeof(config.paths));
    config.agent_tool = &tool_code_execution;
    config.agent_tool_ctx = ubik_backend(d->at[DOOR_UBIK].room);
    d->at[k].mcp = mcp_new(&config);
    mcp_door_init(door, d->at[k].mcp);
    if (rows[k].mcp_identifies) {
        door->identify = rows[k].door->identify;
        door->identify_arg = d->at[k].room;
        door->correlates = rows[k].door->correlates;
    }
    http_add(c->http, door);
}

static bool has_pool(struct service *sv, const char *name)
{
    struct pool_info info;

    for (size_t i = 0; i < service_pool_count(sv); i++) {
        service_pool_get(sv, i, &info);
        if (strcmp(info.pool->name, name) == 0)
            return true;
    }
    return false;
}

/* Else it would show with the first request. */
static int check_pool(const struct door_row *row, const struct doors_config *c, struct err *e)
{
    const char *name = NULL;
    char shown[NAME_SHOWN];

    if (row->pool)
        memcpy(&name, (const char *)c->settings + row->pool, sizeof(name));
    if (!name || has_pool(c->mcp.service(c->mcp.arg, e), name))
        return 0;
    return err_set(e, ERR_CALLER, "--%s-pool: there is no pool %s", row->door->name,
                   name_show(shown, str_of(name)));
}

int doors_open(struct doors *d, const struct doors_config *c, struct err *e)
{
    for (enum door_kind k = 0; k < DOORS; k++) {
        if (check_pool(&rows[k], c, e) < 0 || door_make(d, k, c, e) < 0)
            return -1;
        if (rows[k].mcp[0])
            add_mcp(d, k, c);
        if (rows[k].door)
            add_routes(d, k, c->http);
    }
    return 0;
}

void doors_drain(struct doors *d)
{
    for (enum door_kind k = 0; k < DOORS; k++) {
        if (d->at[k].mcp)
            mcp_drain(d->at[k].mcp);
        if (rows[k].drain)
            rows[k].drain(d->at[k].room);
    }
}

void doors_stop(struct doors *d)
{
    for (enum door_kind k = 0; k < DOORS; k++) {
        if (rows[k].stop && d->at[k].room)
            rows[k].stop(d->at[k].room);
        mcp_free(take_ptr(&d->at[k].mcp));
    }
}

void doors_free(struct doors *d)
{
    for (enum door_kind k = 0; k < DOORS; k++)
        if (rows[k].free && d->at[k].room)
            rows[k].free(take_ptr(&d->at[k].room));
}
