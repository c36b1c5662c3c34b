/* A version of a skill as a zip archive, which can be uploaded again. */
#include "doors/anthropic/skills_int.h"
#include "doors/values/archive.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define ARCHIVE_MAX (SKILL_BYTES + MiB)

struct skill_download {
    struct request *r; /* borrowed: until it is answered */
    struct archive archive;
    struct buf out;
    char folder[sizeof(((struct skill_front_matter *)0)->name)];
    json_t *files; /* owned: ids of the items, and their paths */
    size_t at;
    int fd; /* owned: of the file at hand */
    uint64_t size;
    char path[SPACE_PATH_MAX + sizeof(((struct skill_front_matter *)0)->name) + 1];
    struct err failed; /* kind 0: nothing */
};

static void download_free(void *arg)
{
    struct skill_download *d = arg;

    fd_closep(&d->fd);
    archive_done(&d->archive);
    buf_done(&d->out);
    json_decref(d->files);
    free(d);
}

static struct skill_download *download_new(struct request *r)
{
    struct skill_download *d = mem_zalloc(sizeof(*d));

    d->r = r;
    d->fd = -1;
    d->files = json_array();
    archive_init(&d->archive, &zip_format);
    buf_init(&d->out, ARCHIVE_MAX);
    request_keep(r, download_free, d);
    return d;
}

static int add_file(struct skill_download *d, struct str bytes)
{
    if (archive_begin(&d->archive, str_of(d->path), bytes.n, 0, &d->out, &d->failed) < 0)
        return -1;
    archive_bytes(&d->archive, bytes);
    buf_put(&d->out, bytes);
    return archive_finish(&d->archive, &d->out, &d->failed);
}

static void put_path(struct skill_download *d, struct str path)
{
    snprintf(d->path, sizeof(d->path), "%s/%.*s", d->folder, (int)path.n, path.p);
}

static void answer(struct skill_download *d)
{
    char name[sizeof(d->folder) + 8], disposition[DISPOSITION_MAX];

    if (d->failed.kind || archive_end(&d->archive, &d->out, &d->failed) < 0)
        return skill_fail(d->r, &d->failed);
    snprintf(name, sizeof(name), "%s.zip", d->folder);
    disposition_print(str_of(name), disposition);
    answer_header(d->r, "content-disposition", disposition);
    answer_text(d->r, 200, zip_format.mime, buf_str(&d->out));
}

/* --- the server's own --- */

static void answer_own(struct request *r, struct str skill)
{
    struct skill_download *d = download_new(r);
    json_t *files = json_array();
    const json_t *one;
    size_t i;

    (void)!str_to_cstr(skill, d->folder, sizeof(d->folder));
    own_skill_mount(d->folder, files);
    json_array_foreach(files, i, one) {
        put_path(d, str_from(view_of(one, "path"), strlen(SKILL_DIR "/") + skill.n + 1));
        if (add_file(d, own_skill_bytes(view_of(one, "uri"))) < 0)
            break;
    }
    json_decref(files);
    answer(d);
}

/* --- those of clients: file by file --- */

static void next(struct skill_download *d);

/* On another thread. */
static void read_file(void *arg)
{
    struct skill_download *d = arg;
    AUTO_FREE char *bytes = mem_zalloc(d->size + 1);
    size_t n = 0;
    ssize_t got;

    while (n < d->size && (got = read(d->fd, bytes + n, d->size - n)) > 0)
        n += (size_t)got;
    if (n < d->size)
        err_set(&d->failed, ERR_HOST, "a file of a skill could not be read");
    else
        (void)!add_file(d, (struct str){bytes, n});
    fd_closep(&d->fd);
}

static void on_read(void *arg)
{
    struct skill_download *d = arg;

    if (d->failed.kind)
        return answer(d);
    d->at++;
    next(d);
}

static void on_open(void *arg, int *fd, const struct item_row *item, const struct err *failed)
{
    struct skill_download *d = arg;

    if (failed)
        return skill_fail(d->r, failed);
    d->fd = take_fd(fd);
    d->size = item->size;
    service_work(request_service(d->r), read_file, on_read, d);
}

static void next(struct skill_download *d)
{
    const json_t *file = json_array_get(d->files, d->at);

    if (!file)
        return answer(d);
    put_path(d, view_of(file, "path"));
    service_item_open(request_service(d->r), request_caller(d->r), SKILL_KIND_FILE,
                      view_of(file, "id"), on_open, d);
}

static void on_files(void *arg, const struct item_row *items, size_t count, uint64_t total,
                     const struct err *failed)
{
    struct skill_download *d = arg;

    (void)total;
    if (failed)
        return skill_fail(d->r, failed);
    for (size_t i = 0; i < count; i++) {
        json_t *body = json_loads(items[i].body, 0, NULL);
        json_array_append_new(d->files, json_pack("{s:s, s:O}", "id", items[i].id, "path",
                                                  json_object_get(body, "path")));
        json_decref(body);
    }
    next(d);
}

static void on_version(void *arg, const struct item_row *item, const struct err *failed)
{
    struct request *r = arg;
    struct item_filter f = {.kind = SKILL_KIND_FILE, .owner = ""};
    struct skill_download *d;
    json_t *body;

    if (!skill_is_version(r, item, failed))
        return;
    d = download_new(r);
    body = json_loads(item->body, 0, NULL);
    (void)!str_to_cstr(view_of(body, "name"), d->folder, sizeof(d->folder));
    json_decref(body);
    f.parent = item->id;
    service_item_list(request_service(r), request_caller(r), &f, on_files, d);
}

void handle_skill_content(struct request *r)
{
    AUTO(item_row_done) struct item_row own = {0};
    struct str skill = request_path(r, "skill"), version = request_path(r, "version");
    struct err missing = {.kind = ERR_MISSING};

    if (!own_skill_is(skill))
        return service_item_get(request_service(r), request_caller(r), SKILL_KIND_V, version,
                                on_version, r);
    if (own_version_row(skill.p, version, &own))
        answer_own(r, skill);
    else
        skill_fail(r, &missing);
}
