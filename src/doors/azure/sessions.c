/* Sessions by their identifiers, and what a pool tells of itself. */
#include "doors/azure/azure_int.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

/* --- identifiers --- */

/* Letters, digits, punctuation of ASCII: what the newest version of the interface allows. The same
 * in a query and as environmentId of a tool. */
const char *identifier_problem(struct str id, struct err *e)
{
    if (id.n < IDENTIFIER_MIN || id.n > IDENTIFIER_MAX) {
        err_set(e, ERR_CALLER, "the identifier must have %d to %d characters", IDENTIFIER_MIN,
                IDENTIFIER_MAX);
        return "InvalidLengthOfSessionIdentifier";
    }
    for (size_t i = 0; i < id.n; i++)
        if ((unsigned char)id.p[i] <= ' ' || (unsigned char)id.p[i] >= 0x7f) {
            err_set(e, ERR_CALLER,
                    "the identifier has letters, digits and punctuation of ASCII alone");
            return "InvalidSessionIdentifier";
        }
    return NULL;
}

const char *identifier_escape(struct str id, char ret[3 * IDENTIFIER_MAX + 1])
{
    static const char plain[] = "-_.~";
    size_t n = 0;

    for (size_t i = 0; i < id.n && i < IDENTIFIER_MAX; i++) {
        char c = id.p[i];
        if (isalnum((unsigned char)c) || memchr(plain, c, sizeof(plain) - 1))
            ret[n++] = c;
        else
            n += (size_t)snprintf(ret + n, 4, "%%%02X", (unsigned)(unsigned char)c);
    }
    ret[n] = '\0';
    return ret;
}

/* Checks the length and the characters of the identifier. False: the request has been answered. */
static bool identifier_check(struct azure_request *v)
{
    struct str id = azure_identifier(v);
    const char *code;
    struct err e;

    if (!id.p) {
        azure_invalid(v, "identifier", "the query parameter identifier is needed");
        return false;
    }
    code = identifier_problem(id, &e);
    if (code)
        azure_fail(v, 400, code, "%s", e.text);
    return !code;
}

static void on_reached(void *arg, const struct session_info *info, const struct err *failed)
{
    struct azure_request *v = arg;

    if (failed && failed->kind == ERR_MISSING && op_is_list(v->then)) {
        v->then(v); /* of a session that nobody has used yet: an empty list */
        return;
    }
    if (failed) {
        azure_fail_err(v, failed, "NoSessionFoundError");
        return;
    }
    memcpy(v->session, info->row->id, sizeof(v->session));
    v->is_new = !info->existed || info->state == SESSION_ASLEEP;
    v->ready_us = time_mono_us();
    answer_header(v->r, "x-ms-session-guid", v->session);
    answer_header(v->r, "x-ms-new-allocation", v->is_new ? "true" : "false");
    v->then(v);
}

/* make: only for a POST. A GET makes nothing: a page of another site can have a browser send it. */
void session_reach(struct azure_request *v, bool make)
{
    const struct session_spec spec = {
        .pool = str_of(v->pool_name), .name = azure_identifier(v), .asleep = true};

    if (!identifier_check(v))
        return;
    if (make)
        service_session_create(azure_service(v), azure_caller(v), &spec, on_reached, v);
    else
        service_session_named(azure_service(v), azure_caller(v), spec.pool, spec.name, on_reached,
                              v);
}

/* --- one session --- */

static json_t *show(const struct session_info *info)
{
    const struct session_row *row = info->row;
    char etag[48];

    snprintf(etag, sizeof(etag), "%lld", (long long)row->used_ms);
    return json_pack("{s:o, s:o, s:o, s:o, s:s}", "identifier", record_text(str_of(row->name)),
                     "createdAt", time_json(row->created_ms), "lastAccessedAt",
                     time_json(row->used_ms ? row->used_ms : row->created_ms), "expireAt",
                     time_json(info->sleeps_ms ? info->sleeps_ms : row->expires_ms), "etag", etag);
}

static void on_shown(void *arg, const struct session_info *info, const struct err *failed)
{
    struct azure_request *v = arg;

    if (failed)
        azure_fail_err(v, failed, "NoSessionFoundError");
    else
        azure_answer(v, 200, show(info));
}

void op_session_get(struct azure_request *v)
{
    service_session_get(azure_service(v), azure_caller(v), str_of(v->session), on_shown, v);
}

static void on_deleted(void *arg, const struct err *failed)
{
    struct azure_request *v = arg;

    if (failed)
        azure_fail_err(v, failed, "NoSessionFoundError");
    else
        answer_empty(v->r, 204);
}

void op_session_delete(struct azure_request *v)
{
    service_session_delete(azure_service(v), azure_caller(v), str_of(v->session), on_deleted, v);
}

static void on_stopped(void *arg, const struct err *failed)
{
    struct azure_request *v = arg;
    struct str id = azure_identifier(v);
    char text[IDENTIFIER_MAX + 128];

    if (failed) {
        azure_fail_err(v, failed, "NoSessionFoundError");
        return;
    }
    snprintf(text, sizeof(text), "Session %.*s in session pool %s stopped.", (int)id.n, id.p,
             v->pool_name);
    answer_text(v->r, 200, "text/plain", str_of(text));
}

void op_session_stop(struct azure_request *v)
{
    service_session_delete(azure_service(v), azure_caller(v), str_of(v->session), on_stopped, v);
}

/* --- all of them --- */

/* "1789000000000.sess_...": when it was made, and its id, which is of ret_after. */
static bool token_read(struct str token, char ret_after[ID_MAX], struct page *ret)
{
    char text[ID_MAX + 24], *end;

    if (!str_to_cstr(token, text, sizeof(text)) || !isdigit((unsigned char)*text))
        return false;
    errno = 0;
    ret->after_ms = strtoll(text, &end, 10);
    if (errno || *end != '.' || !id_is(str_of(end + 1), "sess_"))
        return false;
    snprintf(ret_after, ID_MAX, "%s", end + 1);
    ret->after = ret_after;
    return true;
}

/* A client may skip a number of sessions. nextLink does not: it names the row to go on from, so
 * that none is missed or shown twice because another came or went meanwhile. */
static void on_listed(void *arg, const struct session_info *infos, size_t count, bool more,
                      const struct err *failed)
{
    struct azure_request *v = arg;
    json_t *body, *sessions = json_array();
    char url[URL_TEXT_MAX];
    struct str version = azure_version(v);

    for (size_t i = 0; !failed && i < count; i++)
        json_array_append_new(sessions, show(&infos[i]));
    body = json_pack("{s:o}", "sessions", sessions);
    if (!failed && more && count > 0)
        json_object_set_new(body, "nextLink",
                            json_sprintf("%s/listSessions?skipToken=%lld.%s&api-version=%.*s",
                                         azure_url(v, url),
                                         (long long)infos[count - 1].row->created_ms,
                                         infos[count - 1].row->id, (int)version.n, version.p));
    if (!failed)
        return azure_answer(v, 200, body);
    json_decref(body);
    azure_fail_err(v, failed, "NoSessionFoundError");
}

void op_sessions_list(struct azure_request *v)
{
    struct str skip = request_query(v->r, "skip"), token = request_query(v->r, "skipToken");
    struct page page = {.pool = v->pool_name, .name_prefix = "", .limit = SESSIONS_PAGE};
    char after[ID_MAX], *end = NULL;

    if (skip.n)
        page.skip = strtoul(skip.p, &end, 10);
    if (skip.n && (!isdigit((unsigned char)*skip.p) || *end || page.skip > SKIP_MAX))
        azure_invalid(v, "skip", "skip is a number, %d at most", SKIP_MAX);
    else if (token.n && !token_read(token, after, &page))
        azure_invalid(v, "skipToken", "this is none of a nextLink of ours");
    else
        service_session_list(azure_service(v), azure_caller(v), page, on_listed, v);
}

/* --- the pool --- */

void op_metadata(struct azure_request *v)
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
    json_object_set_new(body, "createdAt", time_json(v->pool.created_ms));
    json_object_set_new(body, "lastUpdatedAt", time_json(v->pool.updated_ms));
    azure_answer(v, 200, body);
}

/* The probes of a custom image. */
void op_health(struct azure_request *v)
{
    struct str text = v->pool.up ? STR("\"healthy\"") : STR("\"unhealthy\"");

    answer_text(v->r, v->pool.up ? 200 : 500, "application/json", text);
}
