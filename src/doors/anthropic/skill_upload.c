/*
 * A skill on its way in: a form with its files, each named FOLDER/path, or with one zip archive.
 *
 * Both become the same list of paths and blobs. An archive is unpacked on a worker, after the
 * sizes in its directory were checked; the real sizes are checked while it is unpacked.
 */
#include "doors/anthropic/skills_int.h"

#include "doors/anthropic/unzip.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#define TITLE_MAX 255
#define FILES_MAX 100
#define OF_A_MAC  "__MACOSX/" /* what Finder adds: attributes of the other files */

struct skill_upload {
    struct request *r;       /* borrowed: until it is answered */
    struct service *service; /* borrowed */
    struct skill_front_matter matter;
    char skill[ID_MAX], version[ID_MAX];
    bool exists;          /* it is a further version of this skill */
    json_t *before;       /* owned, or NULL: what is kept of that skill */
    int64_t created_ms;   /* of the skill */
    json_t *title;        /* owned, or NULL */
    struct blob *archive; /* owned, or NULL: to be unpacked */
    size_t archive_size;
    size_t file_count;
    struct {
        struct blob *blob; /* owned */
        char path[SPACE_PATH_MAX], id[SPACE_PATH_MAX + ID_MAX];
    } files[FILES_MAX];
    struct err failed;
};

static void upload_free(void *arg)
{
    struct skill_upload *u = arg;

    for (size_t i = 0; i < u->file_count; i++)
        blob_free(u->files[i].blob);
    blob_free(u->archive);
    json_decref(u->before);
    json_decref(u->title);
    free(u);
}

/* --- its files --- */

static bool is_below(const char *path, const char *folder)
{
    size_t n = strlen(folder);

    return strncmp(path, folder, n) == 0 && path[n] == '/';
}

/* Takes the blob in any case. */
static int add_file(struct skill_upload *u, struct str name, struct blob *blob)
{
    char *path;

    if (u->file_count == FILES_MAX) {
        blob_free(blob);
        return err_set(&u->failed, ERR_CALLER, "files: a skill has %d files at most", FILES_MAX);
    }
    path = u->files[u->file_count].path;
    u->files[u->file_count].blob = blob;
    u->file_count++; /* so that the blob is freed with the others */
    if (space_path_clean(name, path, &u->failed) < 0)
        return err_wrap(&u->failed, "files");
    for (size_t i = 0; i + 1 < u->file_count; i++) {
        const char *other = u->files[i].path;
        if (strcmp(other, path) == 0)
            return err_set(&u->failed, ERR_CALLER, "files: %.100s is there twice", path);
        if (is_below(other, path) || is_below(path, other))
            return err_set(&u->failed, ERR_CALLER, "files: %.100s is a file and a folder",
                           is_below(other, path) ? path : other);
    }
    return 0;
}

static const struct blob *main_file(const struct skill_upload *u)
{
    for (size_t i = 0; i < u->file_count; i++)
        if (strcmp(u->files[i].path, SKILL_FILE) == 0)
            return u->files[i].blob;
    return NULL;
}

/* --- a form --- */

static bool is_file_part(const struct upload *u)
{
    return u->blob && (str_is(u->field, "files") || str_is(u->field, "files[]"));
}

static int take_title(struct skill_upload *u, const struct upload *part)
{
    if (part->text.n > TITLE_MAX || str_utf8_len(part->text) != part->text.n ||
        (part->text.n && memchr(part->text.p, '\n', part->text.n)))
        return err_set(&u->failed, ERR_CALLER, "display_title: at most %d bytes, in one line",
                       TITLE_MAX);
    json_decref(u->title);
    u->title = part->text.n ? record_text(part->text) : NULL;
    return 0;
}

static bool is_archive(const struct upload *part)
{
    return part->name.n > 4 && !memchr(part->name.p, '/', part->name.n) &&
           strncasecmp(part->name.p + part->name.n - 4, ".zip", 4) == 0;
}

/* "FOLDER/path": all files are in one folder. */
static int take_file(struct skill_upload *u, struct upload *part, struct str *folder)
{
    const char *slash = part->name.n ? memchr(part->name.p, '/', part->name.n) : NULL;
    struct str own;

    if (!slash)
        return err_set(&u->failed, ERR_CALLER,
                       "files: all files are in the same folder, each named FOLDER/path; or there "
                       "is one zip archive of them, named NAME.zip");
    own = (struct str){part->name.p, (size_t)(slash - part->name.p)};
    if (folder->p && !str_eq(*folder, own))
        return err_set(&u->failed, ERR_CALLER, "files: all files are in the same folder");
    *folder = own;
    return add_file(u, str_from(part->name, own.n + 1), take_ptr(&part->blob));
}

static int check_bytes(struct skill_upload *u, uint64_t bytes)
{
    return bytes <= SKILL_BYTES
               ? 0
               : err_set(&u->failed, ERR_CALLER, "files: a skill has %d MiB at most",
                         (int)(SKILL_BYTES / MiB));
}

static int check_main(struct skill_upload *u)
{
    return main_file(u) ? 0
                        : err_set(&u->failed, ERR_CALLER,
                                  "files: there is no " SKILL_FILE " at the top of the folder");
}

static int take_parts(struct skill_upload *u)
{
    size_t count, files = 0;
    struct upload *part = request_uploads(u->r, &count);
    struct str folder = {0};
    uint64_t bytes = 0;

    for (size_t i = 0; i < count; i++)
        files += is_file_part(&part[i]);
    for (size_t i = 0; i < count; i++) {
        if (!part[i].blob &&
            (str_is(part[i].field, "display_title") || str_is(part[i].field, "display_name")) &&
            take_title(u, &part[i]) < 0)
            return -1;
        if (!is_file_part(&part[i]))
            continue;
        bytes += part[i].size;
        if (files == 1 && is_archive(&part[i])) {
            u->archive = take_ptr(&part[i].blob);
            u->archive_size = part[i].size;
        } else if (take_file(u, &part[i], &folder) < 0) {
            return -1;
        }
    }
    if (check_bytes(u, bytes) < 0)
        return -1;
    return u->archive ? 0 : check_main(u);
}

/* --- a zip archive, on another thread --- */

static int check_sizes(struct skill_upload *u, struct zip z)
{
    struct zip_entry entry;
    uint64_t bytes = 0;
    int rc;

    while ((rc = zip_next(&z, &entry, &u->failed)) > 0)
        bytes += entry.size;
    return rc < 0 ? -1 : check_bytes(u, bytes);
}

static int on_bytes(void *arg, struct str bytes, struct err *e)
{
    return blob_write(arg, bytes, e);
}

static int take_entry(struct skill_upload *u, const struct zip *z, const struct zip_entry *entry)
{
    AUTO_FREE char *name = mem_strndup(entry->name);
    char path[SPACE_PATH_MAX];
    struct blob *blob;

    for (char *p = name; entry->has_backslashes && *p; p++)
        if (*p == '\\')
            *p = '/';
    if (*name == '/')
        return err_set(&u->failed, ERR_CALLER, "files: %.100s begins with a slash", name);
    if (strncmp(name, OF_A_MAC, strlen(OF_A_MAC)) == 0)
        return 0;
    if (entry->is_folder) {
        name[entry->name.n - 1] = '\0';
        return space_path_clean(str_of(name), path, &u->failed);
    }
    blob = service_blob_new(u->service, request_caller(u->r), &u->failed);
    if (!blob || add_file(u, str_of(name), blob) < 0)
        return -1;
    return zip_read(z, entry, on_bytes, blob, &u->failed);
}

/* SKILL.md is at the top, or at the top of the one folder that all files are in. */
static int strip_folder(struct skill_upload *u)
{
    const char *first = u->files[0].path, *slash = strchr(first, '/');
    size_t n = slash ? (size_t)(slash - first) + 1 : 0;

    if (u->file_count == 0 || main_file(u))
        return check_main(u);
    for (size_t i = 0; i < u->file_count; i++)
        if (n == 0 || strncmp(u->files[i].path, first, n) != 0)
            return check_main(u);
    for (size_t i = u->file_count; i > 0; i--)
        memmove(u->files[i - 1].path, u->files[i - 1].path + n,
                strlen(u->files[i - 1].path) - n + 1);
    return check_main(u);
}

static int unpack(struct skill_upload *u)
{
    AUTO_FREE char *bytes = mem_zalloc(u->archive_size + 1);
    ssize_t n = blob_peek(u->archive, bytes, u->archive_size);
    struct zip_entry entry;
    struct zip z;
    int rc;

    if (n < 0)
        return err_sys(&u->failed, "read the archive");
    if (zip_open(&z, (struct str){bytes, (size_t)n}, &u->failed) < 0 || check_sizes(u, z) < 0)
        return -1;
    while ((rc = zip_next(&z, &entry, &u->failed)) > 0)
        if (take_entry(u, &z, &entry) < 0)
            return -1;
    return rc < 0 ? -1 : strip_folder(u);
}

/* On another thread. */
static void read_matter(void *arg)
{
    struct skill_upload *u = arg;
    AUTO_FREE char *text = mem_zalloc(SKILL_MATTER_MAX);
    ssize_t n;

    if (u->archive && unpack(u) < 0)
        return;
    n = blob_peek(main_file(u), text, SKILL_MATTER_MAX);
    if (n < 0)
        err_sys(&u->failed, "read " SKILL_FILE);
    else if (skill_front_matter_read((struct str){text, (size_t)n}, &u->matter, &u->failed) < 0)
        return;
}

/* --- into the store --- */

static void on_stored(void *arg, const struct err *failed)
{
    struct skill_upload *u = arg;

    if (failed)
        skill_fail(u->r, failed);
    else if (u->exists)
        service_item_get(request_service(u->r), request_caller(u->r), SKILL_KIND_V,
                         str_of(u->version), skill_on_version, u->r);
    else
        service_item_get(request_service(u->r), request_caller(u->r), SKILL_KIND, str_of(u->skill),
                         skill_on_one, u->r);
}

/* The skill, which names its newest version, then the version, then its files. */
static void store(struct skill_upload *u)
{
    struct item_row rows[FILES_MAX + 2] = {0};
    struct blob *blobs[FILES_MAX + 2] = {0};
    char *texts[FILES_MAX + 2] = {0};
    char own[] = SKILL_KIND, version[] = SKILL_KIND_V, file[] = SKILL_KIND_FILE;
    json_t *bodies[2];

    bodies[0] = json_pack("{s:O, s:s, s:s}", "title", u->title, "name", u->matter.name, "latest",
                          u->version);
    bodies[1] =
        json_pack("{s:s, s:s}", "name", u->matter.name, "description", u->matter.description);
    for (size_t i = 0; i < 2; i++) {
        texts[i] = json_dumps(bodies[i], JSON_COMPACT);
        json_decref(bodies[i]);
    }
    rows[0] = (struct item_row){
        .id = u->skill, .kind = own, .created_ms = u->created_ms, .body = texts[0]};
    rows[1] = (struct item_row){.id = u->version,
                                .kind = version,
                                .parent = u->skill,
                                .created_ms = id_ms(str_of(u->version)),
                                .body = texts[1]};
    for (size_t i = 0; i < u->file_count; i++) {
        json_t *body = json_pack("{s:o}", "path", record_text(str_of(u->files[i].path)));
        snprintf(u->files[i].id, sizeof(u->files[i].id), "%s/%s", u->version, u->files[i].path);
        texts[i + 2] = json_dumps(body, JSON_COMPACT);
        json_decref(body);
        rows[i + 2] = (struct item_row){
            .id = u->files[i].id, .kind = file, .parent = u->version, .body = texts[i + 2]};
        blobs[i + 2] = take_ptr(&u->files[i].blob);
    }
    service_items_put(request_service(u->r), request_caller(u->r), rows, blobs, u->file_count + 2,
                      u->exists ? 0 : SKILLS_KEPT, on_stored, u);
    for (size_t i = 0; i < u->file_count + 2; i++)
        free(texts[i]);
}

static void on_matter(void *arg)
{
    struct skill_upload *u = arg;
    const char *name = text_of(u->before, "name");

    if (u->failed.kind == ERR_CALLER)
        return answer_fail(u->r, 400, CODE_INVALID, NULL, "%s", u->failed.text);
    if (u->failed.kind)
        return answer_error(u->r, &u->failed, NULL);
    if (name && strcmp(name, u->matter.name) != 0)
        return answer_fail(u->r, 400, CODE_INVALID, NULL,
                           "SKILL.md: name: all versions of this skill are named %s", name);
    if (!u->title)
        u->title = json_object_get(u->before, "title")
                       ? json_incref(json_object_get(u->before, "title"))
                       : json_string(u->matter.name);
    id_make(u->version, SKILL_VERSION);
    store(u);
}

static void begin(struct skill_upload *u)
{
    if (take_parts(u) < 0)
        return answer_fail(u->r, 400, CODE_INVALID, NULL, "%s", u->failed.text);
    service_work(request_service(u->r), read_matter, on_matter, u);
}

static struct skill_upload *upload_new(struct request *r)
{
    struct skill_upload *u = mem_zalloc(sizeof(*u));

    u->r = r;
    u->service = request_service(r);
    request_keep(r, upload_free, u);
    return u;
}

void handle_skill_create(struct request *r)
{
    struct skill_upload *u = upload_new(r);

    id_make(u->skill, SKILL_PREFIX);
    u->created_ms = id_ms(str_of(u->skill)); /* a list goes on after one that is gone */
    begin(u);
}

static void on_versions_counted(void *arg, const struct item_row *items, size_t count,
                                uint64_t total, const struct err *failed)
{
    struct skill_upload *u = arg;

    (void)items, (void)count;
    if (failed)
        skill_fail(u->r, failed);
    else if (total >= SKILL_VERSIONS)
        answer_fail(u->r, 400, CODE_INVALID, NULL,
                    "there are %d versions of skills, which is the most: delete some first",
                    SKILL_VERSIONS);
    else
        begin(u);
}

static void on_skill_of_version(void *arg, const struct item_row *item, const struct err *failed)
{
    static const struct item_filter all = {
        .kind = SKILL_KIND_V, .owner = "", .page.limit = 1, .count = true};
    struct skill_upload *u = arg;

    if (failed)
        return skill_fail(u->r, failed);
    u->exists = true;
    u->before = json_loads(item->body, 0, NULL);
    u->created_ms = item->created_ms;
    snprintf(u->skill, sizeof(u->skill), "%s", item->id);
    service_item_list(request_service(u->r), request_caller(u->r), &all, on_versions_counted, u);
}

void handle_skill_version_create(struct request *r)
{
    if (skill_is_fixed(r))
        return;
    service_item_get(request_service(r), request_caller(r), SKILL_KIND, request_path(r, "skill"),
                     on_skill_of_version, upload_new(r));
}
