/*
 * A server of its own for tests of the HTTP room: routes that show what arrived, and a
 * service that only knows one key. It prints its port when it listens.
 */
#include "doors/http/http.h"
#include "doors/operator/operator.h"
#include "loop/loop.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static struct {
    struct loop *loop;
    struct http *http;
    const char *key, *file;
    uint64_t blob_max, blob_ms;
    unsigned gone, kept, dropped;
} self = {.blob_max = 4 * GiB};

/* --- a service --- */

bool service_key_stands(struct service *sv, const char *tenant, const char *id)
{
    (void)sv, (void)tenant, (void)id;
    return true;
}

bool service_has_keys(struct service *sv)
{
    (void)sv;
    return self.key != NULL;
}

bool service_authorise(struct service *sv, struct str secret, bool local, struct caller *ret)
{
    (void)sv;
    *ret = (struct caller){.admin = !self.key};
    strcpy(ret->tenant, "default");
    return self.key ? str_is(secret, self.key) : local;
}

bool service_is_limited(struct service *sv, const struct caller *c)
{
    (void)sv, (void)c;
    return false;
}

int service_may(struct service *sv, const struct caller *c, const char *door, bool reads,
                struct err *e)
{
    (void)sv, (void)c, (void)door, (void)reads, (void)e;
    return 0;
}

bool scope_door_known(struct str name)
{
    (void)name;
    return true;
}

bool service_is_ready(struct service *sv, const char **ret_why)
{
    (void)sv;
    *ret_why = self.dropped ? "something was dropped" : NULL;
    return !self.dropped;
}

struct store_counts service_store_counts(struct service *sv)
{
    (void)sv;
    return (struct store_counts){0};
}

const struct service_counts *service_counts(struct service *sv)
{
    static struct service_counts counts = {
        .sessions = {0, 2, 1},
          .pool_hits = 3
    };

    (void)sv;
    if (!counts.create.count) {
        counts.create = (struct histogram){
            .bucket = {1, 2},
              .count = 3, .sum_us = 1500
        };
    }
    return &counts;
}

size_t service_pool_count(struct service *sv)
{
    (void)sv;
    return 1;
}

void service_pool_get(struct service *sv, size_t i, struct pool_info *ret)
{
    static char name[] = "da\"ta";
    static const struct service_pool pool = {.name = name};

    (void)sv, (void)i;
    *ret = (struct pool_info){.pool = &pool, .parked = 4, .live = 1, .up = true};
}

const char *session_state_name(enum session_state s)
{
    static const char *const names[] = {"starting", "idle", "running", "asleep", "ended"};

    return names[s];
}

uint64_t histogram_bound_us(size_t i)
{
    return 100ull << i;
}

const char *approval_state_name(int state)
{
    static const char *const names[APPROVAL__STATES] = {"a", "b", "c", "d", "e"};

    return names[state];
}

const char *outcome_status_name(enum outcome_status s)
{
    static const char *const names[] = {"ok",          "raised", "timeout",     "memory",
                                        "interrupted", "died",   "session_lost"};

    return names[s];
}

const char *limit_name(enum limit l)
{
    static const char *const names[] = {"none",      "wall_time",      "cpu_time",     "memory",
                                        "processes", "disk",           "tmp",          "open_files",
                                        "output",    "artifact_count", "artifact_size"};

    return names[l];
}

/* --- ids, and blobs that are counted and thrown away --- */

void id_make(char ret[ID_MAX], const char *prefix)
{
    static unsigned long last;

    snprintf(ret, ID_MAX, "%s%024lu", prefix, ++last);
}

struct blob {
    uint64_t size, sum;
    FILE *out;
};

void service_work(struct service *sv, loop_fn *work, loop_fn *done, void *arg)
{
    (void)sv;
    loop_work(self.loop, work, done, arg);
}

/* --- there are no other nodes --- */

bool service_has_nodes(const struct service *sv)
{
    (void)sv;
    return false;
}

const struct node_row *service_nodes(struct service *sv, size_t *ret_count, const char **ret_self)
{
    (void)sv;
    *ret_count = 0;
    *ret_self = "";
    return NULL;
}

bool service_lease_holds(struct service *sv, struct err *e)
{
    (void)sv, (void)e;
    return true;
}

enum home_place service_home(struct service *sv, const char *tenant, const char **ret_url)
{
    (void)sv, (void)tenant, (void)ret_url;
    return HOME_HERE;
}

bool service_key_seek(struct service *sv, struct str secret, done_fn *fn, void *arg)
{
    (void)sv, (void)secret, (void)fn, (void)arg;
    return false;
}

void service_home_find(struct service *sv, const char *tenant, done_fn *fn, void *arg)
{
    (void)sv, (void)tenant, (void)fn, (void)arg;
    abort();
}

void service_home_forget(struct service *sv, const char *tenant)
{
    (void)sv, (void)tenant;
}

bool service_node_is_there(const struct service *sv, const char *url)
{
    (void)sv, (void)url;
    return false;
}

void service_on_dial(struct service *sv, dial_fn *fn, void *arg)
{
    (void)sv, (void)fn, (void)arg;
}

void service_lend(struct service *sv, const struct caller *c, struct channel *n)
{
    (void)sv, (void)c, (void)n;
}

void service_lent(const struct service *sv, size_t *ret_lent, size_t *ret_borrowed)
{
    (void)sv;
    *ret_lent = *ret_borrowed = 0;
}

struct blob *service_blob_new(struct service *sv, const struct caller *c, struct err *e)
{
    (void)sv, (void)c, (void)e;
    struct blob *b = mem_zalloc(sizeof(*b));
    b->out = self.file ? fopen(self.file, "we") : NULL;
    return b;
}

int blob_write(struct blob *b, struct str bytes, struct err *e)
{
    if (b->size + bytes.n > self.blob_max)
        return err_set(e, ERR_LIMIT, "a file may have %llu bytes at most",
                       (unsigned long long)self.blob_max);
    if (self.blob_ms)
        usleep((useconds_t)self.blob_ms * 1000);
    for (size_t i = 0; i < bytes.n; i += 4096)
        b->sum = b->sum * 31 + (unsigned char)bytes.p[i];
    if (b->out && fwrite(bytes.p, 1, bytes.n, b->out) != bytes.n)
        return err_sys(e, "write");
    b->size += bytes.n;
    return 0;
}

void blob_free(struct blob *b)
{
    if (b && b->out)
        fclose(b->out);
    free(b);
}

/* --- routes --- */

static json_t *text_of(struct str s)
{
    return s.p ? json_stringn_nocheck(s.p, s.n) : json_null();
}

static void handle_tiny(struct request *r)
{
    answer_json(r, 200, json_pack("{s:b}", "ok", 1));
}

static void handle_echo(struct request *r)
{
    answer_json(r, 200, json_pack("{s:O}", "body", request_json(r)));
}

static void handle_path(struct request *r)
{
    struct str rest = request_path(r, "rest"), id = request_path(r, "id");
    struct str any = rest.p ? rest : id;
    char hex[512] = "";

    for (size_t i = 0; i < any.n && i < 250; i++)
        snprintf(hex + 2 * i, 3, "%02x", (unsigned char)any.p[i]);
    answer_json(r, 200, json_pack("{s:s,s:i}", "hex", hex, "count", (int)any.n));
}

static void handle_query(struct request *r)
{
    struct page page = request_page(r);

    answer_json(r, 200,
                json_pack("{s:o,s:o,s:s?,s:i}", "text", text_of(request_query(r, "text")), "flag",
                          text_of(request_query(r, "flag")), "after", page.after, "limit",
                          (int)page.limit));
}

static void handle_headers(struct request *r)
{
    answer_header(r, "x-made", "here");
    answer_json(r, 200,
                json_pack("{s:o,s:s,s:s}", "agent", text_of(request_header(r, "User-Agent")),
                          "tenant", request_caller(r)->tenant, "door", request_caller(r)->door));
}

struct later {
    struct request *r;
    struct timer *timer;
    int left, size, each_ms;
    bool busy;
};

static void later_free(void *arg)
{
    struct later *l = arg;

    timer_free(l->timer);
    free(l);
    self.kept--;
}

static struct later *later_new(struct request *r, loop_fn *fn)
{
    struct later *l = mem_zalloc(sizeof(*l));

    *l = (struct later){.r = r, .timer = timer_new(self.loop, fn, l)};
    self.kept++;
    request_keep(r, later_free, l);
    return l;
}

static int number(struct request *r, const char *name, int fallback)
{
    struct str s = request_query(r, name);

    return s.p ? (int)strtol(s.p, NULL, 10) : fallback;
}

static void on_gone_drop(void *arg)
{
    struct later *l = arg;

    self.gone++;
    request_drop(l->r);
}

static void on_later(void *arg)
{
    struct later *l = arg;

    answer_json(l->r, 200, json_pack("{s:b}", "later", 1));
}

static void handle_later(struct request *r)
{
    struct later *l = later_new(r, on_later);

    if (number(r, "watch", 0))
        request_on_gone(r, on_gone_drop, l);
    timer_set(l->timer, (uint64_t)number(r, "ms", 10));
}

/* So many pieces of a size, one every so many milliseconds; a piece ends with a newline. */
static void on_piece(void *arg)
{
    struct later *l = arg;
    char *piece;

    if (l->left-- == 0) {
        answer_stream_end(l->r);
        return;
    }
    piece = mem_zalloc((size_t)l->size);
    memset(piece, 'x', (size_t)l->size - 1);
    piece[l->size - 1] = '\n';
    answer_stream_put(l->r, (struct str){piece, (size_t)l->size});
    free(piece);
    timer_set(l->timer, (uint64_t)l->each_ms);
}

static void handle_stream(struct request *r)
{
    struct later *l = later_new(r, on_piece);

    l->left = number(r, "count", 3);
    l->size = number(r, "size", 8);
    l->each_ms = number(r, "ms", 10);
    request_on_gone(r, on_gone_drop, l);
    answer_stream(r, 200, "text/plain", STR(": ping\n"));
    timer_set(l->timer, (uint64_t)l->each_ms);
}

/* As much as the client takes: never more than a megabyte waits. */
static void on_flood(void *arg)
{
    struct later *l = arg;
    static char piece[64 * KiB];

    while (l->left > 0) {
        l->left--;
        answer_stream_put(l->r, (struct str){piece, sizeof(piece)});
        if (answer_stream_is_held(l->r))
            return;
    }
    answer_stream_end(l->r);
}

static void on_hold(void *arg, bool held)
{
    if (!held)
        on_flood(arg);
}

static void handle_flood(struct request *r)
{
    struct later *l = later_new(r, on_flood);

    l->left = number(r, "count", 100);
    answer_stream(r, 200, "application/octet-stream", (struct str){0});
    answer_stream_on_hold(r, on_hold, l);
    on_flood(l);
}

static void handle_drop(struct request *r)
{
    if (number(r, "late", 0)) {
        answer_stream(r, 200, "text/plain", (struct str){0});
        answer_stream_put(r, STR("some"));
    }
    self.dropped += (unsigned)number(r, "count", 0);
    request_drop(r);
}

static void handle_seen(struct request *r)
{
    struct http_counts c;

    http_counts(self.http, &c);
    answer_json(r, 200,
                json_pack("{s:i,s:i,s:I,s:I,s:b}", "gone", (int)self.gone, "kept", (int)self.kept,
                          "connections", (json_int_t)c.connections, "refused",
                          (json_int_t)c.refused, "idle", http_is_idle(self.http)));
}

static void handle_upload(struct request *r)
{
    json_t *list = json_array();
    struct upload *u;
    size_t count;

    u = request_uploads(r, &count);
    for (size_t i = 0; i < count; i++) {
        json_t *one = json_pack("{s:o,s:o,s:o,s:I,s:b}", "field", text_of(u[i].field), "name",
                                text_of(u[i].name), "mime", text_of(u[i].mime), "size",
                                (json_int_t)u[i].size, "file", u[i].blob != NULL);
        if (u[i].blob)
            json_object_set_new(one, "kept", json_integer((json_int_t)u[i].blob->size));
        else
            json_object_set_new(one, "text", text_of(u[i].text));
        json_array_append_new(list, one);
    }
    answer_json(r, 201, json_pack("{s:o,s:O}", "uploads", list, "body", request_json(r)));
}

static void handle_file(struct request *r)
{
    uint64_t size = (uint64_t)number(r, "size", 26);
    int fd = open("/dev/shm", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    const char abc[] = "abcdefghijklmnopqrstuvwxyz";

    if (fd < 0 || pwrite(fd, abc, 26, 0) != 26 || ftruncate(fd, (off_t)size) < 0)
        abort();
    answer_file(r, fd, size, "text/plain", STR("dir/na\"me \xc3\xa9.txt"),
                number(r, "hash", 1) ? "0123abcd" : NULL);
}

static void handle_error(struct request *r)
{
    static const char *const names[] = {
        [ERR_NONE] = "none",       [ERR_CALLER] = "caller",     [ERR_LIMIT] = "limit",
        [ERR_MISSING] = "missing", [ERR_CONFLICT] = "conflict", [ERR_BUSY] = "busy",
        [ERR_DENIED] = "denied",   [ERR_FULL] = "full",         [ERR_DAMAGED] = "damaged",
        [ERR_SETUP] = "setup",     [ERR_HOST] = "host"};
    struct err e = {0};

    for (size_t i = 0; i < COUNT(names); i++)
        if (str_is(request_path(r, "id"), names[i]))
            err_set(&e, (enum err_kind)i, "a secret \xff of %s", names[i]);
    e.retry_s = 7;
    answer_error(r, &e, "here");
}

static void handle_openapi(struct request *r)
{
    answer_json(r, 200, http_openapi(self.http));
}

#define END                                                                                        \
    {                                                                                              \
        NULL, FIELD_END                                                                            \
    }
#define ROW(m, p, i, h)                                                                            \
    .method = HTTP_##m, .path = (p), .id = (i), .text = "For tests.", .handle = (h)

static const struct field echo_fields[] = {
    {"text", FIELD_TEXT, OPTIONAL, 1,                 10,  NULL, "Some text.", "\"a\""},
    {"count",      FIELD_INT,          OPTIONAL,    1,    5,   NULL,   "A count."        },
    {"wall",      FIELD_NUMBER,           OPTIONAL,  -1, 1, NULL,    "A number."   },
    {"flag",      FIELD_BOOL,           OPTIONAL,    0,   0,  NULL,   "Yes or no."      },
    {"kind",      FIELD_ENUM,           OPTIONAL,    0,   0,  "one|other",   "One of two."},
    {"env",      FIELD_MAP,            OPTIONAL,      0,    2, NULL, "Texts by name."            },
    {"any",      FIELD_ANY,            OPTIONAL,      0,    0, NULL, "Anything."},
    {"free",      FIELD_OBJECT,           OPTIONAL,  0, 0,  NULL,     "Any object."               },
    {"files",      FIELD_LIST,          OPTIONAL,   0,   3,   "file",    "Files."},
    {"names",      FIELD_LIST,          OPTIONAL,   0,   3,   "string",    "Names."             },
    END,
};
static const struct field file_fields[] = {
    {"path", FIELD_TEXT,   REQUIRED, 1, 20, NULL,   "Where."},
    {"more", FIELD_OBJECT, OPTIONAL, 0, 0,  "file", "Again."},
    END,
};
static const struct field must_fields[] = {
    {"code", FIELD_TEXT, REQUIRED, 0, 0, NULL, "Code."},
    END,
};
static const struct field query_fields[] = {
    {"text",  FIELD_TEXT, OPTIONAL, 0, 10,   NULL, "Text."      },
    {"flag",  FIELD_BOOL, OPTIONAL, 0, 0,    NULL, "Flag."      },
    {"limit", FIELD_INT,  OPTIONAL, 1, 1000, NULL, "How many."  },
    {"after", FIELD_TEXT, OPTIONAL, 0, 40,   NULL, "After what."},
    END,
};
static const struct field number_fields[] = {
    {"ms",    FIELD_INT, OPTIONAL, 0, 100000,     NULL, "Time." },
    {"count", FIELD_INT, OPTIONAL, 0, 1000000000, NULL, "Count."},
    {"size",  FIELD_INT, OPTIONAL, 0, 2000000000, NULL, "Size." },
    {"hash",  FIELD_INT, OPTIONAL, 0, 1,          NULL, "Hash." },
    {"late",  FIELD_INT, OPTIONAL, 0, 1,          NULL, "Late." },
    {"watch", FIELD_INT, OPTIONAL, 0, 1,          NULL, "Watch."},
    END,
};
static const struct schema schemas[] = {
    {"file",        "A file.",   file_fields},
    { "echo", "What came.", echo_fields,        true},
};
static const struct route routes[] = {
    {ROW(GET,          "/tiny",             "tiny",                   handle_tiny),                              .answer = "echo"},
    {ROW(POST,         "/echo",             "echo",                   handle_echo),                              .body_kind = BODY_JSON,.body = echo_fields,
     .answer = "echo", .body_max = 4096},
    {ROW(POST, "/must",    "must",                            handle_echo),                                                              .body_kind = BODY_JSON,.body = must_fields},
    {ROW(GET,    "/items/{id}", "item",handle_path)},
    {ROW(PUT,          "/items/{id}",                 "put_item",                                                               handle_path)                                                                                                                                           },
    {ROW(DELETE,    "/items/{id}",                       "delete_item",handle_path)},
    {ROW(GET,                "/items/{id}/files/{rest...}",                             "rest",         handle_path)                                                                                                                                                          },
    {ROW(GET,          "/query",            "query",                  handle_query),                             .query = query_fields},
    {ROW(GET,          "/headers",          "headers",                handle_headers)                          },
    {ROW(GET,        "/later",             "later",            handle_later),                    .query = number_fields},
    {ROW(GET,       "/stream",            "stream",           handle_stream),                    .query = number_fields},
    {ROW(GET,        "/flood",             "flood",            handle_flood),                    .query = number_fields                 },
    {ROW(GET,         "/drop",              "drop",             handle_drop),                    .query = number_fields},
    {ROW(GET,         "/seen",              "seen",             handle_seen),                       .flags = ROUTE_OPEN},
    {ROW(GET,         "/file",              "file",             handle_file),                    .query = number_fields,.answer = "text/plain"},
    {ROW(GET,          "/error/{id}",       "error",                  handle_error)                            },
    {ROW(POST,         "/none",              "none",             handle_tiny)                                         },
    {ROW(PUT,           "/raw",                "raw",    handle_upload),                                          .body_kind = BODY_RAW                                                                                                                                                                              },
    {ROW(POST,          "/form",               "form",   handle_upload),                                          .body_kind = BODY_FORM},
    {ROW(POST,        "/either",             "either", handle_upload),                       .body_kind = BODY_EITHER,                      .body = must_fields},
    {ROW(GET,        "/admin",             "admin",             handle_tiny),                      .flags = ROUTE_ADMIN},
    {ROW(GET, "/openapi.json",           "openapi",          handle_openapi),        .flags = ROUTE_OPEN | ROUTE_HIDDEN},
};
static const struct door door = {"test", routes, COUNT(routes), schemas, COUNT(schemas), NULL};

/* --- start and stop --- */

static int listen_on(const char *unix_path)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    socklen_t n = sizeof(in);
    int fd = socket(unix_path ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int rc;

    if (unix_path) {
        snprintf(un.sun_path, sizeof(un.sun_path), "%s", unix_path);
        rc = bind(fd, (struct sockaddr *)&un, sizeof(un));
    } else {
        rc = bind(fd, (struct sockaddr *)&in, sizeof(in));
    }
    if (fd < 0 || rc < 0 || listen(fd, 4096) < 0)
        abort();
    getsockname(fd, (struct sockaddr *)&in, &n);
    printf("%d\n", unix_path ? 0 : ntohs(in.sin_port));
    return fd;
}

static void on_signal(void *arg, int signum)
{
    (void)arg;
    if (signum == SIGUSR1)
        http_close_listeners(self.http);
    else
        loop_stop(self.loop);
}

int main(int argc, char **argv)
{
    struct http_config config = {0};
    const char *unix_path = NULL, *value;
    struct door operator;
    bool local = true;
    struct err e;

    for (int i = 1; i + 1 < argc; i += 2) {
        value = argv[i + 1];
        switch (argv[i][0]) {
        case 'k':
            self.key = value;
            break;
        case 'l':
            local = strtol(value, NULL, 10) != 0;
            break;
        case 'h':
            config.header_ms = strtoull(value, NULL, 10);
            break;
        case 'm':
            config.max_connections = strtoull(value, NULL, 10);
            break;
        case 'a':
            config.max_per_address = strtoull(value, NULL, 10);
            break;
        case 'H':
            config.hosts = value;
            break;
        case 'O':
            config.origins = value;
            break;
        case 'c':
            config.tls_cert = value;
            break;
        case 't':
            config.tls_key = value;
            break;
        case 'u':
            unix_path = value;
            break;
        case 'b':
            self.blob_max = strtoull(value, NULL, 10);
            break;
        case 's':
            self.blob_ms = strtoull(value, NULL, 10);
            break;
        case 'f':
            self.file = value;
            break;
        case 'v':
            log_set_level(LOG_INFO);
            break;
        default:
            abort();
        }
    }
    self.loop = loop_new(&(struct err){0});
    self.http = http_new(self.loop, &config, &e);
    if (!self.http) {
        fprintf(stderr, "%s\n", e.text);
        return 1;
    }
    http_add(self.http, &door);
    operator= operator_door;
    operator.ctx = self.http;
    http_add(self.http, &operator);
    if (http_listen(self.http, listen_on(unix_path), local, &e) < 0) {
        fprintf(stderr, "%s\n", e.text);
        return 1;
    }
    fflush(stdout);
    loop_on_signal(self.loop, SIGTERM, on_signal, NULL);
    loop_on_signal(self.loop, SIGUSR1, on_signal, NULL);
    loop_run(self.loop);
    http_free(self.http);
    loop_free(self.loop);
    return 0;
}
