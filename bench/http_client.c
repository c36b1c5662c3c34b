/*
 * bench-http: many HTTP clients under one stopwatch. One thread and one epoll for
 * all of them, so that asking costs little beside answering; how much it did cost
 * is in the answer. Does what over_http.py asks: one JSON request a line on stdin,
 * one answer a line on stdout.
 *
 *   {"do": "visit", "clients": 8, "n": 1000, "repeat": 1, "keep": false, "until": 1,
 *    "steps": [{"method": "POST", "path": "/v1/sessions", "body": "{}", "status": 201,
 *               "takes": true},
 *              {"method": "POST", "path": "/v1/sessions/{id}/execute", "body": "...",
 *               "status": 200, "expect": "499.5"}]}
 * makes n visits over that many kept connections. A visit takes the steps in order;
 * those with "takes" tell the id that stands for {id} from then on, the others are
 * done repeat times over. keep: the ids are remembered. A step may have "headers", lines
 * with their ends.
 *
 *   {"do": "again", ...}    one visit for each id remembered
 *   {"do": "forget"}        remembers none
 *
 * The answer: {"ok": 1000, "failed": 0, "why": "", "took_us": ..., "cpu_us": ... (our own),
 * "steps": [[...], ...] (per step, from its first byte out to its last byte in),
 * "visit_us": [...] (from a visit's begin to the end of step "until")}.
 *
 * End of file on stdin ends it.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <jansson.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define STEPS_MAX   8
#define CLIENTS_MAX 2048
#define IDS_MAX     8192
#define ID_SIZE     64
#define HEAD_MAX    1024
#define ANSWER_MAX  (1 << 20)

struct step {
    const char *method, *path, *headers, *body, *expect; /* borrowed from the request */
    size_t body_n;
    int status;
    bool takes;
    json_t *us; /* borrowed: in the answer */
};

struct client {
    int fd;
    char id[ID_SIZE];
    unsigned step, round;
    double visit_begun, step_begun;
    char *out; /* owned: a request */
    size_t out_n, out_at;
    char *in; /* owned: ANSWER_MAX bytes */
    size_t in_n;
};

struct job {
    struct step steps[STEPS_MAX];
    unsigned step_count, n, repeat, until;
    bool keep, again;
    unsigned started, ok, failed;
    json_t *visit_us; /* borrowed: in the answer */
    char why[400];    /* of the first failure */
};

static struct client clients[CLIENTS_MAX];
static unsigned client_count, busy;
static char ids[IDS_MAX][ID_SIZE];
static unsigned id_count;
static struct job job;
static struct sockaddr_in server;
static int poll_fd;

static double now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static double cpu_us(void)
{
    struct rusage ru;

    getrusage(RUSAGE_SELF, &ru);
    return (double)(ru.ru_utime.tv_sec + ru.ru_stime.tv_sec) * 1e6 +
           (double)(ru.ru_utime.tv_usec + ru.ru_stime.tv_usec);
}

/* --- connections --- */

static void hang_up(struct client *c)
{
    if (c->fd >= 0)
        close(c->fd);
    c->fd = -1;
}

static bool dial(struct client *c)
{
    struct epoll_event ev = {.events = EPOLLIN, .data.ptr = c};
    int one = 1;

    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (c->fd < 0 || connect(c->fd, (struct sockaddr *)&server, sizeof(server)) < 0 ||
        setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) < 0 ||
        epoll_ctl(poll_fd, EPOLL_CTL_ADD, c->fd, &ev) < 0) {
        hang_up(c);
        return false;
    }
    return true;
}

static bool dial_all(unsigned count)
{
    while (client_count > count)
        hang_up(&clients[--client_count]);
    for (unsigned i = 0; i < count; i++) {
        struct client *c = &clients[i];
        if (!c->in)
            c->in = malloc(ANSWER_MAX);
        if (i >= client_count)
            c->fd = -1;
        if (c->fd < 0 && !dial(c))
            return false;
        client_count = i >= client_count ? i + 1 : client_count;
    }
    return true;
}

/* --- one visit --- */

static void begin_visit(struct client *c);

static void fail(struct client *c, const char *what)
{
    if (!*job.why)
        snprintf(job.why, sizeof(job.why), "step %u: %s: %.250s", c->step, what,
                 c->in_n ? c->in : "");
    job.failed++;
    busy--;
    hang_up(c);
    if (dial(c))
        begin_visit(c);
}

/* Writes what is left; the sockets block, and requests are small. */
static void send_step(struct client *c)
{
    struct step *s = &job.steps[c->step];
    const char *mark = strstr(s->path, "{id}");
    size_t room = HEAD_MAX + s->body_n;
    int n;

    c->out = realloc(c->out, room);
    n = snprintf(c->out, room,
                 "%s %.*s%s%s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                 "%sContent-Length: %zu\r\n\r\n",
                 s->method, mark ? (int)(mark - s->path) : (int)strlen(s->path), s->path,
                 mark ? c->id : "", mark ? mark + 4 : "", s->headers, s->body_n);
    memcpy(c->out + n, s->body, s->body_n);
    c->out_n = (size_t)n + s->body_n;
    c->in_n = 0;
    c->step_begun = now_us();
    for (size_t at = 0; at < c->out_n;) {
        ssize_t put = send(c->fd, c->out + at, c->out_n - at, MSG_NOSIGNAL);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0) {
            fail(c, strerror(errno));
            return;
        }
        at += (size_t)put;
    }
}

static void begin_visit(struct client *c)
{
    if (job.started == job.n)
        return;
    if (job.again)
        memcpy(c->id, ids[job.started], ID_SIZE);
    else
        c->id[0] = '\0';
    job.started++;
    busy++;
    c->step = c->round = 0;
    c->visit_begun = now_us();
    send_step(c);
}

static void end_visit(struct client *c)
{
    if (job.keep && !job.again && id_count < IDS_MAX)
        memcpy(ids[id_count++], c->id, ID_SIZE);
    job.ok++;
    busy--;
    begin_visit(c);
}

/* The steps that take an id are done once, the rest over and over. */
static void next_step(struct client *c)
{
    unsigned first = 0;

    while (first < job.step_count && job.steps[first].takes)
        first++;
    c->step++;
    if (c->step == job.step_count && ++c->round < job.repeat && first < job.step_count)
        c->step = first;
    if (c->step == job.step_count)
        end_visit(c);
    else
        send_step(c);
}

/* --- answers --- */

static bool take_id(struct client *c, const char *body)
{
    const char *at = strstr(body, "\"id\":\"");
    size_t n = at ? strcspn(at + 6, "\"") : 0;

    if (n == 0 || n >= ID_SIZE)
        return false;
    memcpy(c->id, at + 6, n);
    c->id[n] = '\0';
    return true;
}

static void on_answer(struct client *c, const char *body)
{
    struct step *s = &job.steps[c->step];
    double now = now_us();

    json_array_append_new(s->us, json_real(now - c->step_begun));
    if (c->step == job.until && c->round == 0)
        json_array_append_new(job.visit_us, json_real(now - c->visit_begun));
    if (atoi(c->in + 9) != s->status)
        fail(c, "another status");
    else if (s->expect && !strstr(body, s->expect))
        fail(c, "not what was expected");
    else if (s->takes && !take_id(c, body))
        fail(c, "no id");
    else
        next_step(c);
}

/* True when the answer is whole. All that is asked here has a Content-Length, or no body. */
static bool is_whole(const struct client *c, const char **ret_body)
{
    const char *end = strstr(c->in, "\r\n\r\n"), *length;

    if (!end)
        return false;
    length = strcasestr(c->in, "\r\nContent-Length:");
    *ret_body = end + 4;
    return !length || length > end ||
           c->in_n >= (size_t)(end + 4 - c->in) + strtoul(length + 17, NULL, 10);
}

static void on_readable(struct client *c)
{
    ssize_t n = recv(c->fd, c->in + c->in_n, ANSWER_MAX - 1 - c->in_n, 0);
    const char *body;

    if (n <= 0) {
        fail(c, n < 0 ? strerror(errno) : "the connection was closed");
        return;
    }
    c->in_n += (size_t)n;
    c->in[c->in_n] = '\0';
    if (is_whole(c, &body))
        on_answer(c, body);
    else if (c->in_n == ANSWER_MAX - 1)
        fail(c, "the answer is too long");
}

/* --- requests --- */

static unsigned get_num(json_t *request, const char *name, unsigned unset)
{
    json_t *v = json_object_get(request, name);

    return v ? (unsigned)json_integer_value(v) : unset;
}

static bool get_steps(json_t *list, json_t *per_step)
{
    json_t *row;
    size_t i;

    json_array_foreach(list, i, row) {
        struct step *s = &job.steps[i];
        const char *body = json_string_value(json_object_get(row, "body"));
        const char *headers = json_string_value(json_object_get(row, "headers"));
        if (i == STEPS_MAX)
            return false;
        json_array_append_new(per_step, json_array());
        *s = (struct step){
            .method = json_string_value(json_object_get(row, "method")),
            .path = json_string_value(json_object_get(row, "path")),
            .headers = headers ? headers : "",
            .body = body ? body : "",
            .body_n = body ? strlen(body) : 0,
            .expect = json_string_value(json_object_get(row, "expect")),
            .status = (int)get_num(row, "status", 200),
            .takes = json_is_true(json_object_get(row, "takes")),
            .us = json_array_get(per_step, i),
        };
        if (!s->method || !s->path || strlen(s->path) + strlen(s->headers) > HEAD_MAX / 2)
            return false;
        job.step_count++;
    }
    return job.step_count > 0;
}

static void say(json_t *answer)
{
    char *text = json_dumps(answer, JSON_COMPACT | JSON_REAL_PRECISION(9));

    puts(text);
    fflush(stdout);
    free(text);
}

static void run_job(unsigned width)
{
    struct epoll_event events[64];

    for (unsigned i = 0; i < width; i++)
        begin_visit(&clients[i]);
    while (busy > 0) {
        int n = epoll_wait(poll_fd, events, 64, 60000);
        if (n == 0) {
            snprintf(job.why, sizeof(job.why), "no answer for a minute");
            job.failed += busy;
            busy = 0;
            for (unsigned i = 0; i < client_count; i++)
                hang_up(&clients[i]);
        }
        for (int i = 0; i < n; i++)
            on_readable(events[i].data.ptr);
    }
}

static void do_visit(json_t *request, bool again)
{
    json_t *answer = json_object(), *per_step = json_array();
    unsigned width = get_num(request, "clients", 1);
    double begun, cpu = cpu_us();

    job = (struct job){
        .n = again ? id_count : get_num(request, "n", 1),
        .repeat = get_num(request, "repeat", 1),
        .keep = json_is_true(json_object_get(request, "keep")),
        .again = again,
        .visit_us = json_array(),
    };
    json_object_set_new(answer, "steps", per_step);
    json_object_set_new(answer, "visit_us", job.visit_us);
    width = width > job.n ? job.n : width > CLIENTS_MAX ? CLIENTS_MAX : width;
    if (!get_steps(json_object_get(request, "steps"), per_step) || !dial_all(width)) {
        snprintf(job.why, sizeof(job.why), "malformed steps, or nobody listens");
        job.failed = 1;
        width = 0;
    }
    job.until = get_num(request, "until", job.step_count ? job.step_count - 1 : 0);
    begun = now_us();
    run_job(width);
    json_object_set_new(answer, "took_us", json_real(now_us() - begun));
    json_object_set_new(answer, "cpu_us", json_real(cpu_us() - cpu));
    json_object_set_new(answer, "ok", json_integer(job.ok));
    json_object_set_new(answer, "failed", json_integer(job.failed));
    json_object_set_new(answer, "why", json_string(job.why));
    say(answer);
    json_decref(answer);
}

static void on_request(json_t *request)
{
    const char *what = json_string_value(json_object_get(request, "do"));
    json_t *answer;

    if (what && strcmp(what, "visit") == 0) {
        do_visit(request, false);
    } else if (what && strcmp(what, "again") == 0) {
        do_visit(request, true);
    } else {
        id_count = 0;
        answer = json_pack("{s:i, s:i, s:s}", "ok", 0, "failed", 0, "why", "");
        say(answer);
        json_decref(answer);
    }
}

int main(int argc, char **argv)
{
    char *line = NULL;
    size_t size = 0;

    if (argc != 2) {
        fprintf(stderr, "usage: bench-http PORT\n");
        return 2;
    }
    server = (struct sockaddr_in){.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)atoi(argv[1])),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    poll_fd = epoll_create1(EPOLL_CLOEXEC);
    while (getline(&line, &size, stdin) > 0) {
        json_t *request = json_loads(line, 0, NULL);
        on_request(request);
        json_decref(request);
    }
    free(line);
    for (unsigned i = 0; i < CLIENTS_MAX; i++) {
        free(clients[i].in);
        free(clients[i].out);
    }
    return 0;
}
