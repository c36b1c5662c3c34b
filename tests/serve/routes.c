/*
 * Every route of the program, on standard output: each door says its rows when it is added. Linked
 * with the program itself (--wrap=http_add), so that no door can be missing.
 */
#include "doors/azure/azure_int.h"

#include <stdio.h>

/* NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp): the linker's names */
void __real_http_add(struct http *h, const struct door *d);
void __wrap_http_add(struct http *h, const struct door *d);

static const char *const methods[] = {"GET", "PUT", "POST", "DELETE", "PATCH"};

static void print_row(const char *door, enum http_method method, const char *path, unsigned flags)
{
    printf("route %s %s %s %s %s\n", door, methods[method], path,
           flags & (ROUTE_OPEN | ROUTE_LOCAL) ? "open" : "closed",
           flags & ROUTE_READS ? "reads" : "-");
}

#define GROUP "/subscriptions/{s}/resourceGroups/{g}"

/* Where each kind of target is. */
static const struct {
    enum target_kind kind;
    const char *path;
} places[] = {
    {TARGET_POOL,        "/azure/pools/{pool}"                                                 },
    {TARGET_POOL,        GROUP "/sessionPools/{pool}"                                          },
    {TARGET_POOL,        GROUP "/providers/Microsoft.App/sessionPools/{pool}"                  },
    {TARGET_POOLS,       "/azure/pools"                                                        },
    {TARGET_POOLS,       GROUP "/providers/Microsoft.App/sessionPools"                         },
    {TARGET_PROVIDER,    "/subscriptions/{s}/providers/Microsoft.App"                          },
    {TARGET_OPERATION,
     "/subscriptions/{s}/providers/Microsoft.App/locations/l/sessionPoolOperationStatuses/{id}"},
    {TARGET_GROUP,       GROUP                                                                 },
    {TARGET_ENVIRONMENT, GROUP "/providers/Microsoft.App/managedEnvironments/{e}"              },
    {TARGET_DEPLOYMENTS, GROUP "/providers/Microsoft.Resources/deployments"                    },
    {TARGET_DEPLOYMENT,  GROUP "/providers/Microsoft.Resources/deployments/{d}"                },
};

/* The table below the one route of this door. */
static void print_azure(void)
{
    char path[256];

    for (size_t p = 0; p < COUNT(places); p++)
        for (size_t i = 0; i < azure_op_count; i++) {
            const struct op *op = &azure_ops[i];
            if (op->of != places[p].kind)
                continue;
            snprintf(path, sizeof(path), "%s%s%s", places[p].path, *op->path ? "/" : "", op->path);
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
/* NOLINTEND(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp) */
