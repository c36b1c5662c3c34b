/*
 * azure: dynamic sessions of Azure Container Apps, as their clients know them. The data
 * plane in all its dialects, the resource of a session pool, and its MCP server.
 *
 * Touches: requests through http, the service, calls of the mcp room. Never touches:
 * sockets, the store, rules; a pool of theirs is a pool of ours, an identifier is the
 * name of a session in it.
 *
 * azure_door and these functions are a row of cli/doors.c. Everything below /azure/pools/{pool} and
 * below /subscriptions/{s}/resourceGroups/{g}/.../sessionPools/{pool} is the same.
 * routes.c finds what is meant, and each of the other files answers some of it.
 */
#pragma once

#include "doors/http/http.h"
#include "doors/mcp/mcp.h"

struct azure;
struct tool_set;

struct azure *azure_new(struct mcp *m, struct loop *l); /* borrowed, outlive us */
void azure_free(void *room);                            /* after the last request */
/* The tools of a pool's MCP server, for a server of their own: they run in the first pool. */
const struct tool_set *azure_tool_set(void *room);
extern const struct door azure_door;
