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
struct face;
struct tool;

#define MCP_SECRET_BYTES 32

struct mcp_config {
    struct loop *loop; /* borrowed */
    /* The service, made when the first tool needs it. NULL with *e when it cannot be made. */
    struct service *(*service)(void *arg, struct err *e);
    void *arg;
    /* Signs what clients hand back to us. All zero: made anew, and forgotten with us. */
    uint8_t secret[MCP_SECRET_BYTES];
    uint64_t answer_ms; /* code that runs longer is answered for with what there is; 0: 50 s */
    bool outside;  /* code may reach the network: what runs it is said to be open to the world */
    bool fixtures; /* the tools of the conformance suite */
    /* Over HTTP: how clients reach us, and who gives them tokens, comma-separated; borrowed. NULL:
     * nobody does. */
    const char *public_url, *oauth_servers;
    const struct face *face;   /* what is shown; NULL: the tools of our own; borrowed */
    const struct tool *thinks; /* beside our own: one that needs a model; or NULL; borrowed */
    void *thinks_ctx;          /* borrowed: what it works with */
    bool has_model;            /* it has one without asking the client for its own */
    const char *paths[2];      /* over HTTP: where; NULL, NULL: "/mcp"; borrowed */
};

struct mcp *mcp_new(const struct mcp_config *config);
/* No more changes to hear of: the streams that would stay open for them end. */
void mcp_drain(struct mcp *m);
void mcp_free(struct mcp *m); /* before the service; calls under way are dropped */
/* From now on subscribers hear what changes in the service. Done by itself when a call makes it. */
void mcp_follow(struct mcp *m, struct service *sv);

/* At its paths; outlived by m. */
void mcp_door_init(struct door *ret, struct mcp *m);
/* Speaks on two fds, which stay the caller's, until in is at its end; then calls on_end. */
void mcp_stdio(struct mcp *m, int in, int out, loop_fn *on_end, void *arg);
