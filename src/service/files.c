/* Files: uploaded once, used in many sessions. */
#include "service/service_int.h"

#include <stdio.h>
#include <stdlib.h>

#define FILE_NAME_BYTES 255
#define FILE_MIME_BYTES 127

struct file_op {
    struct task task;
    struct service *sv;
    char tenant[sizeof(((struct caller *)0)->tenant)];
    char *pools; /* owned, or NULL: of the caller's key */
    char id[ID_MAX];
    struct blob *blob; /* owned */
    char *path;        /* owned, or NULL: in the workspace of the session with this id */
    struct file_row row;
    struct file_row *rows; /* owned */
    size_t count;
    struct page page;
    struct progress progress;
    int fd; /* owned */
    bool own_name;
    char (*ids)[ID_MAX]; /* owned: to be picked */
    size_t id_count;
    struct err failed;
    file_fn *fn;
    file_open_fn *open_fn;
    files_fn *list_fn;
    done_fn *done_fn;
    void *arg;
};

static struct file_op *op_new(struct service *sv, const struct caller *c, struct str id, void *arg)
{
    struct file_op *op = mem_zalloc(sizeof(*op));

    *op = (struct file_op){.sv = sv, .fd = -1, .arg = arg};
    snprintf(op->tenant, sizeof(op->tenant), "%s", c->tenant);
    op->pools = scope_pools_copy(sv, c);
    if (!str_to_cstr(id, op->id, sizeof(op->id)))
        op->id[0] = '\0'; /* which is nobody's */
    return op;
}

static void op_free(struct file_op *op)
{
    blob_free(op->blob);
    free(op->path);
    free(op->pools);
    file_row_done(&op->row);
    for (size_t i = 0; i < op->count; i++)
        file_row_done(&op->rows[i]);
    free(op->rows);
    progress_done(&op->progress);
    free(op->ids);
    fd_closep(&op->fd);
    free(op);
}

static void answer(struct file_op *op, const struct err *failed)
{
    size_t n = op->count < op->page.limit ? op->count : op->page.limit;

    if (op->fn)
        op->fn(op->arg, failed ? NULL : &op->row, failed);
    else if (op->open_fn)
        op->open_fn(op->arg, &op->fd, failed ? NULL : &op->row, failed);
    else if (op->list_fn)
        op->list_fn(op->arg, failed ? NULL : op->rows + (op->page.newer ? op->count - n : 0),
                    failed ? 0 : n, op->count > n, failed);
    else
        op->done_fn(op->arg, failed);
    op_free(op);
}

static void on_done(struct task *t, const struct err *failed)
{
    answer(OWNER(t, struct file_op, task), failed);
}

/* --- coming in --- */

struct blob *service_blob_new(struct service *sv, const struct caller *c, struct err *e)
{
    (void)c;
    return blob_new(sv->store, sv->config.file_bytes, e);
}

static int take_names(struct file_op *op, struct str name, struct str mime, struct err *e)
{
    if (name.n == 0 || name.n > FILE_NAME_BYTES || str_utf8_len(name) != name.n)
        return err_set(e, ERR_CALLER, "a file's name is 1 to %d bytes of UTF-8 text",
                       FILE_NAME_BYTES);
    for (size_t i = 0; i < name.n; i++)
        if ((unsigned char)name.p[i] < ' ' || name.p[i] == 0x7f || name.p[i] == '/')
            return err_set(e, ERR_CALLER, "a file's name holds a slash or a control character");
    for (size_t i = 0; i < mime.n; i++)
        if (mime.n > FILE_MIME_BYTES || mime.p[i] <= ' ' || mime.p[i] >= 0x7f)
            return err_set(e, ERR_CALLER, "a file's type is not one");
    free(op->row.name);
    free(op->row.mime);
    op->row.name = mem_strndup(name);
    op->row.mime = mime.n ? mem_strndup(mime) : mem_strdup(mime_of(name));
    return 0;
}

static int keep(struct task *t, struct err *e)
{
    struct file_op *op = OWNER(t, struct file_op, task);

    return blob_keep(take_ptr(&op->blob), BLOB_NOW, op->row.hash, &op->row.size, e);
}

static int write_row(struct task *t, struct db *db, struct err *e)
{
    struct file_op *op = OWNER(t, struct file_op, task);

    return quota_check(op->sv, db, op->tenant, op->row.size, e) < 0 ? -1
                                                                    : db_file_put(db, &op->row, e);
}

static const struct step keeping[] = {{.work = keep}, {.store = write_row}, {0}};

static void fill(struct file_op *op)
{
    id_make(op->row.id, "file_");
    op->row.tenant = mem_strdup(op->tenant);
    op->row.pools = op->pools ? mem_strdup(op->pools) : NULL;
    op->row.created_ms = id_ms(str_of(op->row.id)); /* so a list can go on after one that is gone */
}

static void refuse_later(void *arg)
{
    struct file_op *op = arg;

    op->sv->pending--;
    answer(op, &op->failed);
}

static void refuse(struct file_op *op)
{
    op->sv->pending++;
    loop_later(op->sv->loop, refuse_later, op);
}

void service_file_create(struct service *sv, const struct caller *c, const struct file_spec *spec,
                         struct blob *bytes, file_fn *fn, void *arg)
{
    struct file_op *op = op_new(sv, c, (struct str){0}, arg);

    op->fn = fn;
    op->blob = bytes;
    fill(op);
    op->row.downloadable = spec->downloadable;
    if (spec->expires_ms)
        op->row.expires_ms = op->row.created_ms + (int64_t)spec->expires_ms;
    if (take_names(op, spec->name, spec->mime, &op->failed) < 0)
        refuse(op);
    else
        task_start(&op->task, sv, NULL, keeping, on_done);
}

static int on_bytes(void *arg, struct str bytes, struct err *e)
{
    return blob_write(((struct file_op *)arg)->blob, bytes, e);
}

static void on_fetched(void *arg, const struct fetch_result *r, const struct err *failed)
{
    struct file_op *op = arg;
    struct err e = {0};

    op->sv->pending--;
    if (failed)
        return answer(op, failed);
    struct str name = str_of(op->own_name ? op->row.name : r->name), mime = str_of(r->mime);
    if (str_is(mime, "application/octet-stream")) /* nobody said, or nobody knew: see its name */
        mime = (struct str){0};
    AUTO_FREE char *copy = mem_strndup(name);
    if (take_names(op, str_of(copy), mime, &e) < 0)
        return answer(op, &e);
    task_start(&op->task, op->sv, NULL, keeping, on_done);
}

void service_file_fetch(struct service *sv, const struct caller *c, struct str url, struct str name,
                        file_fn *fn, void *arg)
{
    struct file_op *op = op_new(sv, c, (struct str){0}, arg);

    op->fn = fn;
    op->own_name = name.n > 0;
    fill(op);
    if (name.n > 0 && take_names(op, name, (struct str){0}, &op->failed) < 0)
        return refuse(op);
    if (!sv->fetcher) {
        closing_down(sv, &op->failed);
        return refuse(op);
    }
    op->blob = blob_new(sv->store, sv->config.fetch_bytes, &op->failed);
    if (!op->blob)
        return refuse(op);
    sv->pending++;
    fetch_start(sv->fetcher, c->tenant, url, on_bytes, on_fetched, op);
}

static int copy_row(struct task *t, struct db *db, struct err *e)
{
    struct file_op *op = OWNER(t, struct file_op, task);
    struct session_row session = {0};
    struct space_row file = {0};
    int rc = db_session_get(db, op->tenant, op->id, &session, e);

    if (rc > 0 && !pools_have(op->pools, session.pool))
        rc = 0;
    session_row_done(&session);
    if (rc > 0)
        rc = db_space_get(db, op->id, str_of(op->path), &file, e);
    memcpy(op->row.hash, file.hash, sizeof(op->row.hash));
    op->row.size = file.size;
    space_row_done(&file);
    if (rc <= 0)
        return rc < 0 ? -1 : err_set(e, ERR_MISSING, "there is no such file in the workspace");
    return quota_check(op->sv, db, op->tenant, op->row.size, e) < 0 ? -1
                                                                    : db_file_put(db, &op->row, e);
}

void service_file_of_space(struct service *sv, const struct caller *c, struct str session,
                           struct str path, file_fn *fn, void *arg)
{
    static const struct step steps[] = {{.store = copy_row}, {0}};
    struct file_op *op = op_new(sv, c, session, arg);

    op->fn = fn;
    op->path = mem_strndup(path);
    op->row.downloadable = true;
    fill(op);
    if (take_names(op, str_of(path_base(op->path)), (struct str){0}, &op->failed) < 0)
        refuse(op);
    else
        task_start(&op->task, sv, NULL, steps, on_done);
}

/* --- there --- */

int file_find(struct db *db, const char *tenant, const char *pools, const char *id,
              struct file_row *ret, struct err *e)
{
    int rc = db_file_get(db, tenant, id, ret, e);

    if (rc > 0 && pools && (!ret->pools || strcmp(pools, ret->pools) != 0)) {
        file_row_done(ret);
        rc = 0;
    }

    if (rc == 0)
        return err_set(e, ERR_MISSING, "there is no file '%s'", id);
    if (rc < 0 || !ret->expires_ms || ret->expires_ms > time_sure_ms())
        return rc < 0 ? -1 : 0;
    file_row_done(ret);
    err_set(e, ERR_MISSING, "the file '%s' has expired", id);
    e->sys = FILE_EXPIRED;
    return -1;
}

static int read_row(struct task *t, struct db *db, struct err *e)
{
    struct file_op *op = OWNER(t, struct file_op, task);

    return file_find(db, op->tenant, op->pools, op->id, &op->row, e);
}

void service_file_get(struct service *sv, const struct caller *c, struct str id, file_fn *fn,
                      void *arg)
{
    static const struct step steps[] = {{.store = read_row}, {0}};
    struct file_op *op = op_new(sv, c, id, arg);

    op->fn = fn;
    task_start(&op->task, sv, NULL, steps, on_done);
}

static int open_it(struct task *t, struct err *e)
{
    struct file_op *op = OWNER(t, struct file_op, task);

    op->fd = blob_open(t->sv->store, op->row.hash, e);
    return op->fd < 0 ? -1 : 0;
}

void service_file_open(struct service *sv, const struct caller *c, struct str id, file_open_fn *fn,
                       void *arg)
{
    static const struct step steps[] = {{.store = read_row}, {.work = open_it}, {0}};
    struct file_op *op = op_new(sv, c, id, arg);

    op->open_fn = fn;
    task_start(&op->task, sv, NULL, steps, on_done);
}

static int read_list(struct task *t, struct db *db, struct err *e)
{
    struct file_op *op = OWNER(t, struct file_op, task);
    struct page page = op->page;

    page.limit++;
    page.pools = op->pools;
    return task_read_on(
        t, db_file_list(db, op->tenant, time_sure_ms(), page, &op->rows, &op->count, e));
}

void service_file_list(struct service *sv, const struct caller *c, struct page page, files_fn *fn,
                       void *arg)
{
    static const struct step steps[] = {{.loop = task_go_on}, {.store = read_list}, {0}};
    struct file_op *op = op_new(sv, c, str_of(page.after), arg);

    op->list_fn = fn;
    op->page = page;
    op->page.after = page.after ? op->id : NULL;
    op->page.progress = &op->progress;
    op->page.limit = page.limit && page.limit < PAGE_MAX ? page.limit : PAGE_MAX;
    task_start_read(&op->task, sv, steps, on_done);
}

static int newest_first(const void *a, const void *b)
{
    return strcmp(((const struct file_row *)b)->id, ((const struct file_row *)a)->id);
}

static bool has_row(const struct file_op *op, const char *id)
{
    for (size_t i = 0; i < op->count; i++)
        if (strcmp(op->rows[i].id, id) == 0)
            return true;
    return false;
}

static int read_picked(struct task *t, struct db *db, struct err *e)
{
    struct file_op *op = OWNER(t, struct file_op, task);

    op->rows = mem_zalloc((op->id_count + 1) * sizeof(*op->rows));
    for (size_t i = 0; i < op->id_count; i++) {
        if (has_row(op, op->ids[i]))
            continue;
        if (file_find(db, op->tenant, op->pools, op->ids[i], &op->rows[op->count], e) == 0)
            op->count++;
        else if (e->kind != ERR_MISSING)
            return -1;
    }
    qsort(op->rows, op->count, sizeof(*op->rows), newest_first);
    return 0;
}

void service_file_pick(struct service *sv, const struct caller *c, const struct str *ids,
                       size_t count, files_fn *fn, void *arg)
{
    static const struct step steps[] = {{.store = read_picked}, {0}};
    struct file_op *op = op_new(sv, c, (struct str){0}, arg);

    assert(count <= FILE_IDS_MAX);
    op->list_fn = fn;
    op->page.limit = FILE_IDS_MAX;
    op->ids = mem_zalloc((count + 1) * sizeof(*op->ids));
    for (size_t i = 0; i < count; i++)
        if (id_is(ids[i], "file_") && str_to_cstr(ids[i], op->ids[op->id_count], ID_MAX))
            op->id_count++;
    task_start_read(&op->task, sv, steps, on_done);
}

static int delete_row(struct task *t, struct db *db, struct err *e)
{
    struct file_op *op = OWNER(t, struct file_op, task);
    int rc;

    if (op->pools && read_row(t, db, e) < 0)
        return -1;
    rc = db_file_delete(db, op->tenant, op->id, e);

    return rc == 0 ? err_set(e, ERR_MISSING, "there is no file '%s'", op->id) : rc;
}

void service_file_delete(struct service *sv, const struct caller *c, struct str id, done_fn *fn,
                         void *arg)
{
    static const struct step steps[] = {{.store = delete_row}, {0}};
    struct file_op *op = op_new(sv, c, id, arg);

    op->done_fn = fn;
    task_start(&op->task, sv, NULL, steps, on_done);
}
