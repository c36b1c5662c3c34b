/* Files of a workspace: listed, read, put and deleted by clients, awake or asleep. */
#include "service/service_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* One request about one file, or all of them. */
struct space_op {
    struct task task;
    struct service *sv;
    struct loaded *loaded; /* held once found */
    void (*found)(struct space_op *op);
    char path[SPACE_PATH_MAX];
    char source[SPACE_PATH_MAX]; /* of a move: where the file is */
    struct blob *blob;           /* owned, or NULL: of bytes or file_id */
    char *bytes;                 /* owned, or NULL: to be written, or as read */
    size_t n, max;
    uint64_t from;
    char file_id[ID_MAX];
    struct space space; /* owned */
    int fd;             /* owned */
    struct space_row row;
    struct space_row *rows; /* owned */
    size_t count;
    bool in_sandbox, is_there;
    bool reply; /* to code that runs */
    struct err failed;
    space_fn *on_files;
    open_fn *on_open;
    bytes_fn *on_bytes;
    done_fn *on_done;
    void *arg;
};

static struct space_file file_of(const struct space_row *r)
{
    return (struct space_file){.path = str_of(r->path),
                               .size = r->size,
                               .mime = mime_of(str_of(r->path)),
                               .mtime_ms = r->mtime_ms,
                               .hash = r->hash};
}

static void answer_files(struct space_op *op, const struct err *failed)
{
    AUTO_FREE struct space_file *files = mem_zalloc((op->count + 1) * sizeof(*files));

    for (size_t i = 0; i < op->count; i++)
        files[i] = file_of(&op->rows[i]);
    if (op->row.path)
        files[op->count++] = file_of(&op->row);
    op->on_files(op->arg, failed ? NULL : files, failed ? 0 : op->count, failed);
    if (op->row.path)
        op->count--;
}

static void answer_file(struct space_op *op, const struct err *failed)
{
    struct space_file file = failed ? (struct space_file){0} : file_of(&op->row);

    if (op->on_open)
        op->on_open(op->arg, &op->fd, failed ? NULL : &file, failed);
    else
        op->on_bytes(op->arg, &op->bytes, op->n, failed ? NULL : &file, failed);
}

static void op_end(struct space_op *op, const struct err *failed)
{
    if (op->on_files)
        answer_files(op, failed);
    else if (op->on_open || op->on_bytes)
        answer_file(op, failed);
    else
        op->on_done(op->arg, failed);
    if (op->loaded)
        loaded_drop(op->loaded);
    blob_free(op->blob);
    free(op->bytes);
    space_close(&op->space);
    fd_closep(&op->fd);
    space_row_done(&op->row);
    for (size_t i = 0; i < op->count; i++)
        space_row_done(&op->rows[i]);
    free(op->rows);
    free(op);
}

static void on_ended(struct task *t, const struct err *failed)
{
    op_end(OWNER(t, struct space_op, task), failed);
}

static void on_found(void *arg, struct loaded *l, const struct err *failed)
{
    struct space_op *op = arg;

    if (!l)
        return op_end(op, failed);
    loaded_hold(l);
    op->loaded = l;
    op->found(op);
}

static void refuse_later(void *arg)
{
    struct space_op *op = arg;

    op->sv->pending--;
    op_end(op, &op->failed);
}

static void refuse(struct space_op *op)
{
    op->sv->pending++;
    loop_later(op->sv->loop, refuse_later, op);
}

static void op_start(struct space_op *op, const struct caller *c, struct str session,
                     struct str path)
{
    if (space_path_clean(path, op->path, &op->failed) < 0)
        return refuse(op);
    loaded_find(op->sv, c, session, on_found, op);
}

static struct space_op *op_new(struct service *sv, void *arg)
{
    struct space_op *op = mem_zalloc(sizeof(*op));

    *op = (struct space_op){.sv = sv, .space.dir = -1, .fd = -1, .arg = arg};
    return op;
}

/* --- list and open: after what is in the sandbox has been saved --- */

static int read_list(struct task *t, struct db *db, struct err *e)
{
    struct space_op *op = OWNER(t, struct space_op, task);

    return space_rows_read(t, db, op->loaded->row.id, &op->rows, &op->count, e);
}

static int read_one(struct task *t, struct db *db, struct err *e)
{
    struct space_op *op = OWNER(t, struct space_op, task);
    int rc = db_space_get(db, op->loaded->row.id, str_of(op->path), &op->row, e);

    return rc == 0 ? err_set(e, ERR_MISSING, "there is no such file in the workspace") : rc;
}

static int open_blob(struct task *t, struct err *e)
{
    struct space_op *op = OWNER(t, struct space_op, task);

    op->fd = blob_open(t->sv->store, op->row.hash, e);
    return op->fd < 0 ? -1 : 0;
}

static int read_bytes(struct task *t, struct err *e)
{
    struct space_op *op = OWNER(t, struct space_op, task);
    uint64_t left = op->from < op->row.size ? op->row.size - op->from : 0;
    size_t n = left < op->max ? (size_t)left : op->max;
    ssize_t got;

    if (open_blob(t, e) < 0)
        return -1;
    op->bytes = mem_zalloc(n + 1);
    while (op->n < n) {
        got = pread(op->fd, op->bytes + op->n, n - op->n, (off_t)(op->from + op->n));
        if (got <= 0 && !(got < 0 && errno == EINTR))
            return err_sys(e, "read a file of a workspace");
        op->n += got > 0 ? (size_t)got : 0;
    }
    return 0;
}

static void on_synced(void *arg, const struct err *failed)
{
    static const struct step list[] = {{.loop = task_go_on}, {.store = read_list}, {0}};
    static const struct step one[] = {{.store = read_one}, {.work = open_blob}, {0}};
    static const struct step bytes[] = {{.store = read_one}, {.work = read_bytes}, {0}};
    struct space_op *op = arg;

    if (failed)
        return op_end(op, failed);
    op->task.whose = op->loaded->whose;
    if (op->on_open)
        task_start(&op->task, op->sv, NULL, one, on_ended);
    else
        task_start_read(&op->task, op->sv, op->on_bytes ? bytes : list, on_ended);
}

static void sync_and_read(struct space_op *op)
{
    if (loaded_is_awake(op->loaded) || op->loaded->tasks)
        space_sync(op->loaded, on_synced, op);
    else
        on_synced(op, NULL);
}

void service_space_list(struct service *sv, const struct caller *c, struct str session,
                        space_fn *fn, void *arg)
{
    struct space_op *op = op_new(sv, arg);

    op->on_files = fn;
    op->found = sync_and_read;
    loaded_find(sv, c, session, on_found, op);
}

void service_space_open(struct service *sv, const struct caller *c, struct str session,
                        struct str path, open_fn *fn, void *arg)
{
    struct space_op *op = op_new(sv, arg);

    op->on_open = fn;
    op->found = sync_and_read;
    op_start(op, c, session, path);
}

void service_space_read(struct service *sv, const struct caller *c, struct str session,
                        struct str path, uint64_t from, size_t max, bytes_fn *fn, void *arg)
{
    struct space_op *op = op_new(sv, arg);

    op->on_bytes = fn;
    op->from = from;
    op->max = max;
    op->found = sync_and_read;
    op_start(op, c, session, path);
}

/* --- put --- */

static bool brings(const struct task *t, struct str path)
{
    return str_is(path, OWNER(t, struct space_op, task)->path);
}

/* When it is this one's turn: is there a sandbox to be kept the same? */
static int take_space(struct task *t, struct err *e)
{
    struct space_op *op = OWNER(t, struct space_op, task);

    if (task_session_there(t, e) < 0)
        return -1;
    if (op->loaded->env->config.approval != POLICY_AUTO && op->loaded->job_count > 0 && !op->reply)
        return err_set(e, ERR_CONFLICT,
                       "a person agrees to what runs here: while code waits or runs in this "
                       "session, nobody else changes its files");
    op->loaded->written_at = ++op->sv->write_clock;
    op->in_sandbox = loaded_is_awake(op->loaded);
    return op->in_sandbox ? space_take(op->loaded, &op->space, e) : 0;
}

/* What is written over keeps its permissions: a script that could be run can still be. */
static int find_mode(struct task *t, struct db *db, struct err *e)
{
    struct space_op *op = OWNER(t, struct space_op, task);
    struct space_row old = {0};
    int rc = db_space_get(db, op->loaded->row.id, str_of(op->path), &old, e);

    op->row.mode = rc > 0 ? old.mode | 0600 : 0644;
    space_row_done(&old);
    return rc < 0 ? -1 : 0;
}

static int keep_bytes(struct task *t, struct err *e)
{
    struct space_op *op = OWNER(t, struct space_op, task);
    AUTO_CLOSE int fd = -1;

    if (op->bytes) {
        op->blob = blob_new(t->sv->store, t->sv->config.file_bytes, e);
        if (!op->blob || blob_write(op->blob, (struct str){op->bytes, op->n}, e) < 0)
            return -1;
    }
    if (op->blob && blob_keep(take_ptr(&op->blob), BLOB_NOW, op->row.hash, &op->row.size, e) < 0)
        return -1;
    if (!op->row.mtime_ms) /* one that is moved has the time it had */
        op->row.mtime_ms = time_now_ms();
    if (!op->in_sandbox)
        return 0;
    fd = blob_open(t->sv->store, op->row.hash, e);
    if (fd < 0)
        return -1;
    if (space_put(&op->space, str_of(op->path), fd, op->row.mode, op->row.mtime_ms, e) < 0)
        return space_blame(e, op->path);
    return 0;
}

static bool is_below(const char *path, const char *dir)
{
    size_t n = strlen(dir);

    return strncmp(path, dir, n) == 0 && path[n] == '/';
}

/* Asleep, the rows must be what a sandbox could hold. */
static int check_asleep(struct space_op *op, struct db *db, struct err *e)
{
    uint64_t sum = op->row.size;
    size_t others = 0;

    if (db_space_list(db, op->loaded->row.id, &op->rows, &op->count, e) < 0)
        return -1;
    for (size_t i = 0; i < op->count; i++) {
        const char *other = op->rows[i].path;
        if (is_below(other, op->path) || is_below(op->path, other))
            return err_set(e, ERR_CONFLICT, "'%s' cannot be written: something else is there",
                           op->path);
        sum += strcmp(other, op->path) == 0 ? 0 : op->rows[i].size;
        others += strcmp(other, op->path) != 0;
        space_row_done(&op->rows[i]);
        op->rows[i] = (struct space_row){0};
    }
    op->count = 0;
    if (others >= SPACE_FILES_MAX)
        return err_set(e, ERR_LIMIT, "the workspace holds %d files, and takes no more",
                       SPACE_FILES_MAX);
    if (sum > op->loaded->env->config.limits.disk_bytes)
        return err_set(e, ERR_LIMIT, "'%s' does not fit into the workspace", op->path);
    return 0;
}

static int write_put(struct task *t, struct db *db, struct err *e)
{
    struct space_op *op = OWNER(t, struct space_op, task);

    op->row.path = mem_strdup(op->path);
    if (!op->in_sandbox && check_asleep(op, db, e) < 0)
        return -1;
    db_must_sync(db); /* an upload */
    return db_space_put(db, op->loaded->row.id, &op->row, e);
}

static void on_put(struct task *t, const struct err *failed)
{
    struct space_op *op = OWNER(t, struct space_op, task);

    if (op->in_sandbox && loaded_is_awake(op->loaded) && !failed)
        workspace_note(op->loaded->session, str_of(op->path));
    if (!failed && op->loaded->state != SESSION_ENDED)
        loaded_used(op->loaded);
    if (!failed && op->loaded->state == SESSION_ASLEEP)
        loaded_keep(op->loaded, false);
    if (!failed)
        feed_file(op->loaded, str_of(op->path), true);
    op_end(op, failed);
}

static void put(struct space_op *op)
{
    static const struct step steps[] = {{.loop = take_space}, {.store = find_mode},
                                        {.work = keep_bytes}, {.loop = task_session_there},
                                        {.store = write_put}, {0}};

    op->task.brings = brings;
    task_start(&op->task, op->sv, op->loaded, steps, on_put);
}

void service_space_put(struct service *sv, const struct caller *c, struct str session,
                       struct str path, struct blob *bytes, space_fn *fn, void *arg)
{
    struct space_op *op = op_new(sv, arg);

    op->on_files = fn;
    op->blob = bytes;
    op->found = put;
    op_start(op, c, session, path);
}

static struct space_op *op_write(struct service *sv, char *bytes, size_t n, space_fn *fn, void *arg)
{
    struct space_op *op = op_new(sv, arg);

    op->on_files = fn;
    op->bytes = bytes;
    op->n = n;
    op->found = put;
    return op;
}

void service_space_write(struct service *sv, const struct caller *c, struct str session,
                         struct str path, char *bytes, size_t n, space_fn *fn, void *arg)
{
    op_start(op_write(sv, bytes, n, fn, arg), c, session, path);
}

void service_space_reply(struct service *sv, const struct caller *c, struct str session,
                         struct str path, char *bytes, size_t n, space_fn *fn, void *arg)
{
    struct space_op *op = op_write(sv, bytes, n, fn, arg);

    op->reply = true;
    op_start(op, c, session, path);
}

static int find_upload(struct task *t, struct db *db, struct err *e)
{
    struct space_op *op = OWNER(t, struct space_op, task);
    struct file_row file = {0};
    int rc = db_file_get(db, op->loaded->row.tenant, op->file_id, &file, e);

    memcpy(op->row.hash, file.hash, sizeof(op->row.hash));
    op->row.size = file.size;
    file_row_done(&file);
    return rc == 0 ? err_set(e, ERR_MISSING, "there is no such file") : rc;
}

static void put_upload(struct space_op *op)
{
    static const struct step steps[] = {{.store = find_upload}, {.loop = take_space},
                                        {.work = keep_bytes},   {.loop = task_session_there},
                                        {.store = write_put},   {0}};

    op->task.brings = brings;
    task_start(&op->task, op->sv, op->loaded, steps, on_put);
}

void service_space_take(struct service *sv, const struct caller *c, struct str session,
                        struct str path, struct str file, space_fn *fn, void *arg)
{
    struct space_op *op = op_new(sv, arg);

    op->on_files = fn;
    op->found = put_upload;
    if (!str_to_cstr(file, op->file_id, sizeof(op->file_id)))
        op->file_id[0] = '\0'; /* which is nobody's */
    op_start(op, c, session, path);
}

/* --- move --- */

static bool brings_either(const struct task *t, struct str path)
{
    return brings(t, path) || str_is(path, OWNER(t, struct space_op, task)->source);
}

static int find_source(struct task *t, struct db *db, struct err *e)
{
    struct space_op *op = OWNER(t, struct space_op, task);
    struct space_row row = {0};
    int rc = db_space_get(db, op->loaded->row.id, str_of(op->source), &row, e);

    memcpy(op->row.hash, row.hash, sizeof(op->row.hash));
    op->row.size = row.size;
    op->row.mode = row.mode;
    op->row.mtime_ms = row.mtime_ms;
    space_row_done(&row);
    return rc == 0 ? err_set(e, ERR_MISSING, "there is no such file in the workspace") : rc;
}

/* First the new one, then the old one is taken away: a failure between the two loses nothing. */
static int move_bytes(struct task *t, struct err *e)
{
    struct space_op *op = OWNER(t, struct space_op, task);

    if (keep_bytes(t, e) < 0)
        return -1;
    if (op->in_sandbox && space_delete(&op->space, str_of(op->source), e) < 0)
        return space_blame(e, op->source);
    return 0;
}

static int write_move(struct task *t, struct db *db, struct err *e)
{
    struct space_op *op = OWNER(t, struct space_op, task);

    if (db_blob_hold(db, op->row.hash, e) < 0 ||
        db_space_drop(db, op->loaded->row.id, str_of(op->source), e) < 0)
        return -1;
    return write_put(t, db, e);
}

static void on_moved(struct task *t, const struct err *failed)
{
    struct space_op *op = OWNER(t, struct space_op, task);

    if (op->in_sandbox && loaded_is_awake(op->loaded) && !failed)
        workspace_note(op->loaded->session, str_of(op->source));
    if (!failed)
        feed_file(op->loaded, str_of(op->source), true);
    on_put(t, failed);
}

static void on_synced_to_move(void *arg, const struct err *failed)
{
    static const struct step steps[] = {{.loop = take_space},  {.store = find_source},
                                        {.work = move_bytes},  {.loop = task_session_there},
                                        {.store = write_move}, {0}};
    static const struct step same[] = {{.store = read_one}, {0}};
    struct space_op *op = arg;

    if (failed)
        return op_end(op, failed);
    if (strcmp(op->path, op->source) == 0) /* it is where it should be */
        return task_start(&op->task, op->sv, NULL, same, on_ended);
    op->task.brings = brings_either;
    task_start(&op->task, op->sv, op->loaded, steps, on_moved);
}

static void sync_and_move(struct space_op *op)
{
    if (loaded_is_awake(op->loaded) || op->loaded->tasks)
        space_sync(op->loaded, on_synced_to_move, op);
    else
        on_synced_to_move(op, NULL);
}

void service_space_move(struct service *sv, const struct caller *c, struct str session,
                        struct str path, struct str to, space_fn *fn, void *arg)
{
    struct space_op *op = op_new(sv, arg);

    op->on_files = fn;
    op->found = sync_and_move;
    if (space_path_clean(path, op->source, &op->failed) < 0)
        return refuse(op);
    op_start(op, c, session, to);
}

/* --- delete --- */

static int delete_file(struct task *t, struct err *e)
{
    struct space_op *op = OWNER(t, struct space_op, task);
    int rc = op->in_sandbox ? space_delete(&op->space, str_of(op->path), e) : 0;

    op->is_there = rc == 1;
    return rc < 0 ? space_blame(e, op->path) : 0;
}

static int write_delete(struct task *t, struct db *db, struct err *e)
{
    struct space_op *op = OWNER(t, struct space_op, task);
    int rc = db_space_get(db, op->loaded->row.id, str_of(op->path), &op->row, e);

    if (rc < 0)
        return -1;
    if (rc == 0 && !op->is_there)
        return err_set(e, ERR_MISSING, "there is no such file in the workspace");
    return db_space_drop(db, op->loaded->row.id, str_of(op->path), e) < 0 ? -1 : 0;
}

static void delete (struct space_op *op)
{
    static const struct step steps[] = {{.loop = take_space},
                                        {.work = delete_file},
                                        {.loop = task_session_there},
                                        {.store = write_delete},
                                        {0}};

    op->task.brings = brings;
    task_start(&op->task, op->sv, op->loaded, steps, on_put);
}

void service_space_delete(struct service *sv, const struct caller *c, struct str session,
                          struct str path, done_fn *fn, void *arg)
{
    struct space_op *op = op_new(sv, arg);

    op->on_done = fn;
    op->found = delete;
    op_start(op, c, session, path);
}
