/*
 * One connection of a guest, from accept to its end. A connection has one timer, whose meaning
 * depends on the state:
 *
 *   head -> lookup -> dial -> relay -> linger
 *
 * An error before relay is answered with a status and a sentence, and leads to linger as well. In
 * linger everything is said, and what still arrives is read and dropped: TCP would drop our answer
 * if we closed with bytes unread.
 */
#include "egress/egress_int.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define HEAD_MS    10000
#define LOOKUP_MS  20000
#define DIAL_MS    10000 /* for one address ... */
#define DIALS_MAX  3     /* ... and so half a minute for all */
#define IDLE_MS    60000
#define LINGER_MS  2000
#define LINGER_MAX (1 * MiB)

enum conn_state { CONN_HEAD, CONN_LOOKUP, CONN_DIAL, CONN_RELAY, CONN_LINGER };

static const char *const state_name[] = {"head", "lookup", "dial", "relay", "linger"};
static const unsigned edges[] = {
    [CONN_HEAD] = IN(CONN_LOOKUP) | IN(CONN_DIAL) | IN(CONN_LINGER),
    [CONN_LOOKUP] = IN(CONN_DIAL) | IN(CONN_LINGER),
    [CONN_DIAL] = IN(CONN_RELAY) | IN(CONN_LINGER),
    [CONN_RELAY] = IN(CONN_LINGER),
    [CONN_LINGER] = 0,
};

struct conn {
    struct conn *next, **link; /* in egress.conns */
    struct egress *egress;     /* borrowed */
    enum conn_state state;
    int guest, host;        /* owned */
    struct watch *watch;    /* owned: of guest in head and linger, of host in dial */
    struct timer *timer;    /* owned */
    struct resolve *lookup; /* owned */
    struct relay *up, *down;
    struct buf in;  /* what the guest has sent before relay */
    struct buf out; /* what the host gets first */
    struct egress_request request;
    struct body body;
    struct resolved found;
    size_t next_address, dials;
    bool refused;     /* an address was */
    bool asked;       /* there is something to log */
    int status;       /* of our own answer; 0: none */
    uint64_t early;   /* bytes of a body or tunnel that came with the head */
    uint64_t drained; /* in linger */
};

static void dial(struct conn *c);

static void conn_go(struct conn *c, enum conn_state to, uint64_t ms)
{
    assert(edges[c->state] & IN(to));
    log_debug("egress %d: %s -> %s", c->guest, state_name[c->state], state_name[to]);
    c->state = to;
    watch_free(c->watch);
    c->watch = NULL;
    timer_set(c->timer, ms);
}

/* --- the end --- */

/* The host's own status, from the first bytes of its answer: "HTTP/1.1 200". */
static int host_status(const struct conn *c)
{
    struct str s = c->down ? relay_begin(c->down) : (struct str){0};
    int status = 0;

    if (s.n < 12 || memcmp(s.p, "HTTP/1.", 7) != 0 || s.p[8] != ' ')
        return 0;
    for (size_t i = 9; i < 12; i++) {
        if (s.p[i] < '0' || s.p[i] > '9')
            return 0;
        status = status * 10 + (s.p[i] - '0');
    }
    return status;
}

/* Once a request, when the last byte of it is under way. */
static void tell(struct conn *c)
{
    int status = c->status ? c->status : host_status(c);
    char line[HOST_NAME_MAX_BYTES + 128], number[16] = "-", where[HOST_NAME_MAX_BYTES + 16] = "-";

    if (!c->asked || !c->egress->log)
        return;
    c->asked = false;
    if (status)
        snprintf(number, sizeof(number), "%d", status);
    if (c->request.port)
        snprintf(where, sizeof(where), "%s:%u", c->request.host_text, c->request.port);
    snprintf(line, sizeof(line), "%s %s %s up %" PRIu64 " down %" PRIu64,
             c->request.port ? c->request.method : "-", where, number,
             c->early + (c->up ? relay_bytes(c->up) : 0), c->down ? relay_bytes(c->down) : 0);
    c->egress->log(c->egress->arg, line);
}

void conn_free(struct conn *c)
{
    struct egress *g = c->egress;

    tell(c);
    resolve_cancel(c->lookup);
    relay_free(c->up);
    relay_free(c->down);
    watch_free(c->watch);
    timer_free(c->timer);
    fd_closep(&c->guest);
    fd_closep(&c->host);
    buf_done(&c->in);
    buf_done(&c->out);
    *c->link = c->next;
    if (c->next)
        c->next->link = c->link;
    free(c);
    egress_ended(g);
}

static void on_drain(void *arg)
{
    static char bytes[64 * KiB];
    struct conn *c = arg;
    ssize_t n = recv(c->guest, bytes, sizeof(bytes), MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    c->drained += n > 0 ? (uint64_t)n : 0;
    if (n <= 0 || c->drained > LINGER_MAX)
        conn_free(c);
}

static void linger(struct conn *c)
{
    tell(c);
    (void)shutdown(c->guest, SHUT_WR);
    conn_go(c, CONN_LINGER, LINGER_MS);
    c->watch = watch_new(c->egress->loop, c->guest, on_drain, c);
}

/* --- our own answers --- */

/* What libraries show of a failed CONNECT is the status line and no more, so what was not allowed
 * stands there, unless it would break the line. */
static const char *reason(int status, const char *text)
{
    static const size_t longest = 160;
    size_t n = 0;
    static const struct {
        int status;
        const char *text;
    } rows[] = {
        {400, "Bad request"                },
        {403, "Not allowed from this pool" },
        {408, "Request not sent in time"   },
        {431, "Request head too large"     },
        {502, "Host not reached"           },
        {504, "Host did not answer in time"},
    };

    while (text[n] >= ' ' && text[n] < 0x7f)
        n++;
    if (status == 403 && text[n] == '\0' && n <= longest)
        return text;
    for (size_t i = 0; i < COUNT(rows); i++)
        if (rows[i].status == status)
            return rows[i].text;
    assert(false);
    return "";
}

/* It always fits: nothing has been sent on this socket yet, and its buffer is larger. */
static void answer(struct conn *c, int status, const char *fmt, ...) PRINTF(3, 4);
static void answer(struct conn *c, int status, const char *fmt, ...)
{
    char text[768], head[512];
    struct iovec parts[2] = {
        {head, 0},
        {text, 0}
    };
    struct msghdr msg = {.msg_iov = parts, .msg_iovlen = 2};
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text) - 1, fmt, ap);
    va_end(ap);
    parts[0].iov_len =
        (size_t)snprintf(head, sizeof(head),
                         "HTTP/1.1 %d %s\r\nContent-Type: text/plain\r\nContent-Length: %zu\r\n"
                         "Connection: close\r\n\r\n",
                         status, reason(status, text), strlen(text) + 1);
    parts[1].iov_len = strlen(strcat(text, "\n")); /* NOLINT: one byte was left for it */
    c->status = status;
    c->asked = true;
    (void)sendmsg(c->guest, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
    linger(c);
}

static void answer_private(struct conn *c)
{
    answer(c, 403, "the address of %s is private, and sandboxes do not reach private addresses",
           c->request.host_text);
}

/* --- relay --- */

static void on_moved(void *arg, struct relay *r)
{
    struct conn *c = arg;
    enum relay_end up = relay_state(c->up), down = relay_state(c->down);
    bool broken = up == RELAY_BROKEN || down == RELAY_BROKEN;

    timer_set(c->timer, IDLE_MS);
    if (r == c->up && c->body.bad)
        c->status = 400; /* too late to say it to anybody but the log */
    if (broken || (c->request.connect && up == RELAY_ENDED && down == RELAY_ENDED)) {
        conn_free(c);
    } else if (!c->request.connect && down == RELAY_ENDED) {
        c->early += relay_bytes(c->up);
        relay_free(c->up); /* it watches the guest */
        c->up = NULL;
        linger(c);
    }
}

static void no_delay(int fd)
{
    int on = 1;

    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

static void start_relay(struct conn *c)
{
    static const char established[] = "HTTP/1.1 200 Connection established\r\n\r\n";
    struct loop *l = c->egress->loop;
    bool tunnel = c->request.connect;
    struct str hello = tunnel ? STR(established) : (struct str){0};

    conn_go(c, CONN_RELAY, IDLE_MS);
    if (tunnel)
        c->status = 200;
    no_delay(c->guest);
    no_delay(c->host);
    c->down = relay_new(l, c->host, c->guest, hello, NULL, on_moved, c);
    c->up =
        relay_new(l, c->guest, c->host, buf_str(&c->out), tunnel ? NULL : &c->body, on_moved, c);
    buf_done(&c->in);
    buf_done(&c->out);
    if (relay_state(c->up) == RELAY_BROKEN || relay_state(c->down) == RELAY_BROKEN)
        conn_free(c);
}

/* --- dial --- */

static void on_dialled(void *arg)
{
    struct conn *c = arg;
    int failed = 0;
    socklen_t size = sizeof(failed);

    if (getsockopt(c->host, SOL_SOCKET, SO_ERROR, &failed, &size) < 0 || failed) {
        watch_free(c->watch);
        c->watch = NULL;
        fd_closep(&c->host);
        dial(c);
        return;
    }
    start_relay(c);
}

/* True when a connection to a is on its way. */
static bool dial_one(struct conn *c, const struct sockaddr *a)
{
    socklen_t size =
        a->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);

    /* The check and the use are of the same bytes. */
    if (!policy_may_dial(c->egress->policy, &c->request.host, a)) {
        c->refused = true;
        return false;
    }
    c->dials++;
    c->host = socket(a->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (c->host >= 0 && (connect(c->host, a, size) == 0 || errno == EINPROGRESS))
        return true;
    fd_closep(&c->host);
    return false;
}

static void dial(struct conn *c)
{
    while (c->next_address < c->found.count && c->dials < DIALS_MAX) {
        struct sockaddr_storage *a = &c->found.address[c->next_address++];
        if (!dial_one(c, (struct sockaddr *)a))
            continue;
        c->watch = watch_new_writable(c->egress->loop, c->host, on_dialled, c);
        timer_set(c->timer, DIAL_MS);
        return;
    }
    if (c->dials == 0 && c->refused)
        answer_private(c);
    else
        answer(c, 502, "%s:%u could not be reached", c->request.host_text, c->request.port);
}

/* --- lookup --- */

static void on_resolved(void *arg, const struct resolved *r)
{
    struct conn *c = arg;

    c->lookup = NULL;
    c->found = *r;
    if (r->count == 0) {
        answer(c, 502, "%s is a name without an address", c->request.host_text);
        return;
    }
    conn_go(c, CONN_DIAL, DIAL_MS);
    dial(c);
}

static void set_address(struct resolved *ret, const struct in6_addr *a, uint16_t port)
{
    struct sockaddr_in *in4 = (struct sockaddr_in *)&ret->address[0];
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&ret->address[0];

    ret->count = 1;
    if (!IN6_IS_ADDR_V4MAPPED(a)) {
        *in6 = (struct sockaddr_in6){
            .sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = *a};
        return;
    }
    *in4 = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port)};
    memcpy(&in4->sin_addr, a->s6_addr + 12, 4);
}

static void find(struct conn *c)
{
    struct egress_request *r = &c->request;
    struct resolved found = {0};

    if (r->host.is_address) {
        set_address(&found, &r->host.address, r->port);
        on_resolved(c, &found);
        return;
    }
    conn_go(c, CONN_LOOKUP, LOOKUP_MS);
    c->lookup = resolve_start(c->egress->loop, c->egress, &r->host, r->port, on_resolved, c);
}

/* --- head --- */

/* What came behind the head goes along, as far as it is the request's. */
static int take_early(struct conn *c, struct str early, struct err *e)
{
    body_init(&c->body, &c->request);
    if (!c->request.connect)
        early.n = body_take(&c->body, early);
    if (c->body.bad)
        return err_set(e, ERR_CALLER, "the body is not well-formed chunks");
    c->early = early.n;
    buf_put(&c->out, early);
    return buf_check(&c->out, e);
}

static void on_request(struct conn *c, size_t head_len)
{
    struct str head = {c->in.p, head_len}, early = {c->in.p + head_len, c->in.n - head_len};
    struct egress_request *r = &c->request;
    struct err e;

    c->asked = true;
    if (request_parse(head, r, &c->out, &e) < 0) {
        *r = (struct egress_request){0};
        answer(c, 400, "%s", e.text);
    } else if (!policy_allows(c->egress->policy, &r->host, r->port)) {
        answer(c, 403, "%s:%u is not in the allow-list of this pool", r->host_text, r->port);
    } else if (take_early(c, early, &e) < 0) {
        answer(c, 400, "%s", e.text);
    } else {
        find(c);
    }
}

static void on_head(void *arg)
{
    struct conn *c = arg;
    size_t room = EGRESS_HEAD_MAX - c->in.n, head_len;
    ssize_t n = recv(c->guest, buf_room(&c->in, room), room, MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        conn_free(c);
        return;
    }
    c->in.n += (size_t)n;
    head_len = request_head_len(buf_str(&c->in));
    if (head_len > 0)
        on_request(c, head_len);
    else if (c->in.n == EGRESS_HEAD_MAX)
        answer(c, 431, "the request line and headers are larger than %zu bytes", EGRESS_HEAD_MAX);
}

static void on_timer(void *arg)
{
    struct conn *c = arg;
    const struct egress_request *r = &c->request;

    switch (c->state) {
    case CONN_HEAD:
        if (c->in.n > 0) {
            answer(c, 408, "a request has %d seconds to arrive", HEAD_MS / 1000);
            return;
        }
        break;
    case CONN_LOOKUP:
        resolve_cancel(c->lookup);
        c->lookup = NULL;
        answer(c, 504, "the address of %s could not be found in time", r->host_text);
        return;
    case CONN_DIAL:
        watch_free(c->watch);
        c->watch = NULL;
        fd_closep(&c->host);
        if (c->next_address < c->found.count && c->dials < DIALS_MAX)
            dial(c);
        else
            answer(c, 504, "%s:%u did not answer in time", r->host_text, r->port);
        return;
    case CONN_RELAY:
    case CONN_LINGER:
        break;
    }
    conn_free(c);
}

struct conn *conn_new(struct egress *g, int fd)
{
    struct conn *c = mem_zalloc(sizeof(*c));

    *c = (struct conn){.egress = g, .guest = fd, .host = -1, .next = g->conns, .link = &g->conns};
    if (c->next)
        c->next->link = &c->next;
    g->conns = c;
    buf_init(&c->in, EGRESS_HEAD_MAX);
    buf_init(&c->out, 4 * EGRESS_HEAD_MAX);
    c->timer = timer_new(g->loop, on_timer, c);
    timer_set(c->timer, HEAD_MS);
    c->watch = watch_new(g->loop, fd, on_head, c);
    return c;
}
