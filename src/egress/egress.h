/*
 * egress: the one way out of a sandbox, for pools that have one. An HTTP proxy on
 * the sandbox's own loopback, served from outside the box.
 *
 * Touches: listening sockets that a sandbox's init made before any code ran there,
 * the network, name resolution. Never touches: workspaces, the store.
 *
 * A pool has an egress_policy; egress_open() serves one sandbox through its
 * listener until egress_close(). CONNECT host:port and plain GET http://... are
 * both checked against the allow-list by name; the name is resolved once, and the
 * address dialled must be public. Every request is told to the log function.
 *
 * Promised: no connection to a host, port or address that the policy does not
 * allow; of a plain request, that the host sees its own name in Host. Not
 * promised: what is said inside a CONNECT tunnel. It is TLS that we do not open,
 * so a guest may name another host of the same operator in it (domain fronting),
 * and an allowed host that forwards requests or stores data for strangers is a
 * way to everything it reaches. List hosts that are trusted to that degree.
 *
 * policy.c decides, request.c parses, body.c finds a request's end, resolve.c asks
 * for addresses, relay.c moves bytes, conn.c is one connection from accept to end,
 * egress.c the listener.
 */
#pragma once

#include "base/base.h"

struct loop;
struct egress;
struct egress_policy;

/* "pypi.org, *.pythonhosted.org, example.com:8443". Without a port: 80 and 443. "*" alone: every
 * public host. A host may be an address literal or a network; one that is private is dialled even
 * without allow_private when the guest asks for it by that address. ERR_CALLER names the word that
 * is wrong. */
struct egress_policy *egress_policy_new(const char *hosts, bool allow_private, struct err *e);
void egress_policy_free(struct egress_policy *p);

/* One line a request, when it has ended: "CONNECT pypi.org:443 200 up 517 down 20480". The status
 * is that of the answer, ours or the host's, "-" when there was none; up counts the body or tunnel
 * that was passed on, down everything the host sent. */
typedef void egress_log_fn(void *arg, const char *line);

/* Takes the listener. At most 64 connections at a time; idle ones end after a minute. The policy
 * is borrowed and outlives it. */
struct egress *egress_open(struct loop *l, const struct egress_policy *p, int listener,
                           egress_log_fn *log, void *arg);
void egress_close(struct egress *g);
