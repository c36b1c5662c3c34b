/*
 * mcp: the Model Context Protocol, in both of its eras, over HTTP and over stdin
 * and stdout. One protocol core, two transports, one file per group of tools.
 *
 * Touches: requests through http, two fds it is given, the service. Never touches:
 * sockets, the store, the engine, rules; what may be done is the service's business.
 *
 * mcp_new(), then mcp_door_init() and http_add(), or mcp_stdio(). A message goes from its
 * transport (http.c, stdio.c) to core.c, which finds the method. The handler gets a struct call
 * and answers it once, at once or later from the loop. A door that offers tools includes tool.h.
 */
#pragma once

#include "doors/http/http.h"

struct mcp;
struct tool_set;
struct tool;

#define MCP_SECRET_BYTES 32

struct mcp_config {
    struct loop *loop; /* borrowed */
    /* The service, made when the first tool needs it. NULL with *e when it cannot be made. */
    struct service *(*service)(void *arg, struct err *e);
    void *arg;
    /* Signs requestState. All zero: a new secret is made, which ends with the process. */
    uint8_t secret[MCP_SECRET_BYTES];
    uint64_t answer_ms; /* a call that runs longer is answered with the output so far; 0: 50 s */
    bool outside;       /* code may reach the network: openWorldHint of tools that run it */
    /* Over HTTP: the URL of this server, and its authorisation servers, comma-separated; borrowed.
     * NULL: there are none. */
    const char *public_url, *oauth_servers;
    const struct tool_set *tool_set; /* what clients find; NULL: the native tools; borrowed */
    const struct tool *agent_tool;   /* beside the native tools: needs a model; or NULL; borrowed */
    void *agent_tool_ctx;            /* borrowed: what agent_tool works with */
    bool has_model;                  /* the server has one, so the client's is not needed */
    const char
        *folders; /* a sentence on folders of the user's that sessions see; or NULL; borrowed */
    /* Over stdin and stdout: takes the folders that a client says its user has opened, before the
     * service is made. Returns a sentence on them for the model, which lives as long as arg; or
     * NULL. NULL in place of the function: clients are not asked. */
    const char *(*take_roots)(void *arg, const char *const *paths, size_t count);
    const char *paths[2]; /* of tool_set, over HTTP; borrowed. The native tools are at /mcp */
};

struct mcp *mcp_new(const struct mcp_config *config);
/* The server is about to end: streams of changes end. */
void mcp_drain(struct mcp *m);
void mcp_free(struct mcp *m); /* before the service; calls under way are dropped */
/* Subscribers hear of changes in the service from now on. A call that needs the service does it,
 * too. */
void mcp_follow(struct mcp *m, struct service *sv);

/* Serves the paths of the config. m outlives the door. */
void mcp_door_init(struct door *ret, struct mcp *m);
/* Serves a client on two descriptors, which stay the caller's, until the end of in; then on_end. */
void mcp_stdio(struct mcp *m, int in, int out, loop_fn *on_end, void *arg);
/* An agent_tool. Its agent_tool_ctx is a struct agent_backend: agent_call.h. */
extern const struct tool tool_code_execution;
