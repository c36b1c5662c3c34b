/*
 * Resolves names on the worker threads of the loop, which the whole process shares. A lookup may
 * take half a minute. So only LOOKUPS of them run at a time in the whole process, and one for
 * each sandbox; the rest wait here in order. The caller gives up by its own clock.
 */
#include "egress/egress_int.h"

#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>

#define LOOKUPS 2

struct resolve {
    struct resolve *next;
    struct loop *loop;
    const void *who;
    char name[HOST_NAME_MAX_BYTES + 1];
    char port[8];
    bool running;
    resolve_fn *fn; /* NULL: nobody wants to know any more */
    void *arg;
    struct resolved found;
};

/* Running and waiting ones, oldest first. The loop's thread alone touches the list. */
static struct resolve *all;

static void start_some(void);

static void drop(struct resolve *r)
{
    struct resolve **at = &all;

    while (*at && *at != r)
        at = &(*at)->next;
    assert(*at);
    *at = r->next;
    free(r);
}

/* On a worker thread. */
static void look_up(void *arg)
{
    struct resolve *r = arg;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_ADDRCONFIG | AI_NUMERICSERV};
    struct addrinfo *list = NULL;

    work_wait_begin();
    int rc = getaddrinfo(r->name, r->port, &hints, &list);
    work_wait_end();
    if (rc != 0)
        return;
    for (struct addrinfo *a = list; a && r->found.count < RESOLVE_MAX; a = a->ai_next)
        if (a->ai_addrlen <= sizeof(r->found.address[0]))
            memcpy(&r->found.address[r->found.count++], a->ai_addr, a->ai_addrlen);
    freeaddrinfo(list);
}

static void on_looked_up(void *arg)
{
    struct resolve *r = arg;

    if (r->fn)
        r->fn(r->arg, &r->found);
    drop(r);
    start_some();
}

static bool may_start(const struct resolve *r)
{
    unsigned running = 0;

    for (const struct resolve *other = all; other; other = other->next) {
        running += other->running;
        if (other->running && other->who == r->who)
            return false;
    }
    return !r->running && running < LOOKUPS;
}

static void start_some(void)
{
    for (struct resolve *r = all; r; r = r->next)
        if (may_start(r)) {
            r->running = true;
            loop_work(r->loop, look_up, on_looked_up, r);
        }
}

struct resolve *resolve_start(struct loop *l, const void *who, const struct host *h, uint16_t port,
                              resolve_fn *fn, void *arg)
{
    struct resolve *r = mem_zalloc(sizeof(*r));
    struct resolve **at = &all;

    assert(!h->is_address);
    *r = (struct resolve){.loop = l, .who = who, .fn = fn, .arg = arg};
    memcpy(r->name, h->name, sizeof(r->name));
    snprintf(r->port, sizeof(r->port), "%u", port);
    while (*at)
        at = &(*at)->next;
    *at = r;
    start_some();
    return r;
}

void resolve_cancel(struct resolve *r)
{
    if (!r)
        return;
    r->fn = NULL;
    if (!r->running)
        drop(r);
}
