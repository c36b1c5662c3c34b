/*
 * Targets as strangers send them: split, matched against patterns, decoded once, their
 * query taken apart. Nothing that comes out holds a NUL, and a parameter that takes no
 * slash has none.
 *
 * links: src/doors/http/route.c
 */
#include "doors/http/http_int.h"

#include "support/fuzz.h"

static const char *const patterns[] = {
    "/", "/v1/a", "/v1/a/{id}", "/v1/a/{id}/b", "/v1/a/{id}/b/{path...}", "/{one}/{two}/{three}",
};

static void match(struct str path)
{
    struct http_pair params[PARAMS_MAX];
    size_t count;
    struct err e;

    for (size_t i = 0; i < COUNT(patterns); i++) {
        if (!path_fits(patterns[i], path, params, &count))
            continue;
        EXPECT(count <= PARAMS_MAX);
        for (size_t p = 0; p < count; p++) {
            size_t sent = params[p].value.n;
            EXPECT(sent > 0);
            char *room = malloc(sent + 1);
            if (path_param(&params[p], room, &e) == 0) {
                struct str v = params[p].value;
                EXPECT(v.n <= sent && room[v.n] == '\0' && !memchr(v.p, '\0', v.n));
                EXPECT(params[p].rest || (!memchr(v.p, '/', v.n) && !str_is(v, "..")));
            }
            free(room);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str path, query;
    struct http_pair pairs[QUERY_MAX];
    size_t count;
    struct err e;

    if (target_split((struct str){(const char *)data, size}, &path, &query, &e) < 0)
        return 0;
    EXPECT(path.n > 0 && path.n + query.n <= size);
    match(path);
    char *room = malloc(query.n + 2 * QUERY_MAX);
    if (query_split(query, room, pairs, &count, &e) == 0) {
        EXPECT(count <= QUERY_MAX);
        for (size_t i = 0; i < count; i++) {
            EXPECT(strlen(pairs[i].name.p) == pairs[i].name.n);
            EXPECT(strlen(pairs[i].value.p) == pairs[i].value.n);
        }
    }
    free(room);
    return 0;
}
