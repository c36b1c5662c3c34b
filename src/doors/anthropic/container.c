/*
 * The container of a message, and routes for containers.
 *
 * A message uses the container that it names, else the one of the calls in its history, else a new
 * one. A new one is only an id at first: the first call makes the session, so that a message
 * without a call costs none, and that nothing is there before a person has agreed to the call. The
 * id is promised meanwhile: a client that has read it in the first event of a stream may send it
 * back.
 *
 * All uploads of the conversation are in $INPUT_DIR before code runs.
 *
 * A file with the name of an upload and other bytes may be another upload, or one that code has
 * changed. It is not overwritten: the upload gets a name with a part of its id.
 */
#include "doors/anthropic/turn_int.h"

#include <stdio.h>
#include <stdlib.h>

#define ID_SHOWN     6  /* characters of an id in a name */
#define END_SHOWN    32 /* of an extension */
#define PROMISED_MAX 16384

/* --- ids and values --- */

void container_of_session(const char *session, char ret[ID_MAX])
{
    assert(id_is(str_of(session), SESSION_PREFIX));
    snprintf(ret, ID_MAX, CONTAINER_PREFIX "%s", session + strlen(SESSION_PREFIX));
}

/* False: it is no id of a container. */
static bool container_to_session(struct str container, char ret[ID_MAX])
{
    size_t n = strlen(CONTAINER_PREFIX);

    if (!id_is(container, CONTAINER_PREFIX))
        return false;
    snprintf(ret, ID_MAX, SESSION_PREFIX "%.*s", (int)(container.n - n), container.p + n);
    return true;
}

json_t *container_value(const char *session, int64_t expires_ms, json_t *skills)
{
    char id[ID_MAX];

    container_of_session(session, id);
    return json_pack("{s:s, s:o, s:O?}", "id", id, "expires_at", time_json(expires_ms), "skills",
                     json_array_size(skills) > 0 ? skills : NULL);
}

/* --- the container of a message --- */

struct upload_file {
    const char *id; /* borrowed from the uploads */
    json_t *part;   /* borrowed: tells the model where the file is */
    char *name;     /* owned */
    char hash[HASH_HEX];
    char path[SPACE_PATH_MAX];
    bool there;
};

struct container_setup {
    struct turn *turn; /* borrowed: it waits for the container */
    bool inferred;     /* the history names the container, not the request */
    char wanted[ID_MAX];
    int64_t expires_ms;
    struct upload_file *files; /* owned */
    size_t count, at;
};

static void setup_free(struct container_setup *g)
{
    for (size_t i = 0; i < g->count; i++)
        free(g->files[i].name);
    free(g->files);
    free(g);
}

static void fail(struct container_setup *g, const struct err *why, const char *code)
{
    if (!turn_is_gone(g->turn))
        turn_fail(g->turn, why, code);
    setup_free(g);
}

static void settle(struct container_setup *g)
{
    if (!turn_is_gone(g->turn))
        turn_on_container(g->turn, g->expires_ms);
    setup_free(g);
}

/* --- promises --- */

static bool is_promised(const struct turn *r, const char *session)
{
    return str_is(view_of(r->anthropic->promised, session), r->caller.tenant);
}

/* The oldest promise is forgotten where there are too many. */
static void promise(struct turn *r, const char *session)
{
    json_t *all = r->anthropic->promised;

    if (json_object_size(all) >= PROMISED_MAX)
        json_object_del(all, json_object_iter_key(json_object_iter(all)));
    json_object_set_new(all, session, json_string(r->caller.tenant));
}

void container_made(struct turn *r)
{
    json_object_del(r->anthropic->promised, r->session);
}

/* --- files --- */

static void tell_places(struct container_setup *g)
{
    for (size_t i = 0; i < g->count; i++) {
        char shown[NAME_SHOWN], text[NAME_SHOWN + 80];

        snprintf(text, sizeof(text), "[The user has uploaded a file. It is $INPUT_DIR/%s]",
                 name_show(shown, str_of(strchr(g->files[i].path, '/') + 1)));
        json_object_set_new(g->files[i].part, "text", json_string(text));
    }
}

static void put_next(struct container_setup *g);

static void on_put(void *arg, const struct space_file *files, size_t count,
                   const struct err *failed)
{
    struct container_setup *g = arg;

    (void)files, (void)count;
    if (failed)
        return fail(g, failed, NULL);
    g->at++;
    put_next(g);
}

/* The first call brings them along. */
static void leave_for_call(struct container_setup *g)
{
    for (size_t i = 0; i < g->count; i++)
        if (!g->files[i].there)
            json_array_append_new(g->turn->uploads, json_pack("{s:s, s:s}", "id", g->files[i].id,
                                                              "path", g->files[i].path));
    g->at = g->count;
}

static void put_next(struct container_setup *g)
{
    if (!g->turn->exists)
        leave_for_call(g);
    while (g->at < g->count && g->files[g->at].there)
        g->at++;
    if (g->at == g->count) {
        tell_places(g);
        settle(g);
        return;
    }
    service_space_take(g->turn->service, &g->turn->caller, str_of(g->turn->session),
                       str_of(g->files[g->at].path), str_of(g->files[g->at].id), on_put, g);
}

/* What is at the path of f. 0: nothing; 1: the same bytes; -1: others. */
static int look(const struct container_setup *g, const struct upload_file *f,
                const struct space_file *files, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (str_is(files[i].path, f->path))
            return strcmp(files[i].hash, f->hash) == 0 ? 1 : -1;
    for (size_t i = 0; &g->files[i] < f; i++)
        if (strcmp(g->files[i].path, f->path) == 0)
            return strcmp(g->files[i].hash, f->hash) == 0 ? 1 : -1;
    return 0;
}

/* "a-1x2y3z.csv" for "a.csv", shortened where a name would be too long. */
static void name_apart(struct upload_file *f)
{
    const char *dot = strrchr(f->name, '.');
    size_t n = strlen(f->id), all = strlen(f->name);
    const char *id = f->id + (n > ID_SHOWN ? n - ID_SHOWN : 0);
    struct str stem = {f->name, dot && dot != f->name ? (size_t)(dot - f->name) : all};
    struct str end = {f->name + stem.n, all - stem.n};

    if (end.n > END_SHOWN)
        end.n = 0;
    if (stem.n + 1 + strlen(id) + end.n > FILE_NAME_MAX) {
        stem.n = FILE_NAME_MAX - 1 - strlen(id) - end.n;
        stem.n -= utf8_torn(stem);
    }
    snprintf(f->path, sizeof(f->path), INPUT_DIR "/%.*s-%s%.*s", (int)stem.n, stem.p, id,
             (int)end.n, end.p);
}

static void choose_path(const struct container_setup *g, struct upload_file *f,
                        const struct space_file *files, size_t count)
{
    int found;

    snprintf(f->path, sizeof(f->path), INPUT_DIR "/%s", f->name);
    found = look(g, f, files, count);
    if (found < 0) {
        name_apart(f);
        found = look(g, f, files, count);
    }
    f->there = found != 0;
}

static void on_listed(void *arg, const struct space_file *files, size_t count,
                      const struct err *failed)
{
    struct container_setup *g = arg;

    if (failed)
        return fail(g, failed, NULL);
    for (size_t i = 0; i < g->count; i++)
        choose_path(g, &g->files[i], files, count);
    g->at = 0;
    put_next(g);
}

static void find_file(struct container_setup *g);

static void on_file(void *arg, const struct file_row *file, const struct err *failed)
{
    struct container_setup *g = arg;
    struct upload_file *f = &g->files[g->at];
    struct err e;
    bool expired = failed && failed->kind == ERR_MISSING && failed->sys == FILE_EXPIRED;
    char shown[NAME_SHOWN];

    if (expired || (failed && failed->kind == ERR_MISSING)) {
        err_set(&e, ERR_MISSING, expired ? "File `%s` has expired." : "File `%s` not found.",
                name_show(shown, str_of(f->id)));
        return fail(g, &e, expired ? CODE_FILE_EXPIRED : CODE_MISSING);
    }
    if (!file)
        return fail(g, failed, NULL);
    f->name = mem_strdup(file->name);
    memcpy(f->hash, file->hash, sizeof(f->hash));
    g->at++;
    find_file(g);
}

static void find_file(struct container_setup *g)
{
    if (g->at < g->count)
        service_file_get(g->turn->service, &g->turn->caller, str_of(g->files[g->at].id), on_file,
                         g);
    else if (!g->turn->exists)
        on_listed(g, NULL, 0, NULL);
    else
        service_space_list(g->turn->service, &g->turn->caller, str_of(g->turn->session), on_listed,
                           g);
}

/* --- the session --- */

static void go_on(struct container_setup *g)
{
    if (g->count > 0)
        find_file(g);
    else
        settle(g);
}

/* session: "" for a new one. */
static void make_later(struct container_setup *g, const char *session)
{
    struct turn *r = g->turn;

    if (*session)
        snprintf(r->session, sizeof(r->session), "%s", session);
    else
        id_make(r->session, SESSION_PREFIX);
    promise(r, r->session);
    go_on(g);
}

static void on_session(void *arg, const struct session_info *info, const struct err *failed)
{
    struct container_setup *g = arg;
    char shown[NAME_SHOWN];
    struct err e;

    if (failed && failed->kind == ERR_MISSING && is_promised(g->turn, g->wanted))
        return make_later(g, g->wanted);
    if (failed && failed->kind == ERR_MISSING && g->inferred)
        return make_later(g, ""); /* its files are gone, but the request does not name it */
    if (failed && failed->kind == ERR_MISSING) {
        err_set(&e, ERR_MISSING, "Container %s not found or expired.",
                name_show(shown, json_view(g->turn->params.container)));
        return fail(g, &e, CODE_CONTAINER_EXPIRED);
    }
    if (failed)
        return fail(g, failed, NULL);
    memcpy(g->turn->session, info->row->id, sizeof(g->turn->session));
    g->turn->exists = true;
    g->expires_ms = info->row->expires_ms;
    go_on(g);
}

void container_prepare(struct turn *r)
{
    struct container_setup *g = mem_zalloc(sizeof(*g));
    struct str named = json_view(r->params.container);
    json_t *one;
    size_t i;

    g->turn = r;
    r->waits++;
    g->count = json_array_size(r->history.uploads);
    g->files = mem_zalloc((g->count + 1) * sizeof(*g->files));
    json_array_foreach(r->history.uploads, i, one) {
        g->files[i].id = text_of(one, "id");
        g->files[i].part = json_object_get(one, "part");
    }
    g->inferred = named.n == 0 && *r->history.session;
    if (named.n == 0 && !g->inferred)
        return make_later(g, "");
    if (g->inferred)
        memcpy(g->wanted, r->history.session, sizeof(g->wanted));
    else if (!container_to_session(named, g->wanted))
        *g->wanted = '\0'; /* which is nobody's */
    service_session_get(r->service, &r->caller, str_of(g->wanted), on_session, g);
}

/* --- routes: Anthropic has none; these let a client list, see and delete containers --- */

static json_t *render(const struct session_info *info)
{
    json_t *v = container_value(info->row->id, info->row->expires_ms, NULL);

    json_object_set_new(v, "type", json_string("container"));
    json_object_set_new(v, "status", json_string(session_state_name(info->state)));
    json_object_set_new(v, "created_at", time_json(info->row->created_ms));
    json_object_set_new(v, "last_used_at", time_json(info->row->used_ms));
    return v;
}

/* False: the id is none of a container, and the request is answered. */
static bool wanted(struct request *r, char ret[ID_MAX])
{
    struct str id = request_path(r, "container");
    char shown[NAME_SHOWN];

    if (container_to_session(id, ret))
        return true;
    answer_fail(r, 404, CODE_CONTAINER_EXPIRED, NULL, "Container %s not found or expired.",
                name_show(shown, id));
    return false;
}

static void answer_failed(struct request *r, const struct err *failed)
{
    if (failed->kind == ERR_MISSING)
        answer_fail(r, 404, CODE_CONTAINER_EXPIRED, NULL, "Container %.*s not found or expired.",
                    (int)request_path(r, "container").n, request_path(r, "container").p);
    else
        answer_error(r, failed, NULL);
}

static void on_container(void *arg, const struct session_info *info, const struct err *failed)
{
    struct request *r = arg;

    if (failed)
        answer_failed(r, failed);
    else
        answer_json(r, 200, render(info));
}

void handle_container(struct request *r)
{
    char session[ID_MAX];

    if (wanted(r, session))
        service_session_get(request_service(r), request_caller(r), str_of(session), on_container,
                            r);
}

static void on_deleted(void *arg, const struct err *failed)
{
    struct request *r = arg;
    char id[ID_MAX];

    if (failed)
        return answer_failed(r, failed);
    snprintf(id, sizeof(id), "%s", request_path(r, "container").p);
    answer_json(r, 200, json_pack("{s:s, s:s}", "id", id, "type", "container_deleted"));
}

void handle_container_delete(struct request *r)
{
    char session[ID_MAX];

    if (wanted(r, session))
        service_session_delete(request_service(r), request_caller(r), str_of(session), on_deleted,
                               r);
}

static void on_containers(void *arg, const struct session_info *infos, size_t count, bool more,
                          const struct err *failed)
{
    struct request *r = arg;
    json_t *data;

    if (failed)
        return answer_error(r, failed, NULL);
    data = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(data, render(&infos[i]));
    answer_json(r, 200, list_value(data, more, false));
}

void handle_containers(struct request *r)
{
    struct list_query want;
    struct page page = {0};
    char after[ID_MAX];

    if (!list_query_read(r, CONTAINER_PREFIX, &want))
        return;
    if (want.newer)
        return answer_fail(r, 400, CODE_INVALID, NULL,
                           "before_id: containers are listed by after_id");
    page.limit = want.limit;
    if (want.from.n > 0 && container_to_session(want.from, after))
        page.after = after;
    service_session_list(request_service(r), request_caller(r), page, on_containers, r);
}
