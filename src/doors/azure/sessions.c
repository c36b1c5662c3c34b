/* Sessions by their identifiers, and what a pool tells of itself. */
#include "doors/azure/azure_int.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

/* --- identifiers --- */

/* Letters, digits, punctuation of ASCII: what the newest version of the interface allows. */
bool identifier_check(struct visit *v)
{
    struct str id = visit_identifier(v);

    if (!id.p) {
        visit_invalid(v, "identifier", "the query parameter identifier is needed");
        return false;
    }
    if (id.n < IDENTIFIER_MIN || id.n > IDENTIFIER_MAX) {
        visit_fail(v, 400, "InvalidLengthOfSessionIdentifier",
                   "the identifier must have %d to %d characters", IDENTIFIER_MIN, IDENTIFIER_MAX);
        return false;
    }
    for (size_t i = 0; i < id.n; i++)
        if (id.p[i] <= ' ' || id.p[i] == 0x7f) {
            visit_fail(v, 400, "InvalidSessionIdentifier",
                       "the identifier has letters, digits and punctuation of ASCII alone");
            return false;
        }
    return true;
}

static void on_reached(void *arg, const struct session_info *info, const struct err *failed)
{
    struct visit *v = arg;

    if (failed) {
        visit_error(v, failed, "NoSessionFoundError");
        return;
    }
    memcpy(v->session, info->row->id, sizeof(v->session));
    v->is_new = !info->existed || info->state == SESSION_ASLEEP;
    v->ready_us = time_mono_us();
    answer_header(v->r, "x-ms-session-guid", v->session);
    answer_header(v->r, "x-ms-new-allocation", v->is_new ? "true" : "false");
    v->then(v);
}

void session_reach(struct visit *v, bool make)
{
    const struct session_spec spec = {.pool = str_of(v->pool_name), .name = visit_identifier(v)};

    if (!identifier_check(v))
        return;
    if (make)
        service_session_create(visit_service(v), visit_caller(v), &spec, on_reached, v);
    else
        service_session_named(visit_service(v), visit_caller(v), spec.pool, spec.name, on_reached,
                              v);
}

/* --- one session --- */

static json_t *show(const struct session_info *info)
{
    const struct session_row *row = info->row;
    char etag[48];

    snprintf(etag, sizeof(etag), "%lld", (long long)row->used_ms);
    return json_pack("{s:o, s:o, s:o, s:o, s:s}", "identifier", record_text(str_of(row->name)),
                     "createdAt", time_value(row->created_ms), "lastAccessedAt",
                     time_value(row->used_ms ? row->used_ms : row->created_ms), "expireAt",
                     time_value(info->sleeps_ms ? info->sleeps_ms : row->expires_ms), "etag", etag);
}

static void on_shown(void *arg, const struct session_info *info, const struct err *failed)
{
    struct visit *v = arg;

    if (failed)
        visit_error(v, failed, "NoSessionFoundError");
    else
        visit_answer(v, 200, show(info));
}

void op_session_get(struct visit *v)
{
    service_session_get(visit_service(v), visit_caller(v), str_of(v->session), on_shown, v);
}

static void on_deleted(void *arg, const struct err *failed)
{
    struct visit *v = arg;

    if (failed)
        visit_error(v, failed, "NoSessionFoundError");
    else
        answer_empty(v->r, 204);
}

void op_session_delete(struct visit *v)
{
    service_session_delete(visit_service(v), visit_caller(v), str_of(v->session), on_deleted, v);
}

static void on_stopped(void *arg, const struct err *failed)
{
    struct visit *v = arg;
    struct str id = visit_identifier(v);
    char text[IDENTIFIER_MAX + 128];

    if (failed) {
        visit_error(v, failed, "NoSessionFoundError");
        return;
    }
    snprintf(text, sizeof(text), "Session %.*s in session pool %s stopped.", (int)id.n, id.p,
             v->pool_name);
    answer_text(v->r, 200, "text/plain", str_of(text));
}

void op_session_stop(struct visit *v)
{
    service_session_delete(visit_service(v), visit_caller(v), str_of(v->session), on_stopped, v);
}

/* --- all of them --- */

/*
 * The service lists those of all pools, newest first, in pages of its own; what belongs to the pool
 * is picked out here. A client may skip a number of them. nextLink does not: it names the row to go
 * on from, so that none is missed or shown twice because another came or went meanwhile.
 */
struct listing {
    struct visit *v;
    json_t *sessions; /* owned: array */
    size_t skip, seen, looked;
    struct mark {
        char id[ID_MAX];
        int64_t ms;
    } last, shown; /* looked at, and put into the answer */
};

static void listing_free(void *p)
{
    struct listing *g = p;

    json_decref(g->sessions);
    free(g);
}

static void mark_set(struct mark *m, const struct session_row *row)
{
    memcpy(m->id, row->id, sizeof(m->id));
    m->ms = row->created_ms;
}

/* "1789000000000.sess_...": when it was made, and its id. */
static bool mark_read(struct str token, struct mark *ret)
{
    char text[ID_MAX + 24], *end;

    if (!str_to_cstr(token, text, sizeof(text)) || !isdigit((unsigned char)*text))
        return false;
    errno = 0;
    ret->ms = strtoll(text, &end, 10);
    if (errno || *end != '.' || !id_is(str_of(end + 1), "sess_"))
        return false;
    snprintf(ret->id, sizeof(ret->id), "%s", end + 1);
    return true;
}

static void list_more(struct listing *g);

/* next: the row to go on from, or NULL. */
static void answer_list(struct listing *g, const struct mark *next)
{
    char url[URL_TEXT_MAX];
    struct str version = visit_version(g->v);
    json_t *body = json_pack("{s:O}", "sessions", g->sessions);

    if (next)
        json_object_set_new(
            body, "nextLink",
            json_sprintf("%s/listSessions?skipToken=%lld.%s&skip=%zu&api-version=%.*s",
                         visit_url(g->v, url), (long long)next->ms, next->id,
                         g->skip > g->seen ? g->skip - g->seen : 0, (int)version.n, version.p));
    visit_answer(g->v, 200, body);
}

static void on_listed(void *arg, const struct session_info *infos, size_t count, bool more,
                      const struct err *failed)
{
    struct listing *g = arg;

    if (failed) {
        visit_error(g->v, failed, "NoSessionFoundError");
        return;
    }
    for (size_t i = 0; i < count; i++) {
        const struct session_row *row = infos[i].row;
        mark_set(&g->last, row);
        if (!row->name || strcmp(row->pool, g->v->pool_name) != 0 || g->seen++ < g->skip)
            continue;
        if (json_array_size(g->sessions) == SESSIONS_PAGE) {
            answer_list(g, &g->shown);
            return;
        }
        json_array_append_new(g->sessions, show(&infos[i]));
        mark_set(&g->shown, row);
    }
    g->looked += count;
    if (!more || count == 0)
        answer_list(g, NULL);
    else if (g->looked >= SESSIONS_SEEN)
        answer_list(g, &g->last);
    else
        list_more(g);
}

static void list_more(struct listing *g)
{
    struct page page = {
        .after = *g->last.id ? g->last.id : NULL, .after_ms = g->last.ms, .limit = SESSIONS_LOOK};

    service_session_list(visit_service(g->v), visit_caller(g->v), page, on_listed, g);
}

void op_sessions_list(struct visit *v)
{
    struct str skip = request_query(v->r, "skip"), token = request_query(v->r, "skipToken");
    struct listing *g = mem_zalloc(sizeof(*g));
    char *end = NULL;

    *g = (struct listing){.v = v, .sessions = json_array()};
    request_keep(v->r, listing_free, g);
    if (skip.n)
        g->skip = strtoul(skip.p, &end, 10);
    if (skip.n && (!isdigit((unsigned char)*skip.p) || *end || g->skip > SESSIONS_SEEN))
        visit_invalid(v, "skip", "skip is a number, %d at most", SESSIONS_SEEN);
    else if (token.n && !mark_read(token, &g->last))
        visit_invalid(v, "skipToken", "this is none of a nextLink of ours");
    else
        list_more(g);
}

/* --- the pool --- */

void op_metadata(struct visit *v)
{
    json_t *packages = json_array(), *version;
    json_t *body;
    const char *name;

    json_object_foreach(v->pool.packages, name, version)
        json_array_append_new(packages, json_pack("{s:s, s:O}", "name", name, "version", version));
    body =
        json_pack("{s:[{s:s, s:s}], s:o, s:{s:s, s:s, s:s, s:s}}", "runtimes", "name", "Python",
                  "version", v->pool.python, "preInstalledPackages", packages, "jupyterKernel",
                  "name", "IPython", "version", v->pool.python, "projectUrl", "https://ipython.org",
                  "description", "IPython in a sealed sandbox of retort; no Jupyter server");
    json_object_set_new(body, "createdAt", time_value(v->pool.created_ms));
    json_object_set_new(body, "lastUpdatedAt", time_value(v->pool.updated_ms));
    visit_answer(v, 200, body);
}

/* The probes of a custom image. */
void op_health(struct visit *v)
{
    struct str text = v->pool.up ? STR("\"healthy\"") : STR("\"unhealthy\"");

    answer_text(v->r, v->pool.up ? 200 : 500, "application/json", text);
}
