/* Files that are kept beside all workspaces: they expire, and a tenant has so much room for them.
 */
#include "stage.h"

#include <unistd.h>

static void on_file(void *arg, const struct file_row *file, const struct err *failed)
{
    struct answer *a = arg;

    a->done = true;
    a->err = failed ? *failed : (struct err){0};
    if (file)
        snprintf(a->id, sizeof(a->id), "%s", file->id);
}

static void on_open(void *arg, int *fd, const struct file_row *file, const struct err *failed)
{
    (void)fd;
    on_file(arg, file, failed);
}

static void on_files(void *arg, const struct file_row *files, size_t count, bool more,
                     const struct err *failed)
{
    struct answer *a = arg;

    a->done = true;
    a->err = failed ? *failed : (struct err){0};
    a->count = count;
    a->existed = more;
    a->text[0] = '\0';
    for (size_t i = 0; i < count; i++)
        snprintf(a->text + strlen(a->text), sizeof(a->text) - strlen(a->text), "%s ",
                 files[i].name);
}

static void make(struct answer *a, const char *name, const char *text, uint64_t expires_ms)
{
    const struct file_spec spec = {.name = str_of(name), .expires_ms = expires_ms};

    *a = (struct answer){0};
    service_file_create(service, &alice, &spec, blob_of(text), on_file, a);
    wait_for(&a->done, "a file");
}

static const char *listed(struct page page)
{
    static struct answer a;

    a = (struct answer){0};
    service_file_list(service, &alice, page, on_files, &a);
    wait_for(&a.done, "a list");
    CHECK(a.err.kind == ERR_NONE);
    return a.text;
}

static struct err opened(const struct caller *c, const char *id)
{
    struct answer a = {0};

    service_file_open(service, c, str_of(id), on_open, &a);
    wait_for(&a.done, "a file");
    return a.err;
}

static const char *picked(const struct caller *c, const struct str *ids, size_t count)
{
    static struct answer a;

    a = (struct answer){0};
    service_file_pick(service, c, ids, count, on_files, &a);
    wait_for(&a.done, "some files");
    CHECK(a.err.kind == ERR_NONE && !a.existed);
    return a.text;
}

/* One that has expired is told apart from one that never was, also after its bytes have gone. */
void scene_files_expire(void)
{
    struct answer stays, goes;
    struct err e;

    make(&stays, "stays", "1", 0);
    make(&goes, "goes", "2", 2000);
    CHECK(opened(&alice, goes.id).kind == ERR_NONE);
    CHECK(strcmp(listed((struct page){.limit = 9}), "goes stays ") == 0);
    while (opened(&alice, goes.id).kind == ERR_NONE)
        pause_ms(10);
    e = opened(&alice, goes.id);
    CHECK(e.kind == ERR_MISSING && e.sys == FILE_EXPIRED);
    CHECK(strcmp(listed((struct page){.limit = 9}), "stays ") == 0);
    pause_ms(1500); /* a sweep or two */
    e = opened(&alice, goes.id);
    CHECK(e.kind == ERR_MISSING && e.sys == FILE_EXPIRED);
    e = opened(&bob, goes.id);
    CHECK(e.kind == ERR_MISSING && e.sys != FILE_EXPIRED);
    CHECK(opened(&alice, stays.id).kind == ERR_NONE);

    const struct str ids[] = {str_of(goes.id), str_of(stays.id), STR("file_x"), str_of(stays.id)};
    CHECK(strcmp(picked(&alice, ids, COUNT(ids)), "stays ") == 0);
    CHECK(strcmp(picked(&bob, ids, COUNT(ids)), "") == 0);
}

/* Both ways, also past one that is not there any more. */
void scene_files_in_pages(void)
{
    struct answer f[5], gone = {0};
    char name[2] = "a";
    struct page page = {.limit = 2};

    for (size_t i = 0; i < COUNT(f); i++, name[0]++)
        make(&f[i], name, "x", 0);
    CHECK(strcmp(listed(page), "e d ") == 0);
    page.after = f[3].id;
    CHECK(strcmp(listed(page), "c b ") == 0);
    page.newer = true;
    page.after = f[1].id;
    CHECK(strcmp(listed(page), "d c ") == 0);
    service_file_delete(service, &alice, str_of(f[1].id), on_done, &gone);
    wait_for(&gone.done, "a deletion");
    page.after_ms = id_ms(str_of(f[1].id));
    CHECK(strcmp(listed(page), "d c ") == 0);
    page.newer = false;
    CHECK(strcmp(listed(page), "a ") == 0);
}

void scene_files_have_a_quota(void)
{
    struct answer a, b;

    make(&a, "a", "1234567", 0);
    CHECK(a.err.kind == ERR_NONE);
    make(&b, "b", "1234", 0);
    CHECK(b.err.kind == ERR_LIMIT && b.err.sys == FILE_QUOTA);
    make(&b, "b", "123", 2000);
    CHECK(b.err.kind == ERR_NONE);
    make(&b, "c", "1", 0);
    CHECK(b.err.kind == ERR_LIMIT);
    while (b.err.kind == ERR_LIMIT) { /* what has expired counts no more */
        pause_ms(10);
        make(&b, "c", "123", 0);
    }
    CHECK(b.err.kind == ERR_NONE);
    CHECK(strcmp(listed((struct page){.limit = 9}), "c a ") == 0);
}
