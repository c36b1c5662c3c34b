/*
 * mcp: the Model Context Protocol, in both of its eras, over HTTP and over stdin
 * and stdout. One protocol core, two transports, one file per group of tools.
 *
 * Touches: requests through http, two fds it is given, the service. Never touches:
 * sockets, the store, the engine, rules; what may be done is the service's business.
 *
 * mcp_new(), then mcp_door_init() and http_add(), or mcp_stdio(). A message goes from
 * its transport (http.c, stdio.c) to core.c, which finds the method; a handler has a
 * struct call and answers it once, now or later from the loop.
 */
#pragma once

#include "doors/http/http.h"

struct mcp;

#define MCP_SECRET_BYTES 32

struct mcp_config {
    struct loop *loop; /* borrowed */
    /* The service, made when the first tool needs it. NULL with *e when it cannot be made. */
    struct service *(*service)(void *arg, struct err *e);
    void *arg;
    uint8_t secret[MCP_SECRET_BYTES]; /* signs what clients hand back to us */
    bool fixtures;                    /* the tools of the conformance suite */
};

struct mcp *mcp_new(const struct mcp_config *config);
void mcp_free(struct mcp *m); /* before the service; calls under way are dropped */

/* /mcp: outlived by m. */
void mcp_door_init(struct door *ret, struct mcp *m);
/* Speaks on two fds, which stay the caller's, until in is at its end; then calls on_end. */
void mcp_stdio(struct mcp *m, int in, int out, loop_fn *on_end, void *arg);
