/* Where the server can be reached: addresses as people write them, and sockets. */
#pragma once

#include "cli/cli.h"

#include <sys/socket.h>
#include <sys/un.h>

struct address {
    union {
        struct sockaddr any;
        struct sockaddr_un un;
        struct sockaddr_storage room;
    } at;
    socklen_t size;
};

/* "8000", "127.0.0.1:8000", "[::1]:8000", "localhost:8000", "unix:/run/retort.sock". */
int address_parse(const char *text, struct address *ret, struct err *e) MUST_CHECK;
/* Nobody but this machine reaches it. */
bool address_is_local(const struct address *a);

struct listener {
    int fd;   /* owned */
    int lock; /* owned; of a Unix socket of ours, else -1 */
    bool local;
    bool inherited;
    struct address address; /* as bound: the port is never 0 */
};

struct listeners {
    struct listener *item; /* owned */
    size_t count;
};

/* What the service manager handed over, or else one socket for each address of the settings, which
 * is bound. */
int listeners_open(struct listeners *ret, const struct settings *s, struct err *e) MUST_CHECK;
/* When the server can answer: until then a balancer is refused, and goes to another node. */
int listener_begin(struct listener *l, struct err *e) MUST_CHECK;
void listeners_done(struct listeners *ls); /* removes Unix sockets that it may remove */
/* "http://127.0.0.1:8000", "unix:/run/retort.sock". */
#define ADDRESS_SHOWN 192
void listener_show(const struct listener *l, bool tls, char ret[ADDRESS_SHOWN]);

/* --- the service manager (systemd), if there is one --- */

/* Connected now, because later we may be somebody else. -1 where nobody wants to know. */
int notify_open(void);
void notify_say(int fd, const char *text); /* "READY=1" */
/* Sockets that were handed over as fds 3 and up; 0 when there are none. Once only. */
int activation_count(void);
