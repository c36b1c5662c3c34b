/* list_packages: what code finds installed. */
#include "doors/mcp/mcp_int.h"

static void run(struct call *c, json_t *args)
{
    struct service *sv = call_service(c);
    struct content t;

    (void)args;
    if (!sv)
        return;
    content_init(&t);
    for (size_t i = 0; i < service_pool_count(sv); i++) {
        struct pool_info p;
        service_pool_get(sv, i, &p);
        content_printf(&t, "%s: Python %s", p.pool->name, p.python);
    }
    content_answer(&t, c, false);
}

static const struct field params[] = {
    {"pool", FIELD_TEXT, OPTIONAL, 0, 64, NULL, "The pool to look at; without it, the default.", NULL},
    {0},
};

const struct tool tool_list_packages = {
    .name = "list_packages",
    .title = "List packages",
    .text = "Lists the Python packages that code can import, with their versions.",
    .params = params,
    .hints = TOOL_READS | TOOL_REPEATABLE,
    .run = run,
};
