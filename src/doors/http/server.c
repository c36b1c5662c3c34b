/* The server: its doors, its listeners, its end. */
#include "doors/http/http_int.h"
#include "peer/peer.h"

#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>

#define PEM_MAX     (1 * MiB)
#define TRIM_MS     500       /* after a large request, so that a row of them pays once */
#define HEAP_ENDS   (2 * MiB) /* what a heap may keep at its end */
#define LARGE_BLOCK (1 * MiB) /* of memory: a mapping of its own, which goes when it is freed */

static char *read_pem(const char *path, struct err *e)
{
    char *text = mem_zalloc(PEM_MAX);

    if (fd_read_file_at(AT_FDCWD, path, text, PEM_MAX) > 0)
        return text;
    err_sys(e, "read '%s'", path);
    free(text);
    return NULL;
}

/* --- memory --- */

/* The many small pieces of a large body leave the heap with holes, which glibc keeps. Walking
 * through them takes milliseconds: a worker does it. */
static void trim(void *arg)
{
    (void)arg;
    malloc_trim(0);
}

static void on_trimmed(void *arg)
{
    (void)arg;
}

static void on_trim(void *arg)
{
    struct http *h = arg;

    h->trim_due = false;
    loop_work(h->loop, trim, on_trimmed, NULL);
}

void http_trim(struct http *h)
{
    if (h->freed || h->trim_due)
        return;
    h->trim_due = true;
    timer_set(h->trim, TRIM_MS);
}

/* Each thread has a heap of its own, whose end malloc_trim() leaves alone. By itself glibc takes
 * from the largest block that was ever freed how much of an end is kept: 64 MiB for each thread,
 * after one body of 16 MiB. Without fast bins what is freed joins the end at once, which can then
 * be cut; the end that malloc_trim() itself joins is not. */
static void keep_heaps_small(void)
{
    mallopt(M_MXFAST, 0);
    mallopt(M_TRIM_THRESHOLD, HEAP_ENDS);
    mallopt(M_MMAP_THRESHOLD, LARGE_BLOCK);
}

/* --- the server --- */

/* Clients and nodes are each believed by authorities of their own; the handshake names all. */
static int trust_some(struct http *h, const struct http_config *config, struct err *e)
{
    AUTO_FREE char *clients = config->tls_ca ? read_pem(config->tls_ca, e) : NULL;
    AUTO_FREE char *nodes = config->peer_cert ? read_pem(config->peer_ca, e) : NULL;

    if ((config->tls_ca && !clients) || (config->peer_cert && !nodes))
        return -1;
    if (clients && !(h->clients = trust_new(clients, "tls-client-ca", e)))
        return -1;
    if (nodes && !(h->nodes = trust_new(nodes, "node-ca", e)))
        return -1;
    if ((clients || nodes) &&
        asprintf(&h->tls_trust, "%s\n%s", clients ? clients : "", nodes ? nodes : "") < 0)
        abort();
    return 0;
}

struct http *http_new(struct loop *l, const struct http_config *config, struct err *e)
{
    struct http *h = mem_zalloc(sizeof(*h));

    keep_heaps_small();
    h->loop = l;
    h->config = *config;
    h->hosts = config->hosts ? mem_strdup(config->hosts) : NULL;
    h->origins = config->origins ? mem_strdup(config->origins) : NULL;
    if (!h->config.max_connections)
        h->config.max_connections = 10000;
    if (!h->config.header_ms)
        h->config.header_ms = 10000;
    h->tick = clock_new(h);
    h->trim = timer_new(l, on_trim, h);
    if (config->peer_secret) {
        h->peers = peers_new(l);
        service_on_dial(config->service, channel_dial, h);
    }
    signal(SIGPIPE, SIG_IGN); /* files are sent by sendfile(), which knows no MSG_NOSIGNAL */
    if (!config->tls_cert)
        return h;
    h->tls_cert = read_pem(config->tls_cert, e);
    h->tls_key = h->tls_cert ? read_pem(config->tls_key, e) : NULL;
    if (!h->tls_key || trust_some(h, config, e) < 0) {
        http_free(h);
        return NULL;
    }
    return h;
}

static bool is_open(const struct door *d)
{
    for (size_t i = 0; i < d->route_count; i++)
        if (!(d->routes[i].flags & ROUTE_OPEN))
            return false;
    return true;
}

void http_add(struct http *h, const struct door *d)
{
    struct tables *t = &h->tables;

    assert(t->count < DOORS_MAX);
    assert(is_open(d) || scope_door_known(str_of(d->name))); /* keys can be made for it */
    t->doors[t->count++] = d;
}

int http_listen(struct http *h, int fd, bool local, struct err *e)
{
    if (fd_set_nonblock(fd) < 0)
        return err_sys(e, "make the listening socket non-blocking");
    return listener_new(h, fd, local, e);
}

void http_close_listeners(struct http *h)
{
    h->closing = true;
    for (struct http_listener *li = h->listeners; li; li = li->next)
        listener_close(li);
}

bool http_is_idle(struct http *h)
{
    return h->in_hand == 0;
}

void http_counts(struct http *h, struct http_counts *ret)
{
    *ret = h->counts;
}

void http_release(struct http *h)
{
    if (!h->freed || h->requests > 0)
        return;
    peers_free(h->peers); /* the last of their requests has gone */
    free(h->hosts);
    free(h->origins);
    free(h->tls_cert);
    free(h->tls_key);
    free(h->tls_trust);
    trust_free(h->clients);
    trust_free(h->nodes);
    free(h);
}

/* The library must have nothing suspended when it stops. Handlers still hold their requests, and
 * answer them to nobody. */
void http_free(struct http *h)
{
    if (!h)
        return;
    h->freed = true;
    h->requests++; /* the last of them must not free what is being taken down */
    for (struct http_conn *c = h->conns; c; c = c->next)
        if (c->request && c->request->suspended) {
            c->request->refused = true;
            request_resume(c->request);
        }
    while (h->listeners) {
        struct http_listener *li = h->listeners;
        h->listeners = li->next;
        listener_free(li);
    }
    linger_free(h);
    timer_free(h->tick);
    timer_free(h->trim);
    h->requests--;
    http_release(h);
}
