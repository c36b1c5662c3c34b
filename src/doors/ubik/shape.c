/*
 * Ids, links, errors, pages, items. An error is {"detail": "..."}. For an invalid body it is 422
 * with {"detail": [{"loc", "msg", "type"}]}.
 */
#include "doors/ubik/ubik_int.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

/* --- ids --- */

void uuid_of(char ret[UUID_MAX], const char *kind, const char *name)
{
    char text[300];

    snprintf(text, sizeof(text), "retort:ubik:%s:%s", kind, name);
    uuid_from(ret, str_of(text));
}

void sandbox_id_make(char ret[SANDBOX_CHARS + 1])
{
    static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyz";
    uint8_t b[SANDBOX_CHARS * 2];
    size_t n = 0;

    while (n < SANDBOX_CHARS) {
        random_bytes(b, sizeof(b));
        for (size_t i = 0; i < sizeof(b) && n < SANDBOX_CHARS; i++)
            if (b[i] < 252) /* 7 times 36: all digits are equally likely */
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

char *base_url(const char *server)
{
    char *text = NULL;

    if (server && *server && asprintf(&text, "%s" UBIK_ROOT, server) < 0)
        abort();
    return text;
}

/* --- errors --- */

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

/* The members that the table has. */
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
    char param[FIELD_PATH_MAX] = "";
    json_t *v = request_body(r).n == 0 ? json_object() : NULL, *known;
    struct err e;

    if ((!v && request_value(r, &v, &e) < 0) || !json_is_object(v)) {
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

bool check_inputs(struct request *r, const struct field *fields, json_t *inputs)
{
    char param[FIELD_PATH_MAX] = "", path[FIELD_PATH_MAX + 8];
    struct err e;

    fields_drop_nulls(fields, inputs);
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

/* "1763467200000-ID": when the row was made, and its id. */
static bool read_after(struct request *r, struct pages *ret)
{
    struct str v = request_query(r, "after");
    size_t n = 0;

    if (!v.p)
        return true;
    while (n < v.n && n < 15 && isdigit((unsigned char)v.p[n]))
        n++;
    if (n > 0 && n < v.n && v.p[n] == '-' && !request_query(r, "page").p &&
        str_to_cstr(str_from(v, n + 1), ret->after, sizeof(ret->after)) && *ret->after)
        ret->after_ms = strtoll(v.p, NULL, 10);
    if (ret->after_ms > 0)
        return true;
    invalid(r, "query", "after", false, "Input should be the next of an answer, without a page");
    return false;
}

bool pages_read(struct request *r, struct pages *ret)
{
    *ret = (struct pages){0};
    return read_number(r, "page", 1, 1000000000, &ret->page) &&
           read_number(r, "limit", 20, PAGE_LIMIT, &ret->limit) && read_after(r, ret);
}

struct page pages_wanted(const struct pages *p)
{
    return (struct page){.after = *p->after ? p->after : NULL,
                         .after_ms = p->after_ms,
                         .skip = (p->page - 1) * p->limit,
                         .limit = p->limit};
}

void pages_last(struct pages *p, const char *id, int64_t created_ms)
{
    snprintf(p->last, sizeof(p->last), "%s", id);
    p->last_ms = created_ms;
}

static json_t *next_of(const struct pages *p, bool more)
{
    char next[ID_MAX + 24];

    if (!more || !*p->last)
        return NULL;
    snprintf(next, sizeof(next), "%lld-%s", (long long)p->last_ms, p->last);
    return json_string(next);
}

void pages_answer(struct request *r, const struct pages *p, json_t *items, uint64_t total)
{
    bool more = p->page * p->limit < total;

    answer_json(r, 200,
                json_pack("{s:o, s:I, s:I, s:I, s:b, s:o*}", "items", items, "total",
                          (json_int_t)total, "page", (json_int_t)p->page, "limit",
                          (json_int_t)p->limit, "has_more", (int)more, "next", next_of(p, more)));
}

/* --- items --- */

void item_put(const struct end_user *user, const char *kind, struct item_row row, uint64_t max,
              const json_t *body, done_fn *fn, void *arg)
{
    AUTO_FREE char *text = record_dump(body, false, NULL);

    row.kind = (char *)(uintptr_t)kind;
    row.body = text;
    service_item_put_up_to(user->sv, &user->caller, &row, max, fn, arg);
}

int64_t item_expiry_ms(const struct ubik *u)
{
    return u->config.keep_ms ? time_now_ms() + (int64_t)u->config.keep_ms : 0;
}

struct item_list {
    struct request *r; /* borrowed */
    struct pages pages;
    item_show_fn *show;
};

static void on_items(void *arg, const struct item_row *items, size_t count, uint64_t total,
                     const struct err *failed)
{
    struct item_list *l = arg;
    json_t *list;

    if (failed) {
        detail_err(l->r, failed, NULL);
        return;
    }
    list = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(list, l->show(request_ctx(l->r), &items[i]));
    if (count > 0)
        pages_last(&l->pages, items[count - 1].id, items[count - 1].created_ms);
    pages_answer(l->r, &l->pages, list, total);
}

void items_answer(struct request *r, const char *kind, enum item_view view, item_show_fn *show)
{
    struct item_list *l = mem_zalloc(sizeof(*l));
    struct end_user user;

    *l = (struct item_list){.r = r, .show = show};
    request_keep(r, free, l);
    if (!end_user_read(r, &user) || !pages_read(r, &l->pages))
        return;
    const struct item_filter f = {.kind = kind,
                                  .view = *user.id ? view : ITEMS_ALL,
                                  .owner = user.id,
                                  .page = pages_wanted(&l->pages),
                                  .count = true};
    service_item_list(request_service(r), request_caller(r), &f, on_items, l);
}
