/*
 * Tells clients where to get a token, where an authorisation server is configured (RFC 9728): a
 * document about /mcp, and the challenge in the 401 of a request without a key. Keys of the service
 * work in any case.
 */
#include "doors/mcp/transport.h"

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

    buf_init(&b, CHALLENGE_MAX);
    if (!is_configured(m) || buf_printf(&b, "Bearer resource_metadata=\"%.*s" WELL_KNOWN "/mcp\"",
                                        (int)url.n, url.p) < 0)
        buf_done(&b);
    return b.p;
}

static json_t *servers(const char *list)
{
    json_t *found = json_array();
    struct str rest = str_of(list), one;

    while (str_next(&rest, ',', &one))
        if (one.n)
            json_array_append_new(found, record_text(one));
    return found;
}

void handle_resource_metadata(struct request *r)
{
    const struct mcp *m = request_ctx(r);
    struct str url = base(m);
    AUTO(buf_done) struct buf resource = BUF(CHALLENGE_MAX);
    struct err e;

    if (!is_configured(m)) {
        answer_fail(r, 404, "not_found", NULL, "there is no authorisation server: keys are used");
        return;
    }
    buf_printf(&resource, "%.*s/mcp", (int)url.n, url.p);
    if (buf_check(&resource, &e) < 0)
        answer_error(r, &e, NULL);
    else
        answer_json(r, 200,
                    json_pack("{s:o, s:o, s:[s], s:s}", "resource", record_text(buf_str(&resource)),
                              "authorization_servers", servers(m->config.oauth_servers),
                              "bearer_methods_supported", "header", "resource_name", "retort"));
}
