/* Lists the files of a caller's sessions: the newest session first, its latest files first. */
#include "doors/mcp/resource.h"

#include <stdio.h>
#include <stdlib.h>

struct session_stop {
    char id[ID_MAX];
    char *name; /* owned, or NULL */
    int64_t created_ms;
};

struct session_files_iter {
    struct call *c;     /* borrowed: nobody answers it before the end */
    struct service *sv; /* borrowed */
    struct session_stop stops[ITER_SESSIONS];
    size_t count, at;
    bool more; /* sessions behind these */
    session_files_fn *each;
    session_files_end_fn *end;
    void *arg;
};

static void finish(struct session_files_iter *it, const struct err *failed)
{
    struct session_files_cursor end = {0};

    if (it->at > 0 && (it->more || it->at < it->count)) {
        memcpy(end.session, it->stops[it->at - 1].id, sizeof(end.session));
        end.created_ms = it->stops[it->at - 1].created_ms;
    }
    it->end(it->arg, &end, failed);
    for (size_t i = 0; i < it->count; i++)
        free(it->stops[i].name);
    free(it);
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

static bool show(struct session_files_iter *it, const struct space_file *files, size_t count)
{
    AUTO_FREE struct space_file *sorted = mem_zalloc((count + 1) * sizeof(*sorted));
    const struct session_stop *s = &it->stops[it->at];
    struct session_files shown = {.session = s->id, .name = s->name, .list = sorted};

    if (count > 0)
        memcpy(sorted, files, count * sizeof(*sorted));
    qsort(sorted, count, sizeof(*sorted), latest_first);
    shown.count = count < ITER_FILES ? count : ITER_FILES;
    return it->each(it->arg, &shown);
}

static void next(struct session_files_iter *it);

/* One that was deleted meanwhile, or whose pool is no more, has no files. */
static void on_files(void *arg, const struct space_file *files, size_t count,
                     const struct err *failed)
{
    struct session_files_iter *it = arg;
    bool go_on = true;

    if (failed && failed->kind != ERR_MISSING && failed->kind != ERR_CONFLICT)
        return finish(it, failed);
    if (!failed)
        go_on = show(it, files, count);
    it->at++;
    if (go_on && !it->c->cancelled)
        next(it);
    else
        finish(it, NULL);
}

static void next(struct session_files_iter *it)
{
    if (it->at == it->count)
        finish(it, NULL);
    else
        service_space_list(it->sv, &it->c->caller, str_of(it->stops[it->at].id), on_files, it);
}

static void on_sessions(void *arg, const struct session_info *infos, size_t count, bool more,
                        const struct err *failed)
{
    struct session_files_iter *it = arg;

    if (failed)
        return finish(it, failed);
    assert(count <= ITER_SESSIONS);
    for (size_t i = 0; i < count; i++) {
        const struct session_row *row = infos[i].row;
        struct session_stop *s = &it->stops[it->count++];
        memcpy(s->id, row->id, sizeof(s->id));
        s->name = row->name ? mem_strdup(row->name) : NULL;
        s->created_ms = row->created_ms;
    }
    it->more = more;
    next(it);
}

void session_files_each(struct call *c, struct service *sv,
                        const struct session_files_cursor *after, session_files_fn *each,
                        session_files_end_fn *end, void *arg)
{
    struct session_files_iter *it = mem_zalloc(sizeof(*it));
    struct page page = {.limit = ITER_SESSIONS};

    *it = (struct session_files_iter){.c = c, .sv = sv, .each = each, .end = end, .arg = arg};
    if (after) {
        page.after = after->session;
        page.after_ms = after->created_ms;
    }
    service_session_list(sv, &c->caller, page, on_sessions, it);
}
