/*
 * Bodies: read as they arrive, in the form that the route asks for, and checked when they are
 * complete.
 *
 * libmicrohttpd takes an answer before a body or after it. To refuse a request in the middle of its
 * body, answer.c writes the answer to the socket itself, and the connection ends.
 */
#include "doors/http/http_int.h"

#include <stdio.h>
#include <stdlib.h>

#define LINE_MAX_      80   /* of the first delimiter of a form */
#define RATE_MS_PER_KB 2000 /* a body slower than this is no upload but a grip on a connection */

#define PARSE_NOW (64 * KiB) /* a longer one is parsed on a worker: 16 MB take 0.2 s */

struct http_body {
    enum body_kind kind; /* never BODY_EITHER, BODY_ANY or BODY_TEXT */
    struct buf json;
    bool parsed;   /* value or failed: what came of it */
    json_t *value; /* owned, or NULL */
    struct err failed;
    struct multipart *form;  /* owned, or NULL */
    struct uploads *uploads; /* owned, or NULL */
};

/* --- what the head says about it --- */

/* The type itself, without its parameters. */
static struct str media_type(struct request *r)
{
    struct str rest = request_header(r, "content-type"), type = {0};

    str_next(&rest, ';', &type);
    return type;
}

static bool refuse_type(struct request *r, const char *wanted)
{
    answer_fail(r, 415, "unsupported_media_type", NULL, "the Content-Type must be %s", wanted);
    return false;
}

static bool kind_of(struct request *r, enum body_kind *ret)
{
    struct str type = media_type(r), coding = request_header(r, "content-encoding");
    bool form = str_same(type, "multipart/form-data"), json = str_same(type, "application/json");

    if (coding.n && !str_same(coding, "identity")) {
        answer_fail(r, 415, "unsupported_media_type", NULL,
                    "a Content-Encoding is not supported: send the body as it is");
        return false;
    }
    *ret = r->route->body_kind;
    if (*ret == BODY_EITHER)
        *ret = form ? BODY_FORM : BODY_JSON;
    if (*ret == BODY_ANY)
        *ret = form ? BODY_FORM : BODY_BYTES;
    if (*ret == BODY_TEXT) {
        *ret = BODY_BYTES;
        return true;
    }
    /* Of a body that is empty no type is wrong: curl -d '' calls it a form. */
    if ((*ret == BODY_JSON || *ret == BODY_BYTES) && r->has_body && type.n && !json)
        return refuse_type(r, r->route->body_kind == BODY_EITHER || r->route->body_kind == BODY_ANY
                                  ? "application/json or multipart/form-data"
                                  : "application/json");
    if (*ret == BODY_FORM && !form)
        return refuse_type(r, "multipart/form-data");
    return true;
}

static uint64_t limit_of(const struct request *r, enum body_kind kind)
{
    if (kind == BODY_NONE)
        return IGNORED_BODY_MAX;
    if (kind == BODY_JSON || kind == BODY_BYTES)
        return r->route->body_max ? r->route->body_max : JSON_BODY_MAX;
    return UINT64_MAX; /* a blob has its own */
}

static void refuse_size(struct request *r)
{
    answer_fail(r, 413, "too_large", NULL, "the body has more than %llu bytes",
                (unsigned long long)limit_of(r, r->body->kind));
}

/* --- forms --- */

static int on_part(void *arg, const struct part *p, struct err *e)
{
    struct request *r = arg;

    if (r->upload_count == FORM_PARTS_MAX)
        return err_set(e, ERR_CALLER, "the form has more than %d parts", FORM_PARTS_MAX);
    return uploads_begin(r->body->uploads, p, e);
}

static int on_data(void *arg, struct str bytes, struct err *e)
{
    struct request *r = arg;

    return uploads_put(r->body->uploads, bytes, e);
}

static const struct multipart_fns form_fns = {on_part, on_data};

/* --- as it comes in --- */

/* Semantic Kernel calls a form application/json. No JSON begins with two dashes, so what does is
 * the first delimiter of a form, whose boundary is the rest of the line. */
static bool may_turn(const struct request *r)
{
    return r->route->body_kind == BODY_ANY && r->body->kind == BODY_BYTES;
}

/* 1: it is a form from here on. 0: it is none, or that cannot be told yet. */
static int turn_to_form(struct request *r, struct err *e)
{
    struct http_body *b = r->body;
    struct str seen = buf_str(&b->json);
    const char *end = memmem(seen.p, seen.n < LINE_MAX_ ? seen.n : LINE_MAX_, "\r\n", 2);
    char type[LINE_MAX_ + 32];

    if (seen.n < 2 || memcmp(seen.p, "--", 2) != 0 || !end)
        return 0;
    snprintf(type, sizeof(type), "multipart/form-data; boundary=\"%.*s\"", (int)(end - seen.p - 2),
             seen.p + 2);
    b->form = multipart_new(str_of(type), &form_fns, r, e);
    if (!b->form)
        return -1;
    b->kind = BODY_FORM;
    b->uploads = uploads_new(r);
    if (multipart_feed(b->form, seen, e) < 0)
        return -1;
    buf_done(&b->json);
    return 1;
}

bool body_begin(struct request *r)
{
    struct part raw = {
        .file = {"", 0},
          .mime = request_header(r, "content-type")
    };
    struct http_body *b = mem_zalloc(sizeof(*b));
    struct err e;
    int rc = 0;

    r->body = b;
    if (!kind_of(r, &b->kind))
        return false;
    buf_init(&b->json, limit_of(r, BODY_JSON));
    if (r->has_body && !r->chunked && r->body_length > limit_of(r, b->kind) && !may_turn(r)) {
        refuse_size(r);
        return false;
    }
    if (b->kind == BODY_RAW || b->kind == BODY_FORM)
        b->uploads = uploads_new(r);
    if (b->kind == BODY_RAW)
        rc = uploads_begin(b->uploads, &raw, &e);
    else if (b->kind == BODY_FORM)
        rc =
            (b->form = multipart_new(request_header(r, "content-type"), &form_fns, r, &e)) ? 0 : -1;
    if (rc < 0)
        answer_error(r, &e, NULL);
    return rc == 0;
}

/* A client has header_ms between two pieces, and its body a pace below which it is ended. */
static void renew_deadline(struct request *r)
{
    uint64_t all_ms = r->http->config.header_ms + r->body_seen * RATE_MS_PER_KB / 1024;
    uint64_t gone_ms = (uint64_t)(time_mono_us() - r->body_us) / 1000;
    uint64_t left_ms = all_ms > gone_ms ? all_ms - gone_ms : 1;

    conn_expect(r->conn, left_ms < r->http->config.header_ms ? left_ms : r->http->config.header_ms);
}

void body_piece(struct request *r, struct str piece)
{
    struct http_body *b = r->body;
    struct err e = {0};
    int rc = 0;

    r->body_seen += piece.n;
    renew_deadline(r);
    if (r->body_seen > limit_of(r, b->kind)) {
        refuse_size(r);
        return;
    }
    if (b->kind == BODY_JSON || b->kind == BODY_BYTES)
        rc = buf_put(&b->json, piece) < 0 ? buf_check(&b->json, &e)
             : may_turn(r)                ? turn_to_form(r, &e)
                                          : 0;
    else if (b->kind == BODY_FORM)
        rc = multipart_feed(b->form, piece, &e);
    else if (b->kind == BODY_RAW)
        rc = uploads_put(b->uploads, piece, &e);
    if (rc < 0)
        answer_error(r, &e, NULL);
    else if (b->uploads)
        uploads_pace(b->uploads);
}

/* --- JSON --- */

/* Each U+0000 of a string, which nothing here takes, becomes U+FFFD. */
static void mend_nul(struct str json)
{
    char *at;

    while (json.n && (at = memmem(json.p, json.n, "\\", 1))) {
        json = str_from(json, (size_t)(at - json.p));
        if (json.n >= 6 && memcmp(at, "\\u0000", 6) == 0)
            memcpy(at, "\\ufffd", 6);
        json = str_from(json, json.n > 1 ? 2 : 1); /* an escaped backslash is two */
    }
}

/* On any thread: touches nothing but the body. */
static void parse(void *arg)
{
    struct request *r = arg;
    struct http_body *b = r->body;

    if (r->route->flags & ROUTE_NUL)
        mend_nul(buf_str(&b->json));
    if (json_read_any(buf_str(&b->json), &b->value, &b->failed) < 0)
        b->value = NULL;
    b->parsed = true;
}

int request_value(struct request *r, json_t **ret, struct err *e)
{
    struct http_body *b = r->body;

    if (!b->parsed)
        parse(r);
    *ret = json_incref(b->value);
    if (b->value)
        return 0;
    *e = b->failed;
    return -1;
}

static int read_object(struct request *r, struct err *e)
{
    if (r->body->json.n > 0) {
        if (request_value(r, &r->json, e) < 0)
            return -1;
        json_decref(take_ptr(&r->body->value)); /* it has no other reader */
        return json_is_object(r->json) ? 0
                                       : err_set(e, ERR_CALLER, "the body must be a JSON object");
    }
    if (fields_require(r->route->body))
        return err_set(e, ERR_CALLER, "a JSON body is needed");
    r->json = json_object();
    return 0;
}

static bool read_json(struct request *r)
{
    char param[PARAM_TEXT] = "";
    struct err e;

    if (read_object(r, &e) < 0) {
        answer_fail(r, http_status_of(&e), http_type_of(&e), NULL, "%s", e.text);
        return false;
    }
    buf_done(&r->body->json);
    if (r->door->drops_nulls)
        fields_drop_nulls(r->route->body, r->json);
    if (json_check(&r->http->tables, r->json, r->route->body, false, param, &e) < 0) {
        answer_fail(r, 400, "invalid_request", param, "%s %s", param, e.text);
        return false;
    }
    return true;
}

/* --- all of it --- */

static void hand_over(struct request *r)
{
    r->stage = STAGE_HANDLER;
    r->route->handle(r);
}

static void on_written(struct request *r, const struct err *failed)
{
    if (failed)
        answer_error(r, failed, NULL);
    else
        hand_over(r);
}

static void take_body(struct request *r)
{
    struct http_body *b = r->body;
    struct err e;

    if (b->kind == BODY_JSON && !read_json(r))
        return;
    if (!r->json)
        r->json = json_object();
    if (b->form && multipart_end(b->form, &e) < 0)
        answer_error(r, &e, NULL);
    else if (b->uploads)
        uploads_end(b->uploads, on_written);
    else
        hand_over(r);
}

static void on_parsed(void *arg)
{
    struct request *r = arg;

    if (r->mhd) /* else the client has gone */
        take_body(r);
    r->pins--;
    request_settle(r);
}

void body_end(struct request *r)
{
    if (r->body->json.n <= PARSE_NOW)
        return take_body(r);
    r->pins++;
    service_work(request_service(r), parse, on_parsed, r);
}

struct str request_body(struct request *r)
{
    return buf_str(&r->body->json);
}

void body_free(struct request *r)
{
    if (!r->body)
        return;
    if (r->body_seen > TRIM_ABOVE)
        http_trim(r->http);
    buf_done(&r->body->json);
    json_decref(r->body->value);
    multipart_free(r->body->form);
    uploads_free(r->body->uploads);
    free(r->body);
}
