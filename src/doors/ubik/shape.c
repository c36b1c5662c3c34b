/* Ids, links, pages, and the shape of what is wrong: {"detail": "..."}, or for a body that does
 * not fit 422 with {"detail": [{"loc", "msg", "type"}]}. */
#include "doors/ubik/ubik_int.h"

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int64_t clock_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* --- ids --- */

static void uuid_print(char ret[UUID_MAX], uint8_t b[16], unsigned version)
{
    static const uint8_t dashes[] = {8, 13, 18, 23};
    char *p = ret;

    b[6] = (uint8_t)((b[6] & 0x0f) | version << 4);
    b[8] = (uint8_t)((b[8] & 0x3f) | 0x80);
    for (size_t i = 0; i < 16; i++) {
        for (size_t d = 0; d < COUNT(dashes); d++)
            if (p - ret == dashes[d])
                *p++ = '-';
        p += snprintf(p, 3, "%02x", b[i]);
    }
}

void uuid_make(char ret[UUID_MAX])
{
    uint8_t b[16];
    int rc = gnutls_rnd(GNUTLS_RND_RANDOM, b, sizeof(b));

    assert(rc == 0);
    uuid_print(ret, b, 4);
}

void uuid_of(char ret[UUID_MAX], const char *kind, const char *name)
{
    char text[300];
    uint8_t hash[32];
    int n = snprintf(text, sizeof(text), "retort:ubik:%s:%s", kind, name);

    n = gnutls_hash_fast(GNUTLS_DIG_SHA256, text, (size_t)n < sizeof(text) ? (size_t)n : 299, hash);
    assert(n == 0);
    uuid_print(ret, hash, 8);
}

bool uuid_is(struct str s)
{
    if (s.n != UUID_MAX - 1)
        return false;
    for (size_t i = 0; i < s.n; i++) {
        bool dash = i == 8 || i == 13 || i == 18 || i == 23;
        if (dash ? s.p[i] != '-' : !strchr("0123456789abcdefABCDEF", s.p[i]) || !s.p[i])
            return false;
    }
    return true;
}

void sandbox_id_make(char ret[SANDBOX_CHARS + 1])
{
    static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyz";
    uint8_t b[SANDBOX_CHARS * 2];
    size_t n = 0;

    while (n < SANDBOX_CHARS) {
        int rc = gnutls_rnd(GNUTLS_RND_RANDOM, b, sizeof(b));
        assert(rc == 0);
        for (size_t i = 0; i < sizeof(b) && n < SANDBOX_CHARS; i++)
            if (b[i] < 252) /* 7 times 36, so that each is as likely as the others */
                ret[n++] = digits[b[i] % 36];
    }
    ret[n] = '\0';
}

bool sandbox_id_is(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (!((s.p[i] >= 'a' && s.p[i] <= 'z') || (s.p[i] >= '0' && s.p[i] <= '9')))
            return false;
    return s.n == SANDBOX_CHARS;
}

/* --- links --- */

char *base_url(const struct ubik *u, struct request *r)
{
    struct str host = r ? request_header(r, "host") : (struct str){0};
    const char *known = u->config.public_url;
    char *text = NULL;
    int n;

    if (!known && !r)
        known = u->config.address;
    if (known && *known)
        n = asprintf(&text, "%.*s" UBIK_ROOT,
                     (int)(strlen(known) - (known[strlen(known) - 1] == '/')), known);
    else if (r)
        n = asprintf(&text, "%s://%.*s" UBIK_ROOT, request_scheme(r), (int)host.n, host.p);
    else
        return NULL;
    assert(n > 0);
    return text;
}

struct str last_segment(struct str name)
{
    size_t at = name.n;

    while (at > 0 && name.p[at - 1] != '/' && name.p[at - 1] != '\\')
        at--;
    return (struct str){name.p + at, name.n - at};
}

void url_put(struct buf *b, struct str path)
{
    struct err e;

    for (size_t i = 0; i < path.n; i++) {
        unsigned char c = (unsigned char)path.p[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                     (c && strchr("-._~/", c));
        if ((plain ? buf_put(b, (struct str){path.p + i, 1}, &e) : buf_printf(b, &e, "%%%02X", c)) <
            0)
            return;
    }
}

json_t *time_json(int64_t ms)
{
    char text[TIME_TEXT];

    if (ms == 0)
        return json_null();
    time_print(ms, text);
    return json_string(text);
}

/* --- what is wrong --- */

json_t *ubik_error(struct request *r, int status, const char *type, const char *param,
                   json_t *message)
{
    (void)status;
    return json_pack("{s:o, s:s, s:s*, s:s}", "detail", message, "code", type, "param", param,
                     "request_id", request_caller(r)->request);
}

void detail(struct request *r, int status, const char *fmt, ...)
{
    struct err e;
    va_list args;

    va_start(args, fmt);
    vsnprintf(e.text, sizeof(e.text), fmt, args);
    va_end(args);
    answer_json(r, status, json_pack("{s:o}", "detail", record_text(str_of(e.text))));
}

static json_t *loc_of(const char *where, const char *param)
{
    json_t *loc = json_pack("[s]", where);

    for (const char *p = param; *p;) {
        size_t n = strcspn(p, ".[");
        if (*p == '[')
            json_array_append_new(loc, json_integer(strtol(p + 1, NULL, 10))), n = strcspn(p, "]");
        else if (n)
            json_array_append_new(loc, record_text((struct str){p, n}));
        p += n;
        p += *p == '.' || *p == ']';
    }
    return loc;
}

void invalid(struct request *r, const char *where, const char *param, bool missing,
             const char *message)
{
    answer_json(r, 422,
                json_pack("{s:[{s:o, s:o, s:s}]}", "detail", "loc", loc_of(where, param), "msg",
                          record_text(str_of(missing ? "Field required" : message)), "type",
                          missing ? "missing" : "value_error"));
}

void detail_err(struct request *r, const struct err *e, const char *what)
{
    if (e->kind == ERR_MISSING && what)
        detail(r, 404, "%s", what);
    else
        answer_error(r, e, NULL);
}

/* --- bodies --- */

static bool is_missing(const json_t *object, const char *param)
{
    const json_t *at = object;
    char name[FIELD_PATH_MAX];

    for (const char *p = param; *p;) {
        size_t n = strcspn(p, ".");
        if (n >= sizeof(name) || strcspn(p, "[") < n)
            return false;
        memcpy(name, p, n);
        name[n] = '\0';
        at = json_object_get(at, name);
        if (!at)
            return true;
        p += n + (p[n] == '.');
    }
    return false;
}

/* Of all members those that the table knows. */
static json_t *known_members(const struct field *fields, const json_t *v)
{
    json_t *known = json_object(), *one;

    for (const struct field *f = fields; f->type != FIELD_END; f++)
        if ((one = json_object_get(v, f->name)) && !(json_is_null(one) && !f->required))
            json_object_set(known, f->name, one);
    return known;
}

json_t *body_object(struct request *r, const struct field *fields)
{
    struct str text = request_body(r);
    char param[FIELD_PATH_MAX] = "";
    json_t *v = NULL, *known;
    struct err e;

    if (json_read_any(text.n ? text : STR("{}"), &v, &e) < 0 || !json_is_object(v)) {
        json_decref(v);
        invalid(r, "body", "", false, v ? "Input should be an object" : e.text);
        return NULL;
    }
    known = known_members(fields, v);
    json_decref(v);
    if (fields_check(fields, known, param, &e) < 0) {
        invalid(r, "body", param, is_missing(known, param), e.text);
        json_decref(take_ptr(&known));
    }
    return known;
}

bool check_inputs(struct request *r, const struct field *fields, const json_t *inputs)
{
    char param[FIELD_PATH_MAX] = "", path[FIELD_PATH_MAX + 8];
    struct err e;

    if (fields_check(fields, inputs, param, &e) == 0)
        return true;
    snprintf(path, sizeof(path), "inputs.%s", param);
    invalid(r, "body", path, is_missing(inputs, param), e.text);
    return false;
}

/* --- pages --- */

static bool read_number(struct request *r, const char *name, uint64_t otherwise, uint64_t max,
                        uint64_t *ret)
{
    struct str v = request_query(r, name);
    char text[16];

    *ret = otherwise;
    if (!v.p)
        return true;
    *ret = 0;
    if (str_to_cstr(v, text, sizeof(text)) && *text && !text[strspn(text, "0123456789")])
        *ret = strtoull(text, NULL, 10);
    if (*ret >= 1 && *ret <= max)
        return true;
    snprintf(text, sizeof(text), "%s", name);
    invalid(r, "query", text, false,
            max == PAGE_LIMIT ? "Input should be a number from 1 to 100"
                              : "Input should be a number from 1 on");
    return false;
}

bool pages_read(struct request *r, struct pages *ret)
{
    return read_number(r, "page", 1, 1000000000, &ret->page) &&
           read_number(r, "limit", 20, PAGE_LIMIT, &ret->limit);
}

void pages_answer(struct request *r, const struct pages *p, json_t *items, uint64_t total)
{
    answer_json(r, 200,
                json_pack("{s:o, s:I, s:I, s:I, s:b}", "items", items, "total", (json_int_t)total,
                          "page", (json_int_t)p->page, "limit", (json_int_t)p->limit, "has_more",
                          p->page * p->limit < total));
}
