/* list_packages: the pools that code can run in, and the packages installed there. */
#include "doors/mcp/mcp_int.h"

#include <stdio.h>
#include <strings.h>

#define LIST_BYTES 9000
#define QUERY_MAX  64

static void put_pool(struct buf *b, const struct pool_info *p, bool is_default)
{
    const struct limits *l = &p->pool->limits;
    char memory[SIZE_SHOWN], disk[SIZE_SHOWN];

    buf_printf(b, "pool %s%s: Python %s", p->pool->name, is_default ? " (the default)" : "",
               *p->python ? p->python : "(starting)");
    if (p->pool->text)
        buf_printf(b, ", %.300s", p->pool->text);
    buf_printf(b, "\nlimits: %.10g s per run, %s memory, %s of files; network: ",
               (double)l->wall_ms / 1000, size_show(memory, l->memory_bytes),
               size_show(disk, l->disk_bytes));
    if (p->pool->egress == EGRESS_ALLOW_LIST && p->pool->egress_hosts)
        buf_printf(b, "only %.500s\n", p->pool->egress_hosts);
    else
        buf_put(b, STR("none\n"));
    if (!p->up)
        buf_printf(b, "It cannot run code now: %.300s\n", p->why ? p->why : "not ready");
}

static bool has(const char *name, const char *query)
{
    return !*query || strcasestr(name, query);
}

static void put_packages(struct buf *b, const struct pool_info *p, const char *query)
{
    const char *name;
    json_t *version;
    size_t told = 0, left = 0;

    json_object_foreach(p->packages, name, version) {
        if (!has(name, query))
            continue;
        if (b->n > LIST_BYTES) {
            left++;
            continue;
        }
        buf_printf(b, "%s%.100s %.50s", told++ ? ", " : "", name,
                   json_string_value(version) ? json_string_value(version) : "");
    }
    if (told == 0)
        buf_printf(b, *query ? "no package has \"%s\" in its name" : "no packages%s", query);
    if (left > 0)
        buf_printf(b, ", and %zu more: search for a part of a name", left);
    buf_put(b, STR("\n"));
}

static void run(struct call *c, json_t *args)
{
    struct service *sv = call_service(c);
    struct str pool = call_arg(c, "pool");
    char query[QUERY_MAX + 1] = "";
    bool found = false;
    AUTO(buf_done) struct buf b = BUF(1 * MiB);

    (void)args;
    if (!sv)
        return;
    if (!str_to_cstr(call_arg(c, "search"), query, sizeof(query)))
        query[0] = '\0';
    for (size_t i = 0; i < service_pool_count(sv); i++) {
        struct pool_info p;
        service_pool_get(sv, i, &p);
        if ((pool.n > 0 && !str_is(pool, p.pool->name)) ||
            !service_sees_pool(sv, &c->caller, p.pool->name))
            continue;
        put_pool(&b, &p, i == 0);
        if (pool.n > 0 || i == 0 || *query)
            put_packages(&b, &p, query);
        found = true;
    }
    if (found)
        tool_say(c, buf_str(&b));
    else
        tool_fail(c, "There is no pool of this name.");
}

static const struct field params[] = {
    {"pool",    FIELD_TEXT, OPTIONAL, 1, 64, NULL,
     "The environment to look at. Left out: all of them, with the packages of the default.", NULL},
    {"search", FIELD_TEXT, OPTIONAL, 1, QUERY_MAX, NULL, "Only packages with this in their name.",
     "\"torch\""},
    {0      },
};

const struct tool tool_list_packages = {
    .name = "list_packages",
    .title = "List packages",
    .text =
        "List the environments (pools) that code can run in: Python version, installed packages "
        "with versions, limits of time, memory and files, and what network there is. Look here "
        "before you try to install something: what is not listed is usually not to be had, as "
        "there is mostly no network.\n"
        "Example: {\"search\": \"sklearn\"}",
    .params = params,
    .hints = TOOL_READS | TOOL_REPEATABLE,
    .run = run,
};
