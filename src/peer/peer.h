/*
 * peer: one request to another node of ours, streamed both ways.
 *
 * Touches: connections to the URL it is given. Never touches: what is asked and answered, who may
 * ask it.
 *
 * peers_new(), then peer_call_start(); peer_call_put() and peer_call_end_body() when there is a
 * body. The watcher hears of the head once, of the body as it comes, and of the end; it may cancel
 * the call from any of these. Another node is one of ours, but its bytes have come over a network:
 * heads have a limit, and of a body no more is in memory than PEER_WAITS and what is on its way.
 */
#pragma once

#include "base/base.h"

struct loop;
struct peers;
struct peer_call;

#define PEER_WAITS (256 * KiB) /* of one body, each way */

struct peer_watcher {
    void (*on_head)(void *arg, int status);
    void (*on_body)(void *arg, struct str bytes);
    void (*on_room)(void *arg); /* less than PEER_WAITS of the body that is sent waits again */
    /* Last; the call is gone. why: or NULL, when the answer is whole. sent: the other node may have
     * begun to work on it. */
    void (*on_end)(void *arg, const char *why, bool sent);
};

struct peer_spec {
    const char *url;    /* of the node, without a slash at its end */
    const char *target; /* "/v1/sessions?limit=1" */
    const char *method;
    const char *const *headers;       /* "name: value"; a NULL at the end */
    const char *ca_file;              /* or NULL: the system's */
    const char *cert_file, *key_file; /* both or neither: what we show it */
    bool has_body;
    uint64_t body_length; /* UINT64_MAX: not told */
};

struct peers *peers_new(struct loop *l);
void peers_free(struct peers *all); /* calls are gone, and nobody hears of that */

/* Copies what it needs. The watcher hears of the rest from the loop. */
struct peer_call *peer_call_start(struct peers *all, const struct peer_spec *spec,
                                  const struct peer_watcher *w, void *arg);
/* More of the body. False: too much waits, and on_room() will be called. */
bool peer_call_put(struct peer_call *c, struct str bytes);
void peer_call_end_body(struct peer_call *c);
/* While it is held no body comes, and no end of an answer that is whole. */
void peer_call_hold(struct peer_call *c, bool held);
void peer_call_cancel(struct peer_call *c);
/* In on_head() and afterwards: the next header, from *at NULL on; false: there is none. */
bool peer_call_header(struct peer_call *c, void **at, const char **ret_name,
                      const char **ret_value);
uint64_t peer_call_length(struct peer_call *c); /* of the answer's body; UINT64_MAX: not told */
