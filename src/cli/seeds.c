/* The doors that speak for other systems: made from the settings, each with an MCP room of its own
 * beside its routes. */
#include "cli/serve_int.h"
#include "doors/azure/azure.h"

#include <fcntl.h>

#define KEY_LEAST 32 /* bytes, as RFC 7518 wants of HS256 */

static int build_qwen(struct seeds *d, const struct seeds_config *c, struct err *e)
{
    const struct qwen_settings *s = &c->settings->qwen;
    struct qwen_config config = {
        .loop = c->mcp.loop,
        .pool = s->pool,
        .static_url = s->static_url,
        .public_url = c->settings->serve.public_url,
        .address = c->address,
        .work_dir = s->work_dir,
        .file_dirs = s->file_dirs,
        .timeout_ms = s->timeout_ms,
        .executor_ms = s->executor_ms,
        .executor_chars = s->executor_chars,
        .traceback = s->traceback == TRACEBACK_FULL,
    };

    memcpy(config.secret, c->mcp.secret, sizeof(config.secret));
    d->qwen.room = qwen_new(&config, e);
    if (!d->qwen.room)
        return err_wrap(e, "--qwen-work-dir, --qwen-file-dirs");
    return 0;
}

/* Blanks at its end are a text editor's. */
static int read_key(struct seeds *d, const char *path, struct err *e)
{
    ssize_t n = fd_read_file_at(AT_FDCWD, path, d->prisme.key, sizeof(d->prisme.key));

    if (n < 0)
        return err_sys(e, "cannot read --prisme-source-key %s", path);
    while (n > 0 && strchr(" \r\n", d->prisme.key[n - 1]))
        n--;
    d->prisme.key_n = (size_t)n;
    return n >= KEY_LEAST
               ? 0
               : err_set(e, ERR_CALLER, "--prisme-source-key has fewer than %d bytes", KEY_LEAST);
}

static int build_prisme(struct seeds *d, const struct seeds_config *c, struct err *e)
{
    const struct prisme_settings *s = &c->settings->prisme;

    if (s->source_key && read_key(d, s->source_key, e) < 0)
        return -1;
    const struct prisme_config config = {
        .loop = c->mcp.loop,
        .pool = s->pool,
        .builtins = s->builtins,
        .packages = s->packages,
        .packages_more = s->packages_more,
        .sources = s->sources,
        .source_key = {d->prisme.key, d->prisme.key_n},
        .certificates = c->settings->serve.tls_client_ca != NULL,
        .timeout_ms = s->timeout_ms,
        .parallel = s->parallel,
        .user_first = s->activation == ACTIVATION_USER_FIRST,
    };

    d->prisme.room = prisme_new(&config, e);
    return d->prisme.room ? 0 : err_wrap(e, "the settings for Prisme");
}

/* At the address that its system would have, and at the one that all have in common. */
static struct mcp *mcp_of(const struct seeds_config *c, const struct face *face, const char *path,
                          const char *also)
{
    struct mcp_config config = c->mcp;

    config.face = face;
    config.paths[0] = path;
    config.paths[1] = also;
    config.fixtures = false;
    return mcp_new(&config);
}

static struct ubik_config ubik_config_of(const struct seeds_config *c)
{
    struct ubik_config config = {
        .loop = c->mcp.loop,
        .agent = c->agent,
        .arg = c->agent_arg,
        .pool = c->settings->ubik.pool,
        .public_url = c->settings->serve.public_url,
        .address = c->address,
        .event_bytes = c->settings->ubik.event_bytes,
        .keep_ms = c->settings->serve.record_ms,
    };

    memcpy(config.secret, c->mcp.secret, sizeof(config.secret));
    return config;
}

void seeds_ubik(struct seeds *d, const struct seeds_config *c)
{
    const struct ubik_config config = ubik_config_of(c);

    d->ubik.room = ubik_new(&config);
}

/* Requests in plain words, under Prisme's rules: its pool, its scripts, its time, two retries. */
static void build_thinker(struct seeds *d, const struct seeds_config *c)
{
    struct ubik_config config = ubik_config_of(c);

    config.pool = c->settings->prisme.pool;
    prisme_env(d->prisme.room, d->prisme.env);
    config.env = d->prisme.env;
    config.env_count = PRISME_ENV;
    config.run_ms = c->settings->prisme.timeout_ms;
    config.no_replan = true;
    d->prisme.thinker = ubik_new(&config);
    prisme_think(d->prisme.room, &tool_code_execution, d->prisme.thinker, c->mcp.has_model);
}

int seeds_rooms(struct seeds *d, const struct seeds_config *c, struct err *e)
{
    if (build_qwen(d, c, e) < 0 || build_prisme(d, c, e) < 0)
        return -1;
    build_thinker(d, c);
    if (!d->ubik.room)
        seeds_ubik(d, c);
    return 0;
}

int seeds_open(struct seeds *d, const struct seeds_config *c, struct err *e)
{
    if (seeds_rooms(d, c, e) < 0)
        return -1;
    d->qwen.mcp = mcp_of(c, qwen_face(d->qwen.room), "/qwen/mcp", "/mcp/qwen");
    d->prisme.mcp = mcp_of(c, prisme_face(d->prisme.room), "/prisme/mcp", "/mcp/prisme");
    d->ubik.mcp = mcp_of(c, ubik_face(d->ubik.room), "/ubik/mcp", "/mcp/ubik");
    d->azure.mcp = mcp_of(c, azure_face(), "/mcp/azure", NULL); /* and one for each pool */
    return 0;
}

void seeds_add(struct seeds *d, struct http *h)
{
    qwen_door_init(&d->qwen.door, d->qwen.room);
    mcp_door_init(&d->qwen.mcp_door, d->qwen.mcp);
    http_add(h, &d->qwen.door);
    http_add(h, &d->qwen.mcp_door);
    prisme_door_init(&d->prisme.door, d->prisme.room);
    mcp_door_init(&d->prisme.mcp_door, d->prisme.mcp);
    prisme_door_trust(&d->prisme.mcp_door, d->prisme.room);
    http_add(h, &d->prisme.door);
    http_add(h, &d->prisme.mcp_door);
    ubik_door_init(&d->ubik.door, d->ubik.room);
    mcp_door_init(&d->ubik.mcp_door, d->ubik.mcp);
    http_add(h, &d->ubik.door);
    http_add(h, &d->ubik.mcp_door);
    mcp_door_init(&d->azure.mcp_door, d->azure.mcp);
    http_add(h, &d->azure.mcp_door);
}

void seeds_drain(struct seeds *d)
{
    mcp_drain(d->qwen.mcp);
    mcp_drain(d->prisme.mcp);
    mcp_drain(d->ubik.mcp);
    mcp_drain(d->azure.mcp);
}

void seeds_free_mcp(struct seeds *d)
{
    mcp_free(take_ptr(&d->qwen.mcp));
    mcp_free(take_ptr(&d->prisme.mcp));
    mcp_free(take_ptr(&d->ubik.mcp));
    mcp_free(take_ptr(&d->azure.mcp));
}

void seeds_stop(struct seeds *d)
{
    ubik_stop(d->prisme.thinker);
    ubik_stop(d->ubik.room);
}

void seeds_free(struct seeds *d)
{
    qwen_free(take_ptr(&d->qwen.room));
    ubik_free(take_ptr(&d->prisme.thinker));
    prisme_free(take_ptr(&d->prisme.room));
    ubik_free(take_ptr(&d->ubik.room));
}
