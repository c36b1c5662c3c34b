/*
 * What a resource holds: bytes of a file, or all that an execution has said. A worker
 * reads it, finds out whether it is text, and makes the JSON; READS_AT_ONCE at a time,
 * as each takes some megabytes until its client has them.
 */
#include "doors/mcp/mcp_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Escaped in JSON it is at most three times as long, and some clients take no line above 10 MiB. */
#define READ_MAX      (3 * MiB)
#define READS_AT_ONCE 8
#define OUTPUT_MAX    (1 * GiB) /* the service keeps less; this only stops a runaway */

struct reading {
    struct reading *next; /* of those that wait */
    struct call *c;       /* borrowed: we answer it */
    struct uri uri;
    int fd;         /* owned: of a file, or -1 */
    json_t *events; /* owned reference: of an execution; nobody's to change. Or NULL */
    char mime[128];
    uint64_t size;    /* of the whole */
    json_t *contents; /* owned: what the worker makes, or NULL with err */
    struct err err;
};

static void reading_free(struct reading *r)
{
    fd_closep(&r->fd);
    json_decref(r->events);
    json_decref(r->contents);
    free(r);
}

static struct str uri_text(const struct call *c)
{
    return json_view(json_object_get(c->params, "uri"));
}

/* --- on a worker --- */

/* Which part of so many bytes is meant. */
static int window(struct reading *r, uint64_t *ret_from, size_t *ret_n)
{
    uint64_t left;
    char size[SIZE_SHOWN];

    if (r->uri.offset > r->size)
        return err_set(&r->err, ERR_CALLER, "offset %llu is past the end: there are %llu bytes",
                       (unsigned long long)r->uri.offset, (unsigned long long)r->size);
    left = r->size - r->uri.offset;
    if (!r->uri.is_part && left > READ_MAX) {
        char http[64] = "";
        if (r->uri.kind == URI_FILE)
            snprintf(http, sizeof(http), "/v1/sessions/%s/files/", r->uri.id);
        else
            snprintf(http, sizeof(http), "/v1/executions/%s/output", r->uri.id);
        return err_set(&r->err, ERR_LIMIT,
                       "it has %s, and at most %zu bytes are read at a time. Put "
                       "?offset=0&limit=%zu behind the URI and go on from there; over HTTP all of "
                       "it is at %s%.200s",
                       size_show(size, r->size), READ_MAX, READ_MAX / 3, http,
                       r->uri.kind == URI_FILE ? r->uri.path : "");
    }
    if (r->uri.limit && left > r->uri.limit)
        left = r->uri.limit;
    *ret_from = r->uri.offset;
    *ret_n = left < READ_MAX ? (size_t)left : READ_MAX;
    return 0;
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);

    return n >= m && strcmp(text + n - m, end) == 0;
}

/* Whether this kind of file may be text. What nobody knows is looked at. */
static bool may_be_text(const char *mime)
{
    static const char *const kinds[] = {"text/",
                                        "application/json",
                                        "application/xml",
                                        "application/javascript",
                                        "application/octet-stream",
                                        "application/x-ndjson",
                                        "application/sql",
                                        "application/toml",
                                        "application/yaml"};

    for (size_t i = 0; i < COUNT(kinds); i++)
        if (strncmp(mime, kinds[i], strlen(kinds[i])) == 0)
            return true;
    return ends_with(mime, "+xml") || ends_with(mime, "+json");
}

/* Control characters take six bytes each in JSON; a file that is full of them is no text. */
static bool is_text(struct str s)
{
    size_t controls = 0;

    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if (c == '\0')
            return false;
        controls += c < ' ' && c != '\n' && c != '\t' && c != '\r';
    }
    return controls * 5 <= s.n && str_utf8_len(s) == s.n;
}

/* The whole characters of a part. */
static struct str whole(const struct reading *r, struct str bytes)
{
    size_t cut = 0;

    while (r->uri.offset > 0 && cut < bytes.n && cut < 3 && (bytes.p[cut] & 0xc0) == 0x80)
        cut++;
    bytes.p += cut;
    bytes.n -= cut;
    if (r->uri.offset + cut + bytes.n < r->size)
        bytes.n -= utf8_torn(bytes);
    return bytes;
}

static void render(struct reading *r, uint64_t from, struct str bytes)
{
    struct str text = whole(r, bytes);
    bool as_text = may_be_text(r->mime) && is_text(text);
    uint64_t end = as_text ? from + (size_t)(text.p + text.n - bytes.p) : from + bytes.n;
    json_t *meta;

    r->contents = json_pack("{s:s, s:o}", "mimeType", r->mime, as_text ? "text" : "blob",
                            as_text ? record_text(text) : record_base64(bytes));
    if (!r->uri.is_part)
        return;
    meta = json_pack("{s:I, s:I}", "dev.retort/offset", (json_int_t)(end - text.n),
                     "dev.retort/size", (json_int_t)r->size);
    if (!as_text)
        json_object_set_new(meta, "dev.retort/offset", json_integer((json_int_t)from));
    if (end < r->size)
        json_object_set_new(meta, "dev.retort/next_offset", json_integer((json_int_t)end));
    json_object_set_new(r->contents, "_meta", meta);
}

static int read_part(struct reading *r, uint64_t from, size_t n, char *ret)
{
    for (size_t at = 0; at < n;) {
        ssize_t got = pread(r->fd, ret + at, n - at, (off_t)(from + at));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return err_sys(&r->err, "read a file of a workspace");
        at += (size_t)got;
    }
    return 0;
}

static void read_bytes(struct reading *r)
{
    AUTO_FREE char *bytes = NULL;
    uint64_t from = 0;
    size_t n = 0;

    if (window(r, &from, &n) < 0)
        return;
    bytes = mem_zalloc(n + 1);
    if (read_part(r, from, n, bytes) == 0)
        render(r, from, (struct str){bytes, n});
}

/* What an event says as text: output as it is, results and errors on lines of their own. */
static void put_event(struct buf *b, const json_t *ev)
{
    const json_t *shown = json_object_get(json_object_get(ev, "data"), "text/plain");
    struct str type = json_view(json_object_get(ev, "type"));
    struct str text = json_view(json_object_get(ev, "text"));
    struct err e;

    if (str_is(type, "stdout") || str_is(type, "stderr")) {
        (void)!buf_put(b, text, &e);
        return;
    }
    if (str_is(type, "error"))
        text = json_view(json_object_get(ev, "traceback"));
    else if (shown)
        text = json_view(shown);
    if (text.n == 0)
        return;
    if (b->n > 0 && b->p[b->n - 1] != '\n')
        (void)!buf_put(b, STR("\n"), &e);
    (void)!buf_put(b, text, &e);
    (void)!buf_put(b, STR("\n"), &e);
}

static void read_events(struct reading *r)
{
    struct buf text;
    uint64_t from = 0;
    size_t n = 0;

    buf_init(&text, OUTPUT_MAX);
    for (size_t i = 0; i < json_array_size(r->events); i++)
        put_event(&text, json_array_get(r->events, i));
    r->size = text.n;
    if (window(r, &from, &n) == 0)
        render(r, from, n ? (struct str){text.p + from, n} : STR(""));
    buf_done(&text);
}

/* On record it is base64 already, unless it is SVG. */
static void read_image(struct reading *r)
{
    const char *mime;
    const json_t *image = events_image(r->events, r->uri.image, &mime);

    if (!image)
        err_set(&r->err, ERR_MISSING, "there is no such image");
    else if (json_string_length(image) > READ_MAX * 2)
        err_set(&r->err, ERR_LIMIT,
                "the image is too large to be read at once: let the code save it as a file, which "
                "can be read in parts");
    else
        r->contents = json_pack("{s:s, s:O}", "mimeType", mime,
                                strcmp(mime, "image/svg+xml") == 0 ? "text" : "blob", image);
}

static void work(void *arg)
{
    struct reading *r = arg;

    if (r->uri.kind == URI_IMAGE)
        read_image(r);
    else if (r->fd >= 0)
        read_bytes(r);
    else
        read_events(r);
}

/* --- one after the other --- */

static void answer(struct reading *r)
{
    struct call *c = r->c;
    json_t *result;

    if (!r->contents && r->err.kind == ERR_MISSING) {
        call_no_resource(c, uri_text(c));
    } else if (!r->contents && r->err.kind == ERR_HOST) {
        call_fail(c, &r->err);
    } else if (!r->contents) {
        call_error(
            c, RPC_PARAMS,
            json_pack("{s:o, s:I}", "uri", record_text(uri_text(c)), "size", (json_int_t)r->size),
            "%s", r->err.text);
    } else {
        json_object_set_new(r->contents, "uri", record_text(uri_text(c)));
        result = json_pack("{s:[O]}", "contents", r->contents);
        call_cacheable(c, result, 0, "private");
        call_result(c, result);
    }
    reading_free(r);
}

static void start(struct mcp *m);

static void on_read(void *arg)
{
    struct reading *r = arg;
    struct mcp *m = r->c->mcp;

    m->reads--;
    start(m); /* before the last call may take m with it */
    answer(r);
}

static void start(struct mcp *m)
{
    while (m->reads_waiting && m->reads < READS_AT_ONCE) {
        struct reading *r = m->reads_waiting;
        m->reads_waiting = r->next;
        m->reads++;
        loop_work(m->config.loop, work, on_read, r);
    }
}

static void enqueue(struct reading *r)
{
    struct reading **at = &r->c->mcp->reads_waiting;

    while (*at)
        at = &(*at)->next;
    *at = r;
    start(r->c->mcp);
}

/* --- from the service --- */

static struct reading *reading_new(struct call *c, const struct uri *u)
{
    struct reading *r = mem_zalloc(sizeof(*r));

    *r = (struct reading){.c = c, .uri = *u, .fd = -1};
    return r;
}

static void refuse(struct reading *r, const struct err *failed)
{
    struct call *c = r->c;

    reading_free(r);
    if (failed->kind == ERR_MISSING)
        call_no_resource(c, uri_text(c));
    else
        call_fail(c, failed);
}

static void on_open(void *arg, int *fd, const struct space_file *file, const struct err *failed)
{
    struct reading *r = arg;

    if (failed)
        return refuse(r, failed);
    r->fd = take_fd(fd);
    r->size = file->size;
    snprintf(r->mime, sizeof(r->mime), "%s", file->mime);
    enqueue(r);
}

void read_file_resource(struct call *c, const struct uri *u)
{
    struct service *sv = call_service(c);

    if (sv)
        service_space_open(sv, &c->caller, str_of(u->id), str_of(u->path), on_open,
                           reading_new(c, u));
}

static void on_exec(void *arg, const struct exec_info *info, const struct err *failed)
{
    struct reading *r = arg;

    if (failed)
        return refuse(r, failed);
    r->events = json_incref(info->events);
    snprintf(r->mime, sizeof(r->mime), "text/plain");
    enqueue(r);
}

void read_execution_resource(struct call *c, const struct uri *u)
{
    struct service *sv = call_service(c);

    if (sv)
        service_exec_get(sv, &c->caller, str_of(u->id), on_exec, reading_new(c, u));
}
