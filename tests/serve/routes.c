/*
 * Every route of the program, on standard output: each door says its rows when it is added. Linked
 * with the program itself (--wrap=http_add), so that no door can be missing.
 */
#include "doors/azure/azure_int.h"

#include <stdio.h>

void __real_http_add(struct http *h, const struct door *d);
void __wrap_http_add(struct http *h, const struct door *d);

static const char *const methods[] = {"GET", "PUT", "POST", "DELETE", "PATCH"};

static void print_row(const char *door, enum http_method method, const char *path, unsigned flags)
{
    printf("route %s %s %s %s %s\n", door, methods[method], path,
           flags & (ROUTE_OPEN | ROUTE_LOCAL) ? "open" : "closed",
           flags & ROUTE_READS ? "reads" : "-");
}

/* The table below the one route of this door. */
static void print_azure(void)
{
    static const char *const prefixes[] = {
        "/azure/pools/{pool}", "/subscriptions/{s}/resourceGroups/{g}/sessionPools/{pool}",
        "/subscriptions/{s}/resourceGroups/{g}/providers/Microsoft.App/sessionPools/{pool}"};
    char path[256];

    for (size_t p = 0; p < COUNT(prefixes); p++)
        for (size_t i = 0; i < azure_op_count; i++) {
            const struct op *op = &azure_ops[i];
            snprintf(path, sizeof(path), "%s/%s", prefixes[p], op->path);
            print_row(op->needs & PART_MCP ? "azure/mcp" : "azure", op->method, path,
                      op->needs & PART_MCP ? ROUTE_READS : 0);
        }
}

void __wrap_http_add(struct http *h, const struct door *d)
{
    for (size_t i = 0; i < d->route_count; i++)
        print_row(d->name, d->routes[i].method, d->routes[i].path, d->routes[i].flags);
    if (d->part)
        print_azure();
    fflush(stdout);
    __real_http_add(h, d);
}
