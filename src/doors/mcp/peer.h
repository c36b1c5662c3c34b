/*
 * mcp/peer.h: how messages reach a call and leave it, for transports.
 *
 * A transport classifies a message with message_kind(), makes a call with call_new(), and
 * hands it to core_serve(). The answer comes back through its struct peer.
 */
#pragma once

#include "doors/mcp/tool.h"

/* --- message.c: revisions of the protocol --- */

enum era { ERA_LEGACY, ERA_MODERN };

enum version_has {
    HAS_BATCH = 1,
    HAS_ANNOTATIONS = 2, /* of tools; audio, completions */
    HAS_STRUCTURED = 4,  /* structuredContent, outputSchema, resource_link, title */
    HAS_ICONS = 8,       /* and what else came with 2025-11-25 */
    HAS_STDIO_ONLY = 16,
};

struct protocol_version {
    const char *name;
    enum era era;
    unsigned has;
};
#define VERSION_COUNT 5
extern const struct protocol_version versions[]; /* newest first; ends with a name of NULL */
const struct protocol_version *version_find(struct str name);
const struct protocol_version *version_newest(enum era era);
json_t *versions_list(void); /* owned */

/* --- peer: where the messages of a call go --- */

/*
 * The answer of one POST, standard output, or one seat of a batch. A transport embeds it. send()
 * takes a notification or a request to the client. answer() takes the response, which ends the
 * call; status is of HTTP. waits() is the number of bytes that the client has not read.
 */
struct peer {
    const struct peer_ops *ops;
};
struct peer_ops {
    void (*send)(struct peer *p, json_t *message);
    void (*answer)(struct peer *p, int status, json_t *message);
    /* The call ended without an answer: the client has cancelled it. */
    void (*drop)(struct peer *p);
    size_t (*waits)(struct peer *p);
    /* As answer(), for a response that is text already; or NULL. Takes text, malloced. */
    void (*answer_text)(struct peer *p, char *text, size_t n);
    /* Closes the connection, not the call: the client reconnects for the rest; or NULL. */
    void (*hang_up)(struct peer *p);
};

enum message_kind { MESSAGE_BAD, MESSAGE_REQUEST, MESSAGE_NOTIFICATION, MESSAGE_RESPONSE };
/* MESSAGE_BAD: *ret_why says why; answer with message_id() and RPC_INVALID. */
enum message_kind message_kind(const json_t *message, const char **ret_why);
/* An id that can be echoed, or NULL. */
const json_t *message_id(const json_t *message);

/* --- calls --- */

/* id and params are referenced, not taken. */
struct call *call_new(struct mcp *m, const struct tool_set *tool_set, struct peer *p,
                      struct conversation *v, const struct caller *who, const struct client *client,
                      const json_t *id, json_t *params);
/* The client has cancelled or disconnected. c may be gone after this. */
void call_cancel(struct call *c);
/* Runs the method, or answers that there is none. */
void core_serve(struct call *c, struct str method);
/* Responses, owned by the caller. They take result and data. id: or NULL. */
json_t *rpc_result(const json_t *id, json_t *result);
json_t *rpc_error(const json_t *id, int code, const char *message, json_t *data);
json_t *rpc_notification(const char *method, json_t *params); /* takes params */
