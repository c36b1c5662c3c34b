/* Private to the room: hosts, policies, requests, relays and connections. */
#pragma once

#include "egress/egress.h"

#include "fetch/fetch.h"
#include "loop/loop.h"

#define EGRESS_CONNS_MAX 64
#define EGRESS_HEAD_MAX  (16 * KiB)
#define EGRESS_METHOD    16 /* bytes of the longest method, with its NUL */

/* --- policy.c --- */

bool policy_allows(const struct egress_policy *p, const struct host *h, uint16_t port);
/* h is what the guest asked for, a what it turned out to be. */
bool policy_may_dial(const struct egress_policy *p, const struct host *h, const struct sockaddr *a);

/* --- request.c: the head of a request, of which every byte is hostile --- */

enum request_body { BODY_NONE, BODY_LENGTH, BODY_CHUNKED };

struct egress_request {
    char method[EGRESS_METHOD];
    bool connect;
    struct host host;
    char host_text[HOST_NAME_MAX_BYTES + 3]; /* for people and for Host: IPv6 in brackets */
    uint16_t port;
    enum request_body body;
    uint64_t length; /* BODY_LENGTH */
};

/* The length of the head at the start of s with the empty line that ends it; 0 while it is not
 * there. */
size_t request_head_len(struct str s);
/* head: as request_head_len() measured it. For anything but CONNECT, out gets the head that is for
 * the host. ERR_CALLER says in a sentence what is wrong. */
int request_parse(struct str head, struct egress_request *ret, struct buf *out,
                  struct err *e) MUST_CHECK;

/* --- body.c: where a request ends --- */

struct body {
    enum request_body kind;
    uint64_t left; /* of the length, or of the chunk */
    unsigned state, digits;
    bool done, bad;
};

void body_init(struct body *b, const struct egress_request *r);
/* How many bytes at the start of s are the request's: all of them, unless it ends or is bad. */
size_t body_take(struct body *b, struct str s);

/* --- resolve.c --- */

#define RESOLVE_MAX 8 /* addresses that are tried */

struct resolved {
    struct sockaddr_storage address[RESOLVE_MAX];
    size_t count;
};

struct resolve;
/* who: a number of lookups at a time for each of these, and for all of them together. */
typedef void resolve_fn(void *arg, const struct resolved *r);
struct resolve *resolve_start(struct loop *l, const void *who, const struct host *h, uint16_t port,
                              resolve_fn *fn, void *arg);
void resolve_cancel(struct resolve *r); /* fn is not called */

/* --- relay.c: bytes from one socket to another, no more in memory than one read --- */

enum relay_end { RELAY_GOES_ON, RELAY_ENDED, RELAY_BROKEN };

struct relay;
/* Called whenever something was moved or has ended. May free the relay. */
typedef void relay_fn(void *arg, struct relay *r);

/* Between two fds that outlive it. first: bytes that go before anything is read; copied. body:
 * NULL, or what says which bytes are passed on; it ends where the body does. The watch of from is
 * made here: nobody else may watch that fd meanwhile. */
struct relay *relay_new(struct loop *l, int from, int to, struct str first, struct body *body,
                        relay_fn *fn, void *arg);
void relay_free(struct relay *r);
enum relay_end relay_state(const struct relay *r);
uint64_t relay_bytes(const struct relay *r); /* read from from, first not counted */
/* The first bytes that were read, at most 12. */
struct str relay_begin(const struct relay *r);

/* --- conn.c --- */

struct conn;
struct conn *conn_new(struct egress *g, int fd); /* takes the fd */
void conn_free(struct conn *c);                  /* tells the log */

struct egress {
    struct loop *loop;                  /* borrowed */
    const struct egress_policy *policy; /* borrowed */
    int listener;                       /* owned */
    struct watch *watch;                /* owned */
    struct timer *pace;                 /* owned */
    unsigned accepted;                  /* since the timer was set */
    egress_log_fn *log;
    void *arg;
    struct conn *conns; /* owned */
    unsigned count;
    bool held; /* the watch is paused */
};

void egress_ended(struct egress *g); /* one connection less */
