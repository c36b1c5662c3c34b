/* Revisions of the protocol, and what a client has said of itself. */
#include "doors/mcp/mcp_int.h"

#include <stdio.h>

const struct version versions[VERSION_COUNT + 1] = {
    {"2026-07-28",                                  ERA_MODERN, HAS_ANNOTATIONS | HAS_STRUCTURED | HAS_ICONS},
    {"2025-11-25", ERA_LEGACY, HAS_ANNOTATIONS | HAS_STRUCTURED | HAS_ICONS},
    {"2025-06-18",                                  ERA_LEGACY, HAS_ANNOTATIONS | HAS_STRUCTURED},
    {"2025-03-26", ERA_LEGACY, HAS_ANNOTATIONS | HAS_BATCH},
    {"2024-11-05",                                  ERA_LEGACY, HAS_STDIO_ONLY},
    {0            },
};

const struct version *version_find(struct str name)
{
    for (const struct version *v = versions; v->name; v++)
        if (str_is(name, v->name))
            return v;
    return NULL;
}

const struct version *version_newest(enum era era)
{
    const struct version *v = versions;

    while (v->era != era)
        v++;
    return v;
}

json_t *versions_list(void)
{
    json_t *list = json_array();

    for (const struct version *v = versions; v->name; v++)
        if (!(v->has & HAS_STDIO_ONLY))
            json_array_append_new(list, json_string(v->name));
    return list;
}

void client_done(struct client *c)
{
    json_decref(take_ptr(&c->capabilities));
}

void client_copy(struct client *ret, const struct client *c)
{
    *ret = *c;
    json_incref(ret->capabilities);
}
