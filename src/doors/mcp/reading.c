/*
 * What a resource holds: bytes of a file, or the output of an execution. A worker finds out whether
 * they are text and makes the JSON. READS_AT_ONCE are read at a time, as each takes some megabytes
 * until its client has them.
 */
#include "doors/mcp/execution.h"
#include "doors/mcp/resource.h"

#include <stdio.h>
#include <stdlib.h>

/* Escaped in JSON it is at most three times as long, and some clients take no line above 10 MiB. */
#define READ_MAX      (3 * MiB)
#define READS_AT_ONCE 8
#define OUTPUT_MAX    (1 * GiB) /* the service keeps less; this only stops a runaway */

struct resource_reading {
    struct resource_reading *next; /* of those that wait */
    struct call *c;                /* borrowed: answered in the end */
    struct service *sv;            /* borrowed */
    struct uri uri;
    char *bytes;    /* owned: of a file, from uri.offset on; or NULL */
    size_t n;       /* of them */
    json_t *events; /* owned reference: of an execution; not to be changed. Or NULL */
    char mime[128];
    uint64_t size;    /* of the whole */
    json_t *contents; /* owned: what the worker makes, or NULL with err */
    struct err err;
    bool refused; /* err is the service's */
};

static void reading_free(struct resource_reading *r)
{
    free(r->bytes);
    json_decref(r->events);
    json_decref(r->contents);
    free(r);
}

static struct str uri_text(const struct call *c)
{
    return json_view(json_object_get(c->params, "uri"));
}

/* --- on a worker --- */

/* How many bytes are asked for, if there are so many. */
static size_t window(const struct uri *u)
{
    return u->limit && u->limit < READ_MAX ? (size_t)u->limit : READ_MAX;
}

/* Whether the part that is asked for can be read at once. */
static int check_size(struct resource_reading *r)
{
    bool file = r->uri.kind == URI_FILE;
    char size[SIZE_SHOWN];

    if (r->uri.offset > r->size)
        return err_set(&r->err, ERR_CALLER, "offset %llu is past the end: there are %llu bytes",
                       (unsigned long long)r->uri.offset, (unsigned long long)r->size);
    if (r->uri.is_part || r->size <= READ_MAX)
        return 0;
    return err_set(&r->err, ERR_LIMIT,
                   "it has %s, and at most %zu bytes are read at a time. Put "
                   "?offset=0&limit=%zu behind the URI and go on from there; over HTTP all of "
                   "it is at /v1/%s/%s/%s%.200s",
                   size_show(size, r->size), READ_MAX, READ_MAX / 3,
                   file ? "sessions" : "executions", r->uri.id, file ? "files/" : "output",
                   file ? r->uri.path : "");
}

/* Whether this kind of file may be text. What nobody knows is looked at. */
static bool may_be_text(const char *mime)
{
    return mime_is_text(str_of(mime)) || strcmp(mime, "application/octet-stream") == 0;
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

static void render(struct resource_reading *r, struct str bytes)
{
    uint64_t from = r->uri.offset, end = from + bytes.n;
    struct str text = text_whole(bytes, from == 0, end >= r->size);
    bool as_text = may_be_text(r->mime) && is_text(text);
    json_t *meta;

    if (as_text) {
        from += (uint64_t)(text.p - bytes.p);
        end = from + text.n;
    }
    r->contents = json_pack("{s:s, s:o}", "mimeType", r->mime, as_text ? "text" : "blob",
                            as_text ? record_text(text) : record_base64(bytes));
    if (!r->uri.is_part)
        return;
    meta = json_pack("{s:I, s:I}", "dev.retort/offset", (json_int_t)from, "dev.retort/size",
                     (json_int_t)r->size);
    if (end < r->size)
        json_object_set_new(meta, "dev.retort/next_offset", json_integer((json_int_t)end));
    json_object_set_new(r->contents, "_meta", meta);
}

static void put_line(struct buf *b, struct str text)
{
    if (text.n == 0)
        return;
    if (b->n > 0 && b->p[b->n - 1] != '\n')
        buf_put(b, STR("\n"));
    buf_put(b, text);
    buf_put(b, STR("\n"));
}

/* Output as it is, results and errors on lines of their own. */
static void read_output(struct resource_reading *r)
{
    AUTO(buf_done) struct buf all = BUF(OUTPUT_MAX);
    struct event_reader at;
    size_t n;

    event_reader_init(&at, r->events);
    while (event_reader_next(&at)) {
        if (at.kind == EVENT_STDOUT || at.kind == EVENT_STDERR)
            buf_put(&all, at.text);
        else
            put_line(&all, at.kind == EVENT_ERROR ? event_text(at.event, "traceback") : at.text);
    }
    event_reader_done(&at);
    r->size = all.n;
    if (check_size(r) < 0)
        return;
    n = all.n - (size_t)r->uri.offset;
    render(r,
           (struct str){n ? all.p + r->uri.offset : "", n < window(&r->uri) ? n : window(&r->uri)});
}

/* On record it is base64 already, unless it is SVG. */
static void read_image(struct resource_reading *r)
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
    struct resource_reading *r = arg;

    if (r->uri.kind == URI_IMAGE)
        read_image(r);
    else if (r->uri.kind == URI_OUTPUT)
        read_output(r);
    else if (check_size(r) == 0)
        render(r, (struct str){r->bytes, r->n});
}

/* --- one after the other --- */

static void answer(struct resource_reading *r)
{
    struct call *c = r->c;

    if (!r->contents && r->err.kind == ERR_MISSING) {
        call_no_resource(c, uri_text(c));
    } else if (!r->contents && (r->err.kind == ERR_HOST || r->refused)) {
        call_fail(c, &r->err);
    } else if (!r->contents) {
        call_error(
            c, RPC_PARAMS,
            json_pack("{s:o, s:I}", "uri", record_text(uri_text(c)), "size", (json_int_t)r->size),
            "%s", r->err.text);
    } else {
        json_object_set_new(r->contents, "uri", record_text(uri_text(c)));
        call_result_cached(c, json_pack("{s:[O]}", "contents", r->contents), 0, "private");
    }
    reading_free(r);
}

static void start(struct mcp *m);

static void on_rendered(void *arg)
{
    struct resource_reading *r = arg;
    struct mcp *m = r->c->mcp;

    m->reads--;
    start(m); /* before the last call may take m with it */
    answer(r);
}

static void render_or_fail(struct resource_reading *r, const struct err *failed)
{
    if (failed) {
        r->err = *failed;
        r->refused = true;
        on_rendered(r);
    } else {
        service_work(r->sv, work, on_rendered, r);
    }
}

static void on_bytes(void *arg, char **bytes, size_t n, const struct space_file *file,
                     const struct err *failed)
{
    struct resource_reading *r = arg;

    if (!failed) {
        r->bytes = take_ptr(bytes);
        r->n = n;
        r->size = file->size;
        snprintf(r->mime, sizeof(r->mime), "%s", file->mime);
    }
    render_or_fail(r, failed);
}

static void on_exec(void *arg, const struct exec_info *info, const struct err *failed)
{
    struct resource_reading *r = arg;

    r->events = failed ? NULL : json_incref(info->events);
    snprintf(r->mime, sizeof(r->mime), "text/plain");
    render_or_fail(r, failed);
}

static void start(struct mcp *m)
{
    while (m->reads_waiting && m->reads < READS_AT_ONCE) {
        struct resource_reading *r = m->reads_waiting;
        struct str id = str_of(r->uri.id);

        m->reads_waiting = r->next;
        m->reads++;
        if (r->uri.kind == URI_FILE)
            service_space_read(r->sv, &r->c->caller, id, str_of(r->uri.path), r->uri.offset,
                               window(&r->uri), on_bytes, r);
        else
            service_exec_get(r->sv, &r->c->caller, id, on_exec, r);
    }
}

void read_resource(struct call *c, const struct uri *u)
{
    struct service *sv = call_service(c);
    struct resource_reading *r, **at = &c->mcp->reads_waiting;

    if (!sv)
        return;
    r = mem_zalloc(sizeof(*r));
    *r = (struct resource_reading){.c = c, .sv = sv, .uri = *u};
    while (*at)
        at = &(*at)->next;
    *at = r;
    start(c->mcp);
}
