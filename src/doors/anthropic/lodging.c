/*
 * Which container a message has: the one that is named, else the one that the calls in its
 * history were made in, else a new one. And the files that the user has put into the
 * conversation: all of them are there before the model is asked, whenever they were named.
 *
 * A file is known by its name in $INPUT_DIR. One of this name with other bytes is another
 * upload, or what code has made of this one; neither is written over, and the upload
 * stands beside it, with a part of its id in the name.
 */
#include "doors/anthropic/messages_int.h"

#include <stdio.h>
#include <stdlib.h>

#define ID_SHOWN  6  /* characters of an id that tell two files of one name apart */
#define END_SHOWN 32 /* of ".csv" */

struct upload_file {
    const char *id; /* borrowed from the uploads */
    json_t *part;   /* borrowed: says where it is */
    char *name;     /* owned */
    char hash[HASH_HEX];
    char path[SPACE_PATH_MAX];
    bool there;
};

struct lodging {
    struct lodging_spec spec;
    struct caller caller;
    struct session_row row; /* what of it is told: its strings are NULL */
    bool inferred, made;
    struct upload_file *files; /* owned */
    size_t count, at;
    struct err failed;
    lodging_fn *fn;
    void *arg;
};

static void lodging_free(struct lodging *g)
{
    for (size_t i = 0; i < g->count; i++)
        free(g->files[i].name);
    free(g->files);
    json_decref(g->spec.uploads);
    free(g);
}

static void on_deleted(void *arg, const struct err *failed)
{
    (void)arg, (void)failed; /* it goes with the retention then */
}

static void fail(struct lodging *g, const struct err *why, const char *code)
{
    if (g->made && *g->row.id)
        service_session_delete(g->spec.service, &g->caller, str_of(g->row.id), on_deleted, NULL);
    g->fn(g->arg, NULL, false, why, code);
    lodging_free(g);
}

static void settle(struct lodging *g)
{
    g->fn(g->arg, &g->row, g->made, NULL, NULL);
    lodging_free(g);
}

/* --- files --- */

static void tell_places(struct lodging *g)
{
    for (size_t i = 0; i < g->count; i++) {
        char shown[NAME_SHOWN], text[NAME_SHOWN + 80];

        snprintf(text, sizeof(text), "[The user has uploaded a file. It is $INPUT_DIR/%s]",
                 name_show(shown, str_of(strchr(g->files[i].path, '/') + 1)));
        json_object_set_new(g->files[i].part, "text", json_string(text));
    }
}

static void put_next(struct lodging *g);

static void on_put(void *arg, const struct space_file *files, size_t count,
                   const struct err *failed)
{
    struct lodging *g = arg;

    (void)files, (void)count;
    if (failed) {
        fail(g, failed, NULL);
        return;
    }
    g->at++;
    put_next(g);
}

static void put_next(struct lodging *g)
{
    while (g->at < g->count && g->files[g->at].there)
        g->at++;
    if (g->at == g->count) {
        tell_places(g);
        settle(g);
        return;
    }
    service_space_take(g->spec.service, &g->caller, str_of(g->row.id), str_of(g->files[g->at].path),
                       str_of(g->files[g->at].id), on_put, g);
}

/* 0: nothing there; 1: these bytes; -1: others. */
static int look(const struct lodging *g, const struct upload_file *f,
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

/* "a.csv" with another id: "a-1x2y3z.csv", cut where it would be too long for a name. */
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

static void choose_path(const struct lodging *g, struct upload_file *f,
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
    struct lodging *g = arg;

    if (failed) {
        fail(g, failed, NULL);
        return;
    }
    for (size_t i = 0; i < g->count; i++)
        choose_path(g, &g->files[i], files, count);
    g->at = 0;
    put_next(g);
}

static void find_file(struct lodging *g);

static void on_file(void *arg, const struct file_row *file, const struct err *failed)
{
    struct lodging *g = arg;
    struct upload_file *f = &g->files[g->at];
    bool expired = failed && failed->kind == ERR_MISSING && failed->sys == FILE_EXPIRED;
    char shown[NAME_SHOWN];

    if (expired || (failed && failed->kind == ERR_MISSING)) {
        err_set(&g->failed, ERR_MISSING,
                expired ? "File `%s` has expired." : "File `%s` not found.",
                name_show(shown, str_of(f->id)));
        fail(g, &g->failed, expired ? CODE_FILE_EXPIRED : CODE_MISSING);
        return;
    }
    if (!file) {
        fail(g, failed, NULL);
        return;
    }
    f->name = mem_strdup(file->name);
    memcpy(f->hash, file->hash, sizeof(f->hash));
    g->at++;
    find_file(g);
}

static void find_file(struct lodging *g)
{
    if (g->at < g->count)
        service_file_get(g->spec.service, &g->caller, str_of(g->files[g->at].id), on_file, g);
    else
        service_space_list(g->spec.service, &g->caller, str_of(g->row.id), on_listed, g);
}

/* --- the session --- */

static void make(struct lodging *g);

static void on_session(void *arg, const struct session_info *info, const struct err *failed)
{
    struct lodging *g = arg;
    char shown[NAME_SHOWN];

    if (failed && failed->kind == ERR_MISSING && g->inferred) {
        g->inferred = false; /* nobody has named it: its files are gone, the work goes on */
        make(g);
        return;
    }
    if (failed && failed->kind == ERR_MISSING) {
        err_set(&g->failed, ERR_MISSING, "Container %s not found or expired.",
                name_show(shown, g->spec.container));
        fail(g, &g->failed, CODE_CONTAINER_EXPIRED);
        return;
    }
    if (failed) {
        fail(g, failed, NULL);
        return;
    }
    memcpy(g->row.id, info->row->id, sizeof(g->row.id));
    g->row.expires_ms = info->row->expires_ms;
    if (g->count > 0)
        find_file(g);
    else
        settle(g);
}

static void make(struct lodging *g)
{
    const struct session_spec spec = {.pool = str_of(g->spec.anthropic->config.pool),
                                      .idle_ms = g->spec.anthropic->config.idle_ms};

    g->made = true;
    service_session_create(g->spec.service, &g->caller, &spec, on_session, g);
}

static void take_uploads(struct lodging *g)
{
    json_t *one;
    size_t i;

    g->count = json_array_size(g->spec.uploads);
    g->files = mem_zalloc((g->count + 1) * sizeof(*g->files));
    json_array_foreach(g->spec.uploads, i, one)
    {
        g->files[i].id = json_string_value(json_object_get(one, "id"));
        g->files[i].part = json_object_get(one, "part");
    }
}

void lodging_start(const struct lodging_spec *spec, lodging_fn *fn, void *arg)
{
    struct lodging *g = mem_zalloc(sizeof(*g));
    char session[ID_MAX] = "";

    *g = (struct lodging){.spec = *spec, .caller = *spec->caller, .fn = fn, .arg = arg};
    json_incref(g->spec.uploads);
    take_uploads(g);
    g->inferred = spec->container.n == 0 && *spec->session;
    if (spec->container.n == 0 && !g->inferred) {
        make(g);
        return;
    }
    if (g->inferred)
        snprintf(session, sizeof(session), "%s", spec->session);
    else if (!container_to_session(spec->container, session))
        session[0] = '\0'; /* which is nobody's */
    service_session_get(spec->service, &g->caller, str_of(session), on_session, g);
}
