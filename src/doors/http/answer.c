/* Answers: JSON, text, errors, and the headers that each of them has. */
#include "doors/http/http_mhd.h"
#include "record/record.h"

#include <gnutls/gnutls.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#define MESSAGE_MAX (1 * KiB)

/* --- headers --- */

void answer_header(struct request *r, const char *name, const char *value)
{
    assert(r->answer_header_count < ANSWER_HEADERS);
    r->answer_headers[r->answer_header_count++] = (struct http_pair){
        {mem_strdup(name),  strlen(name) },
        {mem_strdup(value), strlen(value)},
        false
    };
}

static void add(struct MHD_Response *resp, const char *name, const char *value)
{
    /* It refuses what would break a line, and we give it nothing of that kind. */
    if (MHD_add_response_header(resp, name, value) != MHD_YES)
        log_warn("answer header '%s' left out", name);
}

/* The id of clients that follow one action through several services: text, the request's own, or
 * NULL. */
static const char *correlation(struct request *r, char text[CORRELATION_MAX + 1])
{
    struct str given = request_header(r, "x-correlation-id");

    if (given.n > 0 && str_to_cstr(given, text, CORRELATION_MAX + 1) && !strpbrk(text, "\r\n"))
        return text;
    return r->door && r->door->correlates ? r->caller.request : NULL;
}

static void add_correlation(struct request *r, struct MHD_Response *resp)
{
    char text[CORRELATION_MAX + 1];
    const char *id = correlation(r, text);

    if (id)
        add(resp, "x-correlation-id", id);
}

static const char *own_header(const struct request *r, const char *name)
{
    for (size_t i = 0; i < r->answer_header_count; i++)
        if (strcmp(r->answer_headers[i].name.p, name) == 0)
            return r->answer_headers[i].value.p;
    return NULL;
}

/* Whoever shall try again hears when, whichever door says so. */
static bool lacks_retry_after(const struct request *r, int status)
{
    return status == 429 && !own_header(r, "retry-after");
}

static void add_headers(struct request *r, int status, struct MHD_Response *resp)
{
    struct str origin = guard_cors(r);

    add(resp, "x-request-id", r->caller.request);
    add(resp, "x-content-type-options", "nosniff");
    if (!MHD_get_response_header(resp, "cache-control"))
        add(resp, "cache-control", "no-store");
    if (r->http->closing)
        add(resp, "connection", "close");
    if (r->http->origins)
        add(resp, "vary", "origin");
    if (origin.p) {
        add(resp, "access-control-allow-origin", origin.p);
        add(resp, "access-control-expose-headers",
            "x-request-id, request-id, content-disposition, etag, content-range, retry-after, "
            "mcp-session-id, "
            "www-authenticate");
    }
    if (r->door && r->door->id_header)
        add(resp, r->door->id_header, r->caller.request);
    add_correlation(r, resp);
    if (lacks_retry_after(r, status))
        add(resp, "retry-after", "1");
    for (size_t i = 0; i < r->answer_header_count; i++)
        add(resp, r->answer_headers[i].name.p, r->answer_headers[i].value.p);
}

/* --- out --- */

void answer_done(struct request *r)
{
    r->stage = STAGE_ANSWERED;
    r->on_gone = NULL;
    request_settle(r);
}

void answer_send(struct request *r, int status, struct MHD_Response *resp, uint64_t bytes)
{
    assert(r->stage < STAGE_STREAM && resp);
    r->status = status;
    r->bytes = r->head_only ? 0 : bytes;
    if (r->mhd) {
        add_headers(r, status, resp);
        if (library_queue(r->mhd, (unsigned)status, resp) != MHD_YES)
            r->refused = true;
        if (r->suspended)
            request_resume(r);
    }
    MHD_destroy_response(resp);
}

static bool put_own_headers(const struct request *r, struct buf *b)
{
    bool ok = true;

    for (size_t i = 0; i < r->answer_header_count && ok; i++)
        ok = buf_printf(b, "%s: %s\r\n", r->answer_headers[i].name.p,
                        r->answer_headers[i].value.p) == 0;
    return ok;
}

/* The library takes no answer in the middle of a body. It has sent nothing for this request yet, so
 * this small one finds room. With the next byte of the body the library is told to close. */
static void send_past(struct request *r, int status, struct str text)
{
    const union MHD_ConnectionInfo *tls =
        MHD_get_connection_info(r->mhd, MHD_CONNECTION_INFO_GNUTLS_SESSION);
    const char *also = r->door ? r->door->id_header : NULL;
    char text_id[CORRELATION_MAX + 1];
    const char *correlated = correlation(r, text_id);
    AUTO(buf_done) struct buf b = BUF(8 * KiB);

    r->status = status;
    r->bytes = text.n;
    r->refused = true;
    r->conn->linger = true;
    if (buf_printf(&b, "HTTP/1.1 %d %s\r\nx-request-id: %s\r\n", status,
                   MHD_get_reason_phrase_for((unsigned)status), r->caller.request) == 0 &&
        (!also || buf_printf(&b, "%s: %s\r\n", also, r->caller.request) == 0) &&
        (!correlated || buf_printf(&b, "x-correlation-id: %s\r\n", correlated) == 0) &&
        (!lacks_retry_after(r, status) || buf_put(&b, STR("retry-after: 1\r\n")) == 0) &&
        put_own_headers(r, &b) &&
        buf_printf(&b,
                   "content-type: application/json\r\ncontent-length: %zu\r\n"
                   "connection: close\r\n\r\n%.*s",
                   text.n, (int)text.n, text.p) == 0) {
        if (tls)
            (void)!gnutls_record_send(tls->tls_session, b.p, b.n);
        else
            (void)!send(r->conn->fd, b.p, b.n, MSG_DONTWAIT | MSG_NOSIGNAL);
    }
    if (r->suspended)
        request_resume(r);
}

/* Takes text, malloced. */
static void send_text(struct request *r, int status, const char *mime, char *text, size_t n)
{
    if ((r->past || (r->stage == STAGE_BODY && (r->body_seen > 0 || r->late))) && r->mhd) {
        send_past(r, status, (struct str){text, n});
        free(text);
    } else {
        struct MHD_Response *resp = MHD_create_response_from_buffer(n, text, MHD_RESPMEM_MUST_FREE);
        if (mime)
            add(resp, "content-type", mime);
        answer_send(r, status, resp, n);
    }
    answer_done(r);
}

void answer_json(struct request *r, int status, json_t *value)
{
    size_t n = 0;
    char *text = value ? record_dump(value, false, &n) : NULL;

    json_decref(value);
    if (!text) { /* a value that no JSON can say, which no handler should make */
        answer_fail(r, 500, "internal", NULL, "the answer could not be written");
        return;
    }
    send_text(r, status, "application/json", text, n);
}

void answer_text(struct request *r, int status, const char *mime, struct str text)
{
    send_text(r, status, mime, mem_strndup(text), text.n);
}

void answer_empty(struct request *r, int status)
{
    send_text(r, status, NULL, mem_strdup(""), 0);
}

/* --- errors --- */

/* The status of each kind, and its name in an answer. */
static const struct {
    int status;
    const char *type;
} kinds[] = {
    [ERR_NONE] = {500, "internal"            },
      [ERR_CALLER] = {400, "invalid_request"     },
    [ERR_LIMIT] = {413, "too_large"           },
      [ERR_MISSING] = {404, "not_found"           },
    [ERR_CONFLICT] = {409, "conflict"            },
      [ERR_BUSY] = {429, "busy"                },
    [ERR_DENIED] = {403, "forbidden"           },
      [ERR_FULL] = {507, "insufficient_storage"},
    [ERR_DAMAGED] = {500, "damaged"             },
      [ERR_AWAY] = {503, "unavailable"         },
    [ERR_SETUP] = {503, "unavailable"         },
      [ERR_HOST] = {500, "internal"            },
};

int http_status_of(const struct err *e)
{
    assert(e->kind < COUNT(kinds));
    return kinds[e->kind].status;
}

const char *http_type_of(const struct err *e)
{
    assert(e->kind < COUNT(kinds));
    return kinds[e->kind].type;
}

/* A message may quote a client, who need not speak UTF-8. */
static json_t *clean(const char *text)
{
    AUTO(buf_done) struct buf b = BUF(4 * MESSAGE_MAX);
    json_t *v = NULL;

    if (utf8_put(&b, str_of(text)) == 0)
        v = json_stringn(b.p ? b.p : "", b.n);
    return v ? v : json_string("");
}

void answer_fail(struct request *r, int status, const char *type, const char *param,
                 const char *fmt, ...)
{
    char message[MESSAGE_MAX];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(message, sizeof(message), fmt, ap);
    va_end(ap);
    json_t *v = r->door && r->door->error ? r->door->error(r, status, type, param, clean(message))
                                          : json_pack("{s:{s:s,s:o,s:o,s:s}}", "error", "type",
                                                      type, "message", clean(message), "param",
                                                      param && *param ? clean(param) : json_null(),
                                                      "request_id", r->caller.request);
    char *text = json_dumps(v, JSON_COMPACT);
    json_decref(v);
    assert(text);
    send_text(r, status, "application/json", text, strlen(text));
}

void answer_error(struct request *r, const struct err *e, const char *param)
{
    char seconds[16];

    if (err_will_pass(e)) {
        snprintf(seconds, sizeof(seconds), "%d", e->retry_s > 0 ? e->retry_s : 1);
        answer_header(r, "retry-after", seconds);
    }
    if (e->kind == ERR_HOST || e->kind == ERR_NONE) {
        log_error("%s: %s", r->caller.request, e->text);
        answer_fail(r, 500, "internal", NULL, "something failed here; the log has it under %s",
                    r->caller.request);
        return;
    }
    answer_fail(r, http_status_of(e), http_type_of(e), param, "%s", e->text);
}
