/* Files given with an execution: gathered while it waits, put into the workspace when it is its
 * turn, and saved like any other file there. */
#include "service/service_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

/* --- copied from the request --- */

static int copy_one(struct exec_input *in, const struct file_input *from, struct err *e)
{
    int sources = (from->file_id.n > 0) + (from->url.n > 0) + from->has_content +
                  (from->fd != NULL) + from->is_folder + (from->hash != NULL);
    char path[SPACE_PATH_MAX];

    if (sources != 1)
        return err_set(e, ERR_CALLER, "a file needs exactly one of id, url and content");
    if ((from->has_content || from->fd || from->is_folder || from->hash) && from->path.n == 0)
        return err_set(e, ERR_CALLER, "a file with content needs a path");
    if (from->path.n > 0) {
        if (space_path_clean(from->path, path, e) < 0)
            return -1;
        in->path = mem_strdup(path);
    }
    in->is_folder = from->is_folder;
    in->is_ours = from->is_ours;
    if (in->is_folder)
        return 0;
    if (from->file_id.n > 0) {
        if (!id_is(from->file_id, "file_"))
            return err_set(e, ERR_MISSING, "there is no such file");
        in->file_id = mem_strndup(from->file_id);
    } else if (from->url.n > 0) {
        in->url = mem_strndup(from->url);
    } else if (from->fd) {
        in->fd = take_fd(from->fd);
    } else if (from->hash) {
        snprintf(in->hash, sizeof(in->hash), "%s", from->hash);
        in->size = from->size;
    } else {
        in->content = mem_strndup(from->content);
        in->content_n = from->content.n;
    }
    return 0;
}

static uint64_t bytes_of(const struct exec_spec *spec)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < spec->file_count; i++)
        sum += spec->files[i].content.n + spec->files[i].url.n;
    return sum;
}

int inputs_copy(struct execution *j, const struct exec_spec *spec, struct err *e)
{
    if (spec->file_count > INPUTS_MAX)
        return err_set(e, ERR_LIMIT, "more than %d files", INPUTS_MAX);
    if (!job_takes(j, bytes_of(spec)))
        return forbid(j->sv, e, 1, "the server holds as much for executions as it may");
    j->inputs = mem_zalloc((spec->file_count + 1) * sizeof(*j->inputs));
    for (size_t i = 0; i < spec->file_count; i++) {
        j->inputs[i] = (struct exec_input){.job = j, .fd = -1};
        j->input_count++;
        if (copy_one(&j->inputs[i], &spec->files[i], e) < 0)
            return -1;
    }
    return 0;
}

void inputs_free(struct execution *j)
{
    for (size_t i = 0; i < j->input_count; i++) {
        struct exec_input *in = &j->inputs[i];
        free(in->path);
        free(in->file_id);
        free(in->url);
        free(in->content);
        fd_closep(&in->fd);
        blob_free(in->blob);
    }
    free(j->inputs);
}

/* --- shown --- */

/* Whole where it is text. Of other bytes more than a person is asked to read is cut: what is left
 * is still too long, and the call is refused. */
static void show_content(json_t *one, struct str s)
{
    if (str_utf8_len(s) == s.n) {
        json_object_set_new(one, "content", record_text(s));
        return;
    }
    if (s.n > APPROVAL_TEXT_MAX)
        s.n = APPROVAL_TEXT_MAX;
    json_object_set_new(one, "content_base64", record_base64(s));
}

/* A file of the host is told by its size and time: to read it here would hold up everybody. */
static void show_host_file(json_t *one, int fd)
{
    struct stat st = {0};

    (void)!fstat(fd, &st);
    json_object_set_new(one, "size", json_integer(st.st_size));
    json_object_set_new(
        one, "modified_ms",
        json_integer((json_int_t)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000));
}

/* What decides what runs, whichever door it came through: code may be harmless, and a file that
 * comes with it not. Folders are empty. */
json_t *inputs_show(const struct execution *j)
{
    json_t *list = json_array();

    for (size_t i = 0; i < j->input_count; i++) {
        const struct exec_input *in = &j->inputs[i];
        json_t *one;
        if (in->is_folder || in->is_ours)
            continue;
        one = json_pack("{s:s*, s:s*, s:s*}", "path", in->path, "id", in->file_id, "url", in->url);
        if (in->content)
            show_content(one, (struct str){in->content, in->content_n});
        if (in->fd >= 0)
            show_host_file(one, in->fd);
        if (*in->hash)
            json_object_set_new(one, "sha256", json_string(in->hash));
        json_array_append_new(list, one);
    }
    return list;
}

/* --- gathered --- */

/* Its own name where the client gave none. */
static int name_it(struct exec_input *in, const char *name, struct err *e)
{
    char path[SPACE_PATH_MAX];

    if (in->path)
        return 0;
    if (space_path_clean(str_of(path_base(name)), path, e) < 0)
        return err_wrap(e, "a file's own name cannot be used, give it a path");
    in->path = mem_strdup(path);
    return 0;
}

static void has_come(struct execution *j, const struct err *failed)
{
    if (failed && j->failed.kind == ERR_NONE &&
        (j->state == JOB_WAITING || j->state == JOB_FETCHING)) {
        j->failed = *failed;
        inputs_cancel(j);
    }
    if (--j->inputs_left > 0)
        return;
    if (j->state == JOB_FETCHING)
        job_fetched(j);
    else
        job_inputs_there(j);
}

static int look_up_one(struct exec_input *in, struct db *db, const struct execution *j,
                       struct err *e)
{
    struct file_row row = {0};
    int rc = file_find(db, j->row.tenant, j->pools, in->file_id, &row, e);

    if (rc == 0)
        rc = name_it(in, row.name, e);
    memcpy(in->hash, row.hash, sizeof(in->hash));
    in->size = row.size;
    file_row_done(&row);
    return rc;
}

static int look_up(struct task *t, struct db *db, struct err *e)
{
    struct execution *j = OWNER(t, struct execution, lookup);

    for (size_t i = 0; i < j->input_count; i++)
        if (j->inputs[i].file_id && look_up_one(&j->inputs[i], db, j, e) < 0)
            return -1;
    return 0;
}

static void on_looked_up(struct task *t, const struct err *failed)
{
    has_come(OWNER(t, struct execution, lookup), failed);
}

static int on_bytes(void *arg, struct str bytes, struct err *e)
{
    return blob_write(((struct exec_input *)arg)->blob, bytes, e);
}

/* The watcher may go on without a file, or refuse one. */
static void tell_input(struct exec_input *in, const char *mime, struct err *e)
{
    struct execution *j = in->job;

    if (!j->watched || !j->watcher.on_input || j->failed.kind)
        return;
    if (j->watcher.on_input(j->arg, (size_t)(in - j->inputs), mime, e->kind ? e : NULL)) {
        in->is_absent = e->kind != ERR_NONE;
        e->kind = ERR_NONE;
    } else if (!e->kind) {
        err_set(e, ERR_CALLER, "a file was refused");
    }
}

static void on_fetched(void *arg, const struct fetch_result *r, const struct err *failed)
{
    struct exec_input *in = arg;
    struct err e = {0};

    in->fetch = NULL;
    if (failed)
        e = *failed;
    else
        (void)!name_it(in, r->name, &e);
    tell_input(in, e.kind ? NULL : r->mime, &e);
    has_come(in->job, e.kind ? &e : NULL);
}

static void fetch(struct exec_input *in)
{
    struct service *sv = in->job->sv;
    struct err e = {0};

    in->blob = blob_new(sv->store, sv->config.fetch_bytes, &e);
    if (in->blob)
        in->fetch = fetch_start(sv->fetcher, in->job->caller.tenant, str_of(in->url), on_bytes,
                                on_fetched, in);
    else
        has_come(in->job, &e);
}

void inputs_gather(struct execution *j)
{
    static const struct step steps[] = {{.store = look_up}, {0}};
    bool ids = false;

    if (j->input_count == 0 || j->gathered)
        return;
    j->gathered = true;
    j->inputs_left = 1; /* this loop: the last to come must not come before all are on their way */
    for (size_t i = 0; i < j->input_count && j->failed.kind == ERR_NONE; i++) {
        ids |= j->inputs[i].file_id != NULL;
        j->inputs_left += j->inputs[i].url != NULL;
        if (j->inputs[i].url)
            fetch(&j->inputs[i]);
    }
    j->inputs_left += ids;
    if (ids)
        task_start(&j->lookup, j->sv, NULL, steps, on_looked_up);
    has_come(j, NULL);
}

void inputs_cancel(struct execution *j)
{
    for (size_t i = 0; i < j->input_count; i++)
        if (j->inputs[i].fetch)
            fetch_cancel(j->inputs[i].fetch);
}

/* --- placed --- */

static bool brings(const struct task *t, struct str path)
{
    const struct execution *j = OWNER(t, struct execution, place);

    for (size_t i = 0; i < j->input_count; i++)
        if (!j->inputs[i].is_absent && str_is(path, j->inputs[i].path))
            return true;
    return false;
}

static int take_space(struct task *t, struct err *e)
{
    struct execution *j = OWNER(t, struct execution, place);

    return space_take(j->loaded, &j->space, e);
}

static int copy_bytes(struct exec_input *in, struct service *sv, struct err *e)
{
    in->blob = blob_new(sv->store, in->fd >= 0 ? sv->config.fetch_bytes : in->content_n, e);
    if (!in->blob)
        return -1;
    return in->fd >= 0 ? blob_write_fd(in->blob, in->fd, e)
                       : blob_write(in->blob, (struct str){in->content, in->content_n}, e);
}

static int make_blob(struct exec_input *in, struct service *sv, struct err *e)
{
    if (*in->hash) /* an upload, or placed before in a sandbox that was lost */
        return 0;
    if (!in->blob && copy_bytes(in, sv, e) < 0)
        return -1;
    return blob_keep(take_ptr(&in->blob), BLOB_LATER, in->hash, &in->size, e);
}

static int place_all(struct task *t, struct err *e)
{
    struct execution *j = OWNER(t, struct execution, place);

    for (size_t i = 0; i < j->input_count; i++) {
        struct exec_input *in = &j->inputs[i];
        AUTO_CLOSE int fd = -1;
        if (in->is_absent)
            continue;
        if (in->is_folder) {
            if (space_mkdir(&j->space, str_of(in->path), e) < 0)
                return space_blame(e, in->path);
            continue;
        }
        if (make_blob(in, t->sv, e) < 0)
            return -1;
        fd = blob_open(t->sv->store, in->hash, e);
        if (fd < 0)
            return -1;
        in->mtime_ms = time_now_ms();
        if (space_put(&j->space, str_of(in->path), fd, 0, in->mtime_ms, e) < 0)
            return space_blame(e, in->path);
    }
    return 0;
}

static int write_rows(struct task *t, struct db *db, struct err *e)
{
    struct execution *j = OWNER(t, struct execution, place);

    for (size_t i = 0; i < j->input_count; i++) {
        struct exec_input *in = &j->inputs[i];
        struct space_row row = {
            .path = in->path, .size = in->size, .mode = 0644, .mtime_ms = in->mtime_ms};
        if (in->is_folder || in->is_absent)
            continue;
        memcpy(row.hash, in->hash, sizeof(row.hash));
        if (db_space_put(db, j->row.session, &row, e) < 0)
            return -1;
    }
    return 0;
}

static int note(struct task *t, struct err *e)
{
    struct execution *j = OWNER(t, struct execution, place);

    (void)e;
    for (size_t i = 0; i < j->input_count; i++) {
        if (j->inputs[i].is_folder || j->inputs[i].is_absent)
            continue;
        if (j->loaded->session)
            workspace_note(j->loaded->session, str_of(j->inputs[i].path));
        feed_file(j->loaded, str_of(j->inputs[i].path), true);
    }
    return 0;
}

void inputs_place(struct execution *j, task_fn *done)
{
    static const struct step steps[] = {
        {.loop = take_space},  {.work = place_all}, {.loop = task_session_there},
        {.store = write_rows}, {.loop = note},      {0}};

    j->place.brings = brings;
    task_start(&j->place, j->sv, j->loaded, steps, done);
}
