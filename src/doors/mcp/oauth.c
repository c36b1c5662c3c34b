/*
 * Where a client gets a token, for those who have an authorisation server (RFC 9728): a
 * document about /mcp, and the answer to a request without a key that points at it. Only
 * when it is configured; keys of ours work with it and without.
 */
#include "doors/mcp/mcp_int.h"

#include <stdlib.h>

#define WELL_KNOWN    "/.well-known/oauth-protected-resource"
#define CHALLENGE_MAX (2 * KiB)

static bool is_configured(const struct mcp *m)
{
    return m->config.oauth_servers && m->config.public_url;
}

static struct str base(const struct mcp *m)
{
    struct str url = str_of(m->config.public_url);

    while (url.n && url.p[url.n - 1] == '/')
        url.n--;
    return url;
}

char *oauth_challenge(const struct mcp *m)
{
    struct str url = base(m);
    struct buf b;
    struct err e;

    buf_init(&b, CHALLENGE_MAX);
    if (!is_configured(m) ||
        buf_printf(&b, &e, "Bearer resource_metadata=\"%.*s" WELL_KNOWN "/mcp\"", (int)url.n,
                   url.p) < 0)
        buf_done(&b);
    return b.p;
}

static json_t *servers(const char *list)
{
    json_t *found = json_array();

    for (const char *p = list; *p;) {
        size_t n = strcspn(p, ",");
        struct str one = header_trim((struct str){p, n});

        if (one.n)
            json_array_append_new(found, record_text(one));
        p += n + (p[n] == ',');
    }
    return found;
}

void handle_resource_metadata(struct request *r)
{
    const struct mcp *m = request_ctx(r);
    struct str url = base(m);
    struct buf resource;
    struct err e;

    if (!is_configured(m)) {
        answer_fail(r, 404, "not_found", NULL, "there is no authorisation server: keys are used");
        return;
    }
    buf_init(&resource, CHALLENGE_MAX);
    if (buf_printf(&resource, &e, "%.*s/mcp", (int)url.n, url.p) < 0)
        answer_error(r, &e, NULL);
    else
        answer_json(r, 200,
                    json_pack("{s:o, s:o, s:[s], s:s}", "resource", record_text(buf_str(&resource)),
                              "authorization_servers", servers(m->config.oauth_servers),
                              "bearer_methods_supported", "header", "resource_name", "retort"));
    buf_done(&resource);
}
