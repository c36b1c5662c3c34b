/*
 * The client's roots: the folders that its user has opened in it, as roots/list tells them.
 *
 * They are asked for once, when the client has introduced itself: which folders a sandbox sees is
 * settled when its interpreter starts. Requests that come before the answer wait for it (stdio.c).
 */
#include "doors/mcp/resource.h"
#include "doors/mcp/transport.h"

#include <stdio.h>

bool roots_are_known(const struct conversation *v)
{
    return v->mcp->config.take_roots && v->client.version &&
           json_is_object(json_object_get(v->client.capabilities, "roots"));
}

json_t *roots_question(char ret_id[ID_MAX])
{
    id_make(ret_id, "ask_");
    return json_pack("{s:s, s:s, s:s}", "jsonrpc", "2.0", "id", ret_id, "method", "roots/list");
}

/* file:///a/b and file://localhost/a/b are of this machine. */
static bool read_uri(struct str uri, char ret[SPACE_PATH_MAX])
{
    static const char *const starts[] = {"file:///", "file://localhost/"};

    for (size_t i = 0; i < COUNT(starts); i++) {
        size_t n = strlen(starts[i]);
        if (uri.n >= n && memcmp(uri.p, starts[i], n) == 0)
            return uri_decode((struct str){uri.p + n - 1, uri.n - n + 1}, ret) == 0;
    }
    return false;
}

void roots_take(struct mcp *m, const json_t *answer)
{
    const json_t *list = json_object_get(json_object_get(answer, "result"), "roots"), *root;
    char paths[ROOTS_MAX][SPACE_PATH_MAX];
    const char *shown[ROOTS_MAX];
    size_t i, count = 0;

    json_array_foreach(list, i, root) {
        struct str uri = json_view(json_object_get(root, "uri"));
        char name[NAME_SHOWN];
        if (count == ROOTS_MAX)
            break;
        if (uri.p && read_uri(uri, paths[count])) {
            shown[count] = paths[count];
            count++;
        } else {
            log_warn("roots: %s is no folder of this machine, and is left out",
                     name_show(name, uri));
        }
    }
    m->opened = m->config.take_roots(m->config.arg, shown, count);
}
