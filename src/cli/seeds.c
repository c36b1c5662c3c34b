/* The doors that speak for other systems: made from the settings, each with an MCP room of its own
 * beside its routes. */
#include "cli/serve_int.h"

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

static struct mcp *mcp_of(const struct seeds_config *c, const struct face *face, const char *path)
{
    struct mcp_config config = c->mcp;

    config.face = face;
    config.path = path;
    config.fixtures = false;
    return mcp_new(&config);
}

int seeds_open(struct seeds *d, const struct seeds_config *c, struct err *e)
{
    if (build_qwen(d, c, e) < 0)
        return -1;
    d->qwen.mcp = mcp_of(c, qwen_face(d->qwen.room), "/qwen/mcp");
    return 0;
}

void seeds_add(struct seeds *d, struct http *h)
{
    qwen_door_init(&d->qwen.door, d->qwen.room);
    mcp_door_init(&d->qwen.mcp_door, d->qwen.mcp);
    http_add(h, &d->qwen.door);
    http_add(h, &d->qwen.mcp_door);
}

void seeds_drain(struct seeds *d)
{
    mcp_drain(d->qwen.mcp);
}

void seeds_free_mcp(struct seeds *d)
{
    mcp_free(take_ptr(&d->qwen.mcp));
}

void seeds_free(struct seeds *d)
{
    qwen_free(take_ptr(&d->qwen.room));
}
