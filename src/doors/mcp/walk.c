/* The files of a caller's sessions, session after session, the newest first. */
#include "doors/mcp/mcp_int.h"

#include <stdio.h>
#include <stdlib.h>

struct stop {
    char id[ID_MAX];
    char *name; /* owned, or NULL */
    int64_t created_ms;
};

struct walk {
    struct call *c;     /* borrowed: nobody answers it before the end */
    struct service *sv; /* borrowed */
    struct stop stops[WALK_SESSIONS];
    size_t count, at;
    bool more; /* sessions behind these */
    walk_fn *each;
    walk_end_fn *end;
    void *arg;
};

static void finish(struct walk *w, const struct err *failed)
{
    struct walk_end end = {0};

    if (w->at > 0 && (w->more || w->at < w->count)) {
        memcpy(end.session, w->stops[w->at - 1].id, sizeof(end.session));
        end.created_ms = w->stops[w->at - 1].created_ms;
    }
    w->end(w->arg, &end, failed);
    for (size_t i = 0; i < w->count; i++)
        free(w->stops[i].name);
    free(w);
}

static int latest_first(const void *a, const void *b)
{
    const struct space_file *x = a, *y = b;
    size_t n = x->path.n < y->path.n ? x->path.n : y->path.n;
    int order = memcmp(x->path.p, y->path.p, n);

    if (x->mtime_ms != y->mtime_ms)
        return x->mtime_ms < y->mtime_ms ? 1 : -1;
    return order ? order : (x->path.n > n) - (y->path.n > n);
}

static bool show(struct walk *w, const struct space_file *files, size_t count)
{
    AUTO_FREE struct space_file *sorted = mem_zalloc((count + 1) * sizeof(*sorted));
    const struct stop *s = &w->stops[w->at];
    struct walk_place place = {.session = s->id, .name = s->name, .files = sorted};

    if (count > 0)
        memcpy(sorted, files, count * sizeof(*sorted));
    qsort(sorted, count, sizeof(*sorted), latest_first);
    place.count = count < WALK_FILES ? count : WALK_FILES;
    return w->each(w->arg, &place);
}

static void next(struct walk *w);

/* One that was deleted meanwhile, or whose pool is no more, has no files. */
static void on_files(void *arg, const struct space_file *files, size_t count,
                     const struct err *failed)
{
    struct walk *w = arg;
    bool go_on = true;

    if (failed && failed->kind != ERR_MISSING && failed->kind != ERR_CONFLICT)
        return finish(w, failed);
    if (!failed)
        go_on = show(w, files, count);
    w->at++;
    if (go_on && !w->c->cancelled)
        next(w);
    else
        finish(w, NULL);
}

static void next(struct walk *w)
{
    if (w->at == w->count)
        finish(w, NULL);
    else
        service_space_list(w->sv, &w->c->caller, str_of(w->stops[w->at].id), on_files, w);
}

static void on_sessions(void *arg, const struct session_info *infos, size_t count, bool more,
                        const struct err *failed)
{
    struct walk *w = arg;

    if (failed)
        return finish(w, failed);
    assert(count <= WALK_SESSIONS);
    for (size_t i = 0; i < count; i++) {
        const struct session_row *row = infos[i].row;
        struct stop *s = &w->stops[w->count++];
        memcpy(s->id, row->id, sizeof(s->id));
        s->name = row->name ? mem_strdup(row->name) : NULL;
        s->created_ms = row->created_ms;
    }
    w->more = more;
    next(w);
}

void walk_files(struct call *c, struct service *sv, const struct walk_end *after, walk_fn *each,
                walk_end_fn *end, void *arg)
{
    struct walk *w = mem_zalloc(sizeof(*w));
    struct page page = {.limit = WALK_SESSIONS};

    *w = (struct walk){.c = c, .sv = sv, .each = each, .end = end, .arg = arg};
    if (after) {
        page.after = after->session;
        page.after_ms = after->created_ms;
    }
    service_session_list(sv, &c->caller, page, on_sessions, w);
}
