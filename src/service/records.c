/* Executions as clients read them: running ones from memory, ended ones from the store. */
#include "service/service_int.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define WHOLE_ROWS  16        /* with code and events, at a time */
#define WHOLE_BYTES (8 * MiB) /* of code and of events, at a time; one record may be longer */

/* --- in hand --- */

static void add_unfinished(json_t *events, const struct transcript *t)
{
    for (size_t i = 0; i < COUNT(t->stream); i++) {
        struct event ev = {.kind = i ? EVENT_STDERR : EVENT_STDOUT, .late = t->stream[i].late};
        ev.text = buf_str(&t->stream[i].text);
        if (ev.text.n > 0)
            json_array_append_new(events, record_event(&ev));
    }
}

/* Of its first record, which no other thread changes, and of what it has said. Its transcript is
 * not touched: where pieces of output are joined must not depend on who asked when. */
struct exec_info job_info(struct execution *j)
{
    static char status[][8] = {"queued", "running"};

    j->shown = j->first;
    j->shown.status = status[strcmp(job_status(j), "running") == 0];
    j->shown.started_ms = j->row.started_ms;
    struct exec_info info = {
        .row = &j->shown, .events = json_copy(j->transcript.events), .bytes = j->transcript.bytes};
    add_unfinished(info.events, &j->transcript);
    return info;
}

static struct execution *job_find(struct service *sv, const char *tenant, const char *id)
{
    struct execution *j = table_get(&sv->jobs, id);

    return j && strcmp(j->row.tenant, tenant) == 0 ? j : NULL;
}

/* --- on record --- */

struct exec_op {
    struct task task;
    struct service *sv;
    char tenant[sizeof(((struct caller *)0)->tenant)];
    char *pools; /* owned, or NULL: of the caller's key */
    char id[ID_MAX];
    bool interrupt;
    exec_fn *fn;
    execs_fn *list_fn;
    void *arg;
    /* a list */
    struct exec_filter filter;
    char of[sizeof(((struct caller *)0)->tenant)], session[ID_MAX], after[ID_MAX];
    char status[16], key[ID_MAX];
    struct page page;
    struct progress progress;
    bool whole, more;
    struct exec_row *rows;   /* owned */
    struct exec_info *infos; /* owned, with what is in them */
    size_t count, read;      /* read: the rows themselves */
};

static void op_free(struct exec_op *op)
{
    for (size_t i = 0; i < op->read; i++) {
        json_decref(op->infos ? op->infos[i].events : NULL);
        json_decref(op->infos ? op->infos[i].outcome : NULL);
        exec_row_done(&op->rows[i]);
    }
    progress_done(&op->progress);
    free(op->infos);
    free(op->rows);
    free(op->pools);
    free(op);
}

/* All of a file, and a NUL; NULL when it cannot be read. */
static char *read_whole(int fd, size_t *ret_n)
{
    struct stat st;
    AUTO_FREE char *text = NULL;
    size_t n = 0;

    if (fstat(fd, &st) < 0)
        return NULL;
    text = mem_zalloc((size_t)st.st_size + 1);
    while (n < (size_t)st.st_size) {
        ssize_t got = read(fd, text + n, (size_t)st.st_size - n);
        if (got == 0 || (got < 0 && errno != EINTR))
            return NULL;
        n += got > 0 ? (size_t)got : 0;
    }
    *ret_n = n;
    return take_ptr(&text);
}

/* Not json_loadfd(), which asks the kernel for one byte at a time. Code may print a NUL. */
static json_t *read_events(struct service *sv, const struct exec_row *r, size_t *ret_bytes)
{
    struct err lost = {0};
    AUTO_CLOSE int fd = -1;
    AUTO_FREE char *text = NULL;

    *ret_bytes = r->events ? strlen(r->events) : 0;
    if (r->events)
        return json_loadb(r->events, *ret_bytes, JSON_ALLOW_NUL, NULL);
    if (!*r->events_hash)
        return NULL;
    fd = blob_open(sv->store, r->events_hash, &lost);
    text = fd < 0 ? NULL : read_whole(fd, ret_bytes);
    if (text)
        return json_loadb(text, *ret_bytes, JSON_ALLOW_NUL, NULL);
    return json_pack("[{s:s,s:s+}]", "type", "status", "text", "what it has said cannot be read: ",
                     lost.kind ? lost.text : "the disk has an error");
}

static int parse(struct task *t, struct err *e)
{
    struct exec_op *op = OWNER(t, struct exec_op, task);
    size_t bytes = 0;

    (void)e;
    op->infos = mem_zalloc((op->read + 1) * sizeof(*op->infos));
    for (size_t i = 0; i < op->count; i++) {
        struct exec_info *info = &op->infos[i];
        info->row = &op->rows[i];
        if (op->rows[i].outcome)
            info->outcome = json_loads(op->rows[i].outcome, 0, NULL);
        if (op->whole)
            info->events = read_events(op->sv, &op->rows[i], &info->bytes);
        if (op->whole && !info->events)
            info->events = json_array();
        bytes += info->bytes;
        if (bytes > WHOLE_BYTES && i + 1 < op->count) {
            op->count = i + 1;
            op->more = true;
            break;
        }
    }
    return 0;
}

static int read_one(struct task *t, struct db *db, struct err *e)
{
    struct exec_op *op = OWNER(t, struct exec_op, task);
    int rc;

    op->rows = mem_zalloc(sizeof(*op->rows));
    rc = db_exec_get(db, op->tenant, op->id, op->rows, e);
    op->read = rc > 0;
    if (rc > 0 && !pools_have(op->pools, op->rows->pool))
        rc = 0;
    op->count = rc > 0;
    return rc == 0 ? err_set(e, ERR_MISSING, "there is no such execution") : rc;
}

static void on_one(struct task *t, const struct err *failed)
{
    struct exec_op *op = OWNER(t, struct exec_op, task);

    op->fn(op->arg, failed ? NULL : op->infos, failed);
    op_free(op);
}

static int nothing(struct task *t, struct db *db, struct err *e)
{
    (void)t;
    (void)db;
    (void)e;
    return 0;
}

static void get_now(struct exec_op *op);

static void on_journal(struct task *t, const struct err *failed)
{
    (void)failed;
    get_now(OWNER(t, struct exec_op, task));
}

/* Of one in hand, what it has said is shown when it is in the store; so is what is asked for next.
 */
static void get(void *arg)
{
    static const struct step after_others[] = {{.store = nothing}, {0}};
    struct exec_op *op = arg;
    struct execution *j = job_find(op->sv, op->tenant, op->id);

    op->sv->pending--;
    if (!j || !pools_have(op->pools, j->row.pool) || j->journal.on || j->state != JOB_STARTED)
        return get_now(op);
    job_put_on_record(j);
    journal_begin(j);
    task_start(&op->task, op->sv, NULL, after_others, on_journal);
}

static void get_now(struct exec_op *op)
{
    static const struct step steps[] = {{.store = read_one}, {.work = parse}, {0}};
    struct execution *j = job_find(op->sv, op->tenant, op->id);

    if (!j || !pools_have(op->pools, j->row.pool))
        return task_start_read(&op->task, op->sv, steps, on_one);
    if (op->interrupt)
        job_interrupt(j);
    struct exec_info info = job_info(j);
    op->fn(op->arg, &info, NULL);
    json_decref(info.events);
    op_free(op);
}

static struct exec_op *op_new(struct service *sv, const struct caller *c, void *arg)
{
    struct exec_op *op = mem_zalloc(sizeof(*op));

    *op = (struct exec_op){.sv = sv, .arg = arg, .whole = true};
    snprintf(op->tenant, sizeof(op->tenant), "%s", c->tenant);
    op->pools = scope_pools_copy(sv, c);
    return op;
}

static void start_get(struct exec_op *op, struct str id)
{
    if (!str_to_cstr(id, op->id, sizeof(op->id)))
        op->id[0] = '\0'; /* which is nobody's */
    op->sv->pending++;
    loop_later(op->sv->loop, get, op);
}

void service_exec_get(struct service *sv, const struct caller *c, struct str id, exec_fn *fn,
                      void *arg)
{
    struct exec_op *op = op_new(sv, c, arg);

    op->fn = fn;
    start_get(op, id);
}

void service_exec_interrupt(struct service *sv, const struct caller *c, struct str id, exec_fn *fn,
                            void *arg)
{
    struct exec_op *op = op_new(sv, c, arg);

    op->fn = fn;
    op->interrupt = true;
    start_get(op, id);
}

/* --- lists --- */

/* In place of a row without code and events. */
static int read_rest(struct exec_row *row, struct db *db, size_t *bytes, struct err *e)
{
    struct exec_row whole = {0};
    int rc = db_exec_get(db, row->tenant, row->id, &whole, e);

    if (rc <= 0)
        return rc;
    exec_row_done(row);
    *row = whole;
    *bytes += whole.code ? strlen(whole.code) : 0;
    *bytes += whole.events ? strlen(whole.events) : 0;
    return 0;
}

static int read_list(struct task *t, struct db *db, struct err *e)
{
    struct exec_op *op = OWNER(t, struct exec_op, task);
    struct page page = op->page;
    size_t bytes = 0;

    page.limit++;
    if (task_read_on(t, db_exec_list(db, &op->filter, page, false, &op->rows, &op->read, e)) < 0)
        return -1;
    if (t->again)
        return 0;
    op->more = op->read > op->page.limit;
    op->count = op->more ? op->page.limit : op->read;
    for (size_t i = 0; op->whole && i < op->count; i++) {
        if (read_rest(&op->rows[i], db, &bytes, e) < 0)
            return -1;
        op->more |= bytes > WHOLE_BYTES && i + 1 < op->count;
        op->count = bytes > WHOLE_BYTES ? i + 1 : op->count;
    }
    return 0;
}

static void on_list(struct task *t, const struct err *failed)
{
    struct exec_op *op = OWNER(t, struct exec_op, task);

    for (size_t i = 0; i < op->count && !failed; i++) {
        struct execution *j = job_find(op->sv, op->rows[i].tenant, op->rows[i].id);
        if (j) {
            free(op->rows[i].status);
            op->rows[i].status = mem_strdup(job_status(j));
            op->rows[i].started_ms = j->row.started_ms;
        }
    }
    op->list_fn(op->arg, op->infos, failed ? 0 : op->count, op->more, failed);
    op_free(op);
}

static const char *copy(char *to, size_t size, const char *from)
{
    if (from)
        snprintf(to, size, "%s", from);
    return from ? to : NULL;
}

void service_exec_list(struct service *sv, const struct caller *c, const struct exec_filter *f,
                       struct page page, bool whole, execs_fn *fn, void *arg)
{
    static const struct step steps[] = {
        {.loop = task_go_on}, {.store = read_list}, {.work = parse}, {0}};
    struct exec_op *op = op_new(sv, c, arg);
    size_t most = whole ? WHOLE_ROWS : PAGE_MAX;

    op->list_fn = fn;
    op->whole = whole;
    op->filter = *f;
    op->filter.tenant = copy(op->of, sizeof(op->of), c->admin ? f->tenant : c->tenant);
    op->filter.session = copy(op->session, sizeof(op->session), f->session);
    op->filter.status = copy(op->status, sizeof(op->status), f->status);
    op->filter.key = copy(op->key, sizeof(op->key), f->key);
    op->page.after = copy(op->after, sizeof(op->after), page.after);
    op->page.after_ms = page.after_ms;
    op->page.progress = &op->progress;
    op->page.pools = op->pools;
    op->page.limit = page.limit && page.limit < most ? page.limit : most;
    task_start_read(&op->task, sv, steps, on_list);
}
