/*
 * The client of `retort bench`: as little as asking takes, so that what is measured is the answer.
 *
 * One thread; sockets block, and poll() says which of many has an answer. Every answer that is
 * asked for has a Content-Length or no body; one that comes in pieces is refused.
 */
#include "cli/bench_int.h"

#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define ANSWER_MAX (8 * MiB)
#define ASK_MAX    (64 * KiB)
#define PIECE      (64 * KiB)
#define WAIT_S     60

/* --- where --- */

int bench_target_url(struct bench_target *ret, const char *url, struct err *e)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
    char shown[NAME_SHOWN], host[256], *port;
    struct str rest = str_of(url), name;
    size_t n;

    name_show(shown, rest);
    if (strncasecmp(url, "http://", 7) != 0)
        return err_set(e, ERR_CALLER,
                       "--server: '%s' is not a plain address such as http://127.0.0.1:8000",
                       shown);
    rest = str_from(rest, 7);
    n = strcspn(rest.p, "/");
    name = (struct str){rest.p, n};
    rest = str_from(rest, n);
    while (rest.n > 0 && rest.p[rest.n - 1] == '/')
        rest.n--;
    if (!str_to_cstr(name, ret->host, sizeof(ret->host)) ||
        !str_to_cstr(rest, ret->prefix, sizeof(ret->prefix)))
        return err_set(e, ERR_CALLER, "--server: the address is too long");
    snprintf(host, sizeof(host), "%s", ret->host);
    port = strrchr(host, ':');
    if (port && !strchr(port, ']'))
        *port++ = '\0';
    else
        port = NULL;
    n = strlen(host);
    if (host[0] == '[' && host[n - 1] == ']') {
        host[n - 1] = '\0';
        memmove(host, host + 1, n - 1);
    }
    if (getaddrinfo(host, port ? port : "80", &hints, &found) != 0 || !found)
        return err_set(e, ERR_CALLER, "--server: there is no host '%s'", shown);
    assert(found->ai_addrlen <= sizeof(ret->at));
    memcpy(&ret->at, found->ai_addr, found->ai_addrlen);
    ret->at_n = found->ai_addrlen;
    freeaddrinfo(found);
    return 0;
}

int bench_target_unix(struct bench_target *ret, const char *path, struct err *e)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};

    if (!str_to_cstr(str_of(path), at.sun_path, sizeof(at.sun_path)))
        return err_set(e, ERR_CALLER,
                       "the path of the socket is too long: set TMPDIR to a shorter one");
    snprintf(ret->host, sizeof(ret->host), "localhost");
    memcpy(&ret->at, &at, sizeof(at));
    ret->at_n = sizeof(at);
    return 0;
}

/* --- one connection --- */

void bench_conn_init(struct bench_conn *c, const struct bench_target *to)
{
    *c = (struct bench_conn){.to = to, .fd = -1, .out = BUF(ASK_MAX), .in = BUF(ANSWER_MAX)};
}

void bench_conn_done(struct bench_conn *c)
{
    fd_closep(&c->fd);
    buf_done(&c->out);
    buf_done(&c->in);
}

static int dial(struct bench_conn *c, struct err *e)
{
    const struct sockaddr *at = (const struct sockaddr *)&c->to->at;
    struct timeval patience = {.tv_sec = WAIT_S};
    int one = 1;

    c->fd = socket(at->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (c->fd < 0 || setsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) < 0 ||
        (at->sa_family != AF_UNIX &&
         setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) < 0))
        return err_sys(e, "make a socket");
    if (connect(c->fd, at, c->to->at_n) == 0)
        return 0;
    fd_closep(&c->fd);
    return err_sys(e, "cannot reach the server at %s", c->to->host);
}

static int cut_off(struct bench_conn *c, const char *doing, struct err *e)
{
    if (errno == EINTR && bench_stopped)
        err_set(e, ERR_CALLER, "interrupted");
    else if (errno == EAGAIN)
        err_set(e, ERR_HOST, "the server at %s gave no answer for %d s", c->to->host, WAIT_S);
    else
        err_sys(e, "%s the server at %s", doing, c->to->host);
    fd_closep(&c->fd);
    return -1;
}

static int begin(struct bench_conn *c, const char *method, const char *path, struct str body,
                 struct err *e)
{
    const struct bench_target *to = c->to;
    size_t sent = 0;

    buf_clear(&c->out);
    buf_clear(&c->in);
    buf_printf(&c->out, "%s %s%s HTTP/1.1\r\nHost: %s\r\n%s%s%sContent-Type: application/json\r\n",
               method, to->prefix, path, to->host, *to->key ? "X-Api-Key: " : "", to->key,
               *to->key ? "\r\n" : "");
    buf_printf(&c->out, "Content-Length: %zu\r\n\r\n", body.n);
    buf_put(&c->out, body);
    if (buf_check(&c->out, e) < 0 || (c->fd < 0 && dial(c, e) < 0))
        return -1;
    c->begun_us = bench_now_us();
    while (sent < c->out.n) {
        ssize_t n = send(c->fd, c->out.p + sent, c->out.n - sent, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR && !bench_stopped)
            continue;
        if (n < 0)
            return cut_off(c, "send to", e);
        sent += (size_t)n;
    }
    return 0;
}

/* The length of the whole answer; 0: its head is not there yet. -1: it comes in pieces. */
static ssize_t length_of(const struct bench_conn *c, size_t *ret_head)
{
    const char *end = memmem(c->in.p, c->in.n, "\r\n\r\n", 4);
    size_t body = 0;

    if (!end)
        return 0;
    *ret_head = (size_t)(end + 4 - c->in.p);
    for (const char *line = c->in.p; line < end; line++) {
        if (strncasecmp(line, "\r\nContent-Length:", 17) == 0)
            body = strtoul(line + 17, NULL, 10);
        if (strncasecmp(line, "\r\nTransfer-Encoding:", 20) == 0)
            return -1;
    }
    return (ssize_t)(*ret_head + body);
}

/* One recv(). 1: the answer is whole, 0: more has to come. */
static int take(struct bench_conn *c, struct bench_answer *ret, struct err *e)
{
    char *room = buf_room(&c->in, PIECE + 1);
    size_t head = 0;
    ssize_t n, whole;

    if (!room)
        return err_set(e, ERR_LIMIT, "an answer of the server is too long");
    do
        n = recv(c->fd, room, PIECE, 0);
    while (n < 0 && errno == EINTR && !bench_stopped);
    if (n == 0) {
        fd_closep(&c->fd);
        return err_set(e, ERR_HOST, "the server at %s closed the connection", c->to->host);
    }
    if (n < 0)
        return cut_off(c, "hear from", e);
    c->in.n += (size_t)n;
    c->in.p[c->in.n] = '\0';
    whole = length_of(c, &head);
    if (whole < 0)
        return err_set(e, ERR_HOST,
                       "the answers at %s come in pieces: name the server itself, not a proxy",
                       c->to->host);
    if (whole == 0 || c->in.n < (size_t)whole)
        return 0;
    *ret = (struct bench_answer){
        .status = c->in.n > 12 ? (int)strtol(c->in.p + 9, NULL, 10) : 0,
        .body = {c->in.p + head, c->in.n - head},
        .us = bench_now_us() - c->begun_us,
    };
    return 1;
}

int bench_ask(struct bench_conn *c, const char *method, const char *path, struct str body,
              struct bench_answer *ret, struct err *e)
{
    int got = 0;

    if (begin(c, method, path, body, e) < 0)
        return -1;
    while (got == 0)
        got = take(c, ret, e);
    return got < 0 ? -1 : 0;
}

/* --- many at a time --- */

static int ask_again(struct bench_asker *a, struct str body, struct err *e)
{
    a->asks = begin(&a->conn, "POST", a->path, body, e) == 0;
    return a->asks ? 0 : -1;
}

long bench_ask_all(struct bench_asker *askers, size_t n, struct str body, double us,
                   bool (*good)(const struct bench_answer *a), double *ret_us, struct err *e)
{
    AUTO_FREE struct pollfd *fds = mem_zalloc(n * sizeof(*fds));
    double begun = bench_now_us();
    size_t open = n;
    long count = 0;

    for (size_t i = 0; i < n; i++)
        if (ask_again(&askers[i], body, e) < 0)
            return -1;
    while (open > 0) {
        for (size_t i = 0; i < n; i++)
            fds[i] =
                (struct pollfd){.fd = askers[i].asks ? askers[i].conn.fd : -1, .events = POLLIN};
        if (poll(fds, n, WAIT_S * 1000) <= 0)
            return bench_stopped ? err_set(e, ERR_CALLER, "interrupted")
                                 : err_set(e, ERR_HOST, "no answer for %d s", WAIT_S);
        for (size_t i = 0; i < n; i++) {
            struct bench_answer answer = {0};
            int got = fds[i].revents ? take(&askers[i].conn, &answer, e) : 0;
            if (got < 0)
                return -1;
            if (got == 0)
                continue;
            if (!good(&answer))
                return err_set(e, ERR_HOST, "one of %zu clients at once got: %.200s", n,
                               answer.body.p);
            count++;
            askers[i].asks = false;
            open--;
            if (bench_now_us() - begun >= us)
                continue;
            if (ask_again(&askers[i], body, e) < 0)
                return -1;
            open++;
        }
    }
    *ret_us = bench_now_us() - begun;
    return count;
}
