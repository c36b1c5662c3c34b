/*
 * URIs of resources: files of workspaces, and outputs and images of executions.
 *
 *   retort://sessions/{session_id}/files/{+path}
 *   retort://executions/{execution_id}/output
 *   retort://executions/{execution_id}/images/{number}
 *
 * The first two take ?offset=&limit=, in bytes. A path is percent-encoded, and decoded once.
 */
#include "doors/mcp/resource.h"

#include <stdio.h>

#define SESSIONS   "retort://sessions/"
#define EXECUTIONS "retort://executions/"

/* --- making --- */

const char *uri_of_file(char ret[URI_MAX], struct str session, struct str path)
{
    if (path.n >= SPACE_PATH_MAX)
        return NULL;
    assert(session.n < ID_MAX);
    url_encode(ret + snprintf(ret, URI_MAX, SESSIONS "%.*s/files/", (int)session.n, session.p),
               path);
    return ret;
}

const char *uri_of_output(char ret[URI_MAX], struct str execution)
{
    snprintf(ret, URI_MAX, EXECUTIONS "%.*s/output", (int)execution.n, execution.p);
    return ret;
}

const char *uri_of_image(char ret[URI_MAX], struct str execution, size_t n)
{
    snprintf(ret, URI_MAX, EXECUTIONS "%.*s/images/%zu", (int)execution.n, execution.p, n);
    return ret;
}

/* --- reading --- */

int uri_decode(struct str text, char ret[SPACE_PATH_MAX])
{
    size_t n = 0;

    for (size_t i = 0; i < text.n; i++) {
        int c = (unsigned char)text.p[i];
        if (c == '%') {
            c = percent_at(text, i);
            i += 2;
        }
        if (c <= 0 || n == SPACE_PATH_MAX - 1)
            return -1;
        ret[n++] = (char)c;
    }
    ret[n] = '\0';
    return 0;
}

/* Takes prefix off the front. */
static bool eat(struct str *s, const char *prefix)
{
    size_t n = strlen(prefix);

    if (s->n < n || memcmp(s->p, prefix, n) != 0)
        return false;
    s->p += n;
    s->n -= n;
    return true;
}

/* Takes what stands before c off the front, and c; everything when there is no c. */
static struct str eat_until(struct str *s, char c)
{
    const char *at = memchr(s->p, c, s->n);
    struct str word = {s->p, at ? (size_t)(at - s->p) : s->n};
    size_t gone = word.n + (at != NULL);

    s->p += gone;
    s->n -= gone;
    return word;
}

static int read_number(struct str text, uint64_t *ret, struct err *e)
{
    uint64_t v = 0;

    if (text.n == 0 || text.n > WINDOW_DIGITS)
        return err_set(e, ERR_CALLER, "offset and limit are numbers of bytes");
    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] < '0' || text.p[i] > '9')
            return err_set(e, ERR_CALLER, "offset and limit are numbers of bytes");
        v = v * 10 + (uint64_t)(text.p[i] - '0');
    }
    *ret = v;
    return 0;
}

static int read_query(struct uri *u, struct str query, struct err *e)
{
    while (query.n > 0) {
        struct str pair = eat_until(&query, '&'), name = eat_until(&pair, '=');
        uint64_t *to = str_is(name, "offset")  ? &u->offset
                       : str_is(name, "limit") ? &u->limit
                                               : NULL;
        if (!to || u->kind == URI_IMAGE)
            return err_set(e, ERR_CALLER,
                           "nothing but offset and limit, of a file or an output, "
                           "may stand behind the '?'");
        if (read_number(pair, to, e) < 0)
            return -1;
        u->is_part = true;
        if (to == &u->limit && u->limit == 0)
            return err_set(e, ERR_CALLER, "a limit of 0 leaves nothing to read");
    }
    return 0;
}

static int read_file(struct uri *u, struct str rest, struct err *e)
{
    struct str id = eat_until(&rest, '/');
    char path[SPACE_PATH_MAX];

    u->kind = URI_FILE;
    if (!id_is(id, "sess_") || !eat(&rest, "files/"))
        return 0;
    if (uri_decode(rest, path) < 0)
        return err_set(e, ERR_CALLER, "the path is not percent-encoded, or too long");
    if (space_path_clean(str_of(path), u->path, e) < 0)
        return -1;
    snprintf(u->id, sizeof(u->id), "%.*s", (int)id.n, id.p);
    return 0;
}

static void read_execution(struct uri *u, struct str rest)
{
    struct str id = eat_until(&rest, '/');
    uint64_t n = 0;
    struct err e;

    u->kind = URI_OUTPUT;
    if (eat(&rest, "images/")) {
        u->kind = URI_IMAGE;
        if (read_number(rest, &n, &e) < 0)
            return;
        u->image = (size_t)n;
    } else if (!str_is(rest, "output")) {
        return;
    }
    if (id_is(id, "exec_"))
        snprintf(u->id, sizeof(u->id), "%.*s", (int)id.n, id.p);
}

int uri_read(struct str text, struct uri *ret, struct err *e)
{
    struct str query = text, rest = eat_until(&query, '?');

    *ret = (struct uri){.kind = URI_OTHER};
    if (eat(&rest, EXECUTIONS))
        read_execution(ret, rest);
    else if (!eat(&rest, SESSIONS))
        return 0;
    else if (read_file(ret, rest, e) < 0)
        return -1;
    return read_query(ret, query, e);
}
