/*
 * Targets, paths and queries: a stranger's bytes against the route tables.
 *
 * A path is matched as it was sent and decoded afterwards, once, parameter by
 * parameter: an escape can never make a slash, a literal or a "?" that the match did
 * not see.
 */
#include "doors/http/http_int.h"

#include <strings.h>

bool str_same(struct str a, const char *b)
{
    return a.n == strlen(b) && (a.n == 0 || strncasecmp(a.p, b, a.n) == 0);
}

/* --- escapes --- */

int percent_decode(struct str in, bool plus, char *ret, size_t *ret_n, struct err *e)
{
    size_t n = 0;

    for (size_t i = 0; i < in.n; i++) {
        int c = (unsigned char)in.p[i];
        if (c == '%') {
            c = percent_at(in, i);
            i += 2;
            if (c < 0)
                return err_set(e, ERR_CALLER, "a %% is not followed by two hexadecimal digits");
        } else if (plus && c == '+') {
            c = ' ';
        }
        if (c == 0)
            return err_set(e, ERR_CALLER, "a NUL byte");
        ret[n++] = (char)c;
    }
    ret[n] = '\0';
    *ret_n = n;
    return 0;
}

static int check_bytes(struct str s, const char *what, struct err *e)
{
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if (c <= ' ' || c == 0x7f || c == '#')
            return err_set(e, ERR_CALLER, "the %s holds a character that must be escaped", what);
        if (c == '%' && percent_at(s, i) < 0)
            return err_set(e, ERR_CALLER,
                           "a %% in the %s is not followed by two hexadecimal digits", what);
        if (c == '%' && percent_at(s, i) == 0)
            return err_set(e, ERR_CALLER, "the %s holds a NUL byte", what);
    }
    return 0;
}

int target_split(struct str target, struct str *ret_path, struct str *ret_query, struct err *e)
{
    const char *mark = target.n ? memchr(target.p, '?', target.n) : NULL;

    *ret_path = (struct str){target.p, mark ? (size_t)(mark - target.p) : target.n};
    *ret_query = mark ? (struct str){mark + 1, target.n - ret_path->n - 1} : (struct str){0};
    if (target.n == 0 || target.p[0] != '/')
        return err_set(e, ERR_CALLER, "the request target must be a path that begins with /");
    if (check_bytes(*ret_path, "path", e) < 0 || check_bytes(*ret_query, "query", e) < 0)
        return -1;
    return 0;
}

/* --- paths --- */

/* Cuts the next segment off a path that begins with a slash; false at its end. */
static bool segment(struct str *path, struct str *ret)
{
    const char *end;

    if (path->n == 0)
        return false;
    path->p++, path->n--; /* the slash */
    end = path->n ? memchr(path->p, '/', path->n) : NULL;
    *ret = (struct str){path->p, end ? (size_t)(end - path->p) : path->n};
    path->p += ret->n;
    path->n -= ret->n;
    return true;
}

static bool is_rest(struct str name)
{
    return name.n > 3 && memcmp(name.p + name.n - 3, "...", 3) == 0;
}

bool path_fits(const char *pattern, struct str path, struct http_pair ret[PARAMS_MAX],
               size_t *ret_count)
{
    struct str left = str_of(pattern), want, have;

    *ret_count = 0;
    while (segment(&left, &want)) {
        if (!segment(&path, &have))
            return false;
        if (want.n < 2 || want.p[0] != '{') {
            if (!str_eq(want, have))
                return false;
            continue;
        }
        assert(*ret_count < PARAMS_MAX);
        struct str name = {want.p + 1, want.n - 2};
        bool rest = is_rest(name);
        if (rest) {
            have.n += path.n;
            path.n = 0;
            name.n -= 3;
        }
        if (have.n == 0)
            return false;
        ret[(*ret_count)++] = (struct http_pair){name, have, rest};
    }
    return path.n == 0;
}

/* Only a parameter for the rest of a path may hold slashes and dots; its door cleans them. */
int path_param(struct http_pair *p, char *room, struct err *e)
{
    size_t n;

    if (percent_decode(p->value, false, room, &n, e) < 0)
        return -1;
    p->value = (struct str){room, n};
    if (p->rest)
        return 0;
    if (memchr(room, '/', n))
        return err_set(e, ERR_CALLER, "it may not hold a slash");
    if (str_is(p->value, ".") || str_is(p->value, ".."))
        return err_set(e, ERR_CALLER, "it may not be \"%s\"", room);
    return 0;
}

/* --- queries --- */

int query_split(struct str query, char *room, struct http_pair ret[QUERY_MAX], size_t *ret_count,
                struct err *e)
{
    struct str rest = query.n ? query : (struct str){0}, item;
    size_t n = 0;

    *ret_count = 0;
    while (str_next(&rest, '&', &item)) {
        const char *equals = item.n ? memchr(item.p, '=', item.n) : NULL;
        struct str name = {item.p, equals ? (size_t)(equals - item.p) : item.n};
        struct str value = {equals ? equals + 1 : item.p + item.n,
                            equals ? item.n - name.n - 1 : 0};
        if (item.n == 0)
            continue;
        if (*ret_count == QUERY_MAX)
            return err_set(e, ERR_CALLER, "more than %d query parameters", QUERY_MAX);
        struct http_pair *p = &ret[(*ret_count)++];
        if (percent_decode(name, true, room, &n, e) < 0)
            return -1;
        p->name = (struct str){room, n};
        room += n + 1;
        if (percent_decode(value, true, room, &n, e) < 0)
            return -1;
        p->value = (struct str){room, n};
        room += n + 1;
        if (str_utf8_len(p->name) != p->name.n || str_utf8_len(p->value) != p->value.n)
            return err_set(e, ERR_CALLER, "the query is not UTF-8");
    }
    return 0;
}
