/* Files of a workspace and files given with code. */
#include "stage.h"

void scene_uploads(void)
{
    const char *id = keep(new_session());
    static struct run r;
    struct answer a;

    put_file(&a, id, "in/data.csv", "a,b\n1,2\n");
    CHECK(a.err.kind == ERR_NONE && strcmp(a.text, "in/data.csv:8") == 0);
    run_into(&r, id, "print(open('in/data.csv').read())");
    CHECK(strcmp(r.text, "a,b\n1,2\n\n") == 0 && r.files[0] == '\0');
    run_into(&r, id, "open('in/data.csv', 'a').write('3,4\\n')");
    CHECK(strcmp(r.files, "in/data.csv ") == 0);
    put_file(&a, id, "in", "x");
    CHECK(a.err.kind == ERR_CONFLICT);
    put_file(&a, id, "../x", "x");
    CHECK(a.err.kind == ERR_CALLER);
    wait_state(id, SESSION_ASLEEP);
    put_file(&a, id, "later.txt", "later");
    CHECK(a.err.kind == ERR_NONE);
    put_file(&a, id, "in", "x");
    CHECK(a.err.kind == ERR_CONFLICT);
    put_file(&a, id, "later.txt/below", "x");
    CHECK(a.err.kind == ERR_CONFLICT);
    CHECK(state_of(id) == SESSION_ASLEEP);
    run_into(&r, id, "print(open('in/data.csv').read() + open('later.txt').read())");
    CHECK(strcmp(r.text, "a,b\n1,2\n3,4\nlater\n") == 0);
}

static void on_bytes(void *arg, char **bytes, size_t n, const struct space_file *file,
                     const struct err *failed)
{
    struct answer *a = arg;

    a->done = true;
    a->err = failed ? *failed : (struct err){0};
    a->count = file ? file->size : 0;
    snprintf(a->text, sizeof(a->text), "%zu:%s", n, *bytes ? *bytes : "");
    loop_stop(loop);
}

static void read_bytes(struct answer *a, const char *id, const char *path, uint64_t from,
                       size_t max)
{
    *a = (struct answer){0};
    service_space_read(service, &alice, str_of(id), str_of(path), from, max, on_bytes, a);
    CHECK(!a->done);
    wait_for(&a->done, "bytes");
}

void scene_bytes_in_memory(void)
{
    const char *id = keep(new_session());
    static struct run r;
    struct answer a = {0};

    service_space_write(service, &alice, str_of(id), STR("in/a"), mem_strdup("0123456789"), 10,
                        on_space_files, &a);
    CHECK(!a.done);
    wait_for(&a.done, "a file written");
    CHECK(a.err.kind == ERR_NONE && strcmp(a.text, "in/a:10") == 0);
    run_into(&r, id, "print(open('in/a').read()); _ = open('in/a', 'a').write('abc')");
    CHECK(strcmp(r.text, "0123456789\n") == 0);
    read_bytes(&a, id, "in/a", 0, 100);
    CHECK(strcmp(a.text, "13:0123456789abc") == 0 && a.count == 13);
    read_bytes(&a, id, "/workspace/in/a", 8, 3);
    CHECK(strcmp(a.text, "3:89a") == 0 && a.count == 13);
    read_bytes(&a, id, "in/a", 99, 3);
    CHECK(strcmp(a.text, "0:") == 0 && a.err.kind == ERR_NONE);
    read_bytes(&a, id, "in/b", 0, 3);
    CHECK(a.err.kind == ERR_MISSING);
    read_bytes(&a, id, "../a", 0, 3);
    CHECK(a.err.kind == ERR_CALLER);
    a = (struct answer){0};
    service_space_write(service, &alice, str_of(id), STR("empty"), mem_strdup(""), 0,
                        on_space_files, &a);
    wait_for(&a.done, "an empty file");
    CHECK(strcmp(a.text, "empty:0") == 0);
    a = (struct answer){0};
    service_space_write(service, &alice, STR("sess_nobody"), STR("x"), mem_strdup("x"), 1,
                        on_space_files, &a);
    wait_for(&a.done, "a refusal");
    CHECK(a.err.kind == ERR_MISSING);
}

void scene_deleted_files_stay_away(void)
{
    const char *id = keep(new_session());
    struct answer a = {0};

    run(id, "for n in 'abc': open(n, 'w').write(n)");
    run(id, "import os; os.remove('a')");
    service_space_delete(service, &alice, str_of(id), STR("b"), on_done, &a);
    wait_for(&a.done, "a deletion");
    CHECK(a.err.kind == ERR_NONE);
    CHECK(strcmp(run(id, "os.listdir()"), "['c']") == 0);
    a = (struct answer){0};
    service_space_delete(service, &alice, str_of(id), STR("b"), on_done, &a);
    wait_for(&a.done, "a deletion");
    CHECK(a.err.kind == ERR_MISSING);
    wait_state(id, SESSION_ASLEEP);
    list_files(&a, &alice, id);
    CHECK(strcmp(a.text, "c:1") == 0);
    CHECK(strcmp(run(id, "import os; os.listdir()"), "['c']") == 0);
}

/* What a list finds while code runs is saved at once, and still told when the code ends. */
void scene_looking_while_it_runs(void)
{
    const char *id = keep(new_session());
    static struct run r;
    struct exec_spec spec = {
        .session = str_of(id),
        .code = STR("open('early', 'w').write('1')\n" UNTIL_GO "open('late', 'w').write('22')")};
    struct answer a = {0};

    start(&r, &alice, &spec);
    for (int i = 0; i < PATIENCE_MS / 10 && strcmp(a.text, "early:1") != 0; i++) {
        pause_ms(10);
        list_files(&a, &alice, id);
    }
    CHECK(strcmp(a.text, "early:1") == 0 && !r.done);
    put_file(&a, id, "up", "333");
    CHECK(a.err.kind == ERR_NONE && !r.done);
    put_file(&a, id, "go", "");
    finish(&r);
    CHECK(strstr(r.files, "early ") && strstr(r.files, "late ") && !strstr(r.files, "up "));
}

void scene_disk_is_limited(void)
{
    const char *id = keep(new_session());
    char *big = malloc(MiB + 1);
    struct answer a;
    static struct run r;

    memset(big, 'x', MiB);
    big[MiB] = '\0';
    put_file(&a, id, "one", big);
    CHECK(a.err.kind == ERR_NONE);
    for (int i = 0; i < 2; i++) {
        put_file(&a, id, "two", big);
        CHECK(a.err.kind == ERR_LIMIT);
        list_files(&a, &alice, id);
        CHECK(strcmp(a.text, "one:1048576") == 0);
        wait_state(id, SESSION_ASLEEP);
    }
    put_file(&a, id, "one", "small");
    put_file(&a, id, "two", big);
    CHECK(a.err.kind == ERR_NONE);
    run_into(&r, id, "import os; print(sorted(os.listdir()))");
    CHECK(strcmp(r.text, "['one', 'two']\n") == 0);
    free(big);
}

static void on_file(void *arg, const struct file_row *file, const struct err *failed)
{
    struct answer *a = arg;

    a->done = true;
    a->err = failed ? *failed : (struct err){0};
    if (file)
        snprintf(a->id, sizeof(a->id), "%s", file->id);
    loop_stop(loop);
}

void scene_files_given_with_code(void)
{
    const char *id = keep(new_session());
    static struct run r, before;
    struct answer f = {0}, a;

    service_file_create(service, &alice, &(struct file_spec){.name = STR("table.csv")},
                        blob_of("1,2"), on_file, &f);
    wait_for(&f.done, "a file");
    CHECK(f.err.kind == ERR_NONE);
    struct file_input files[] = {
        {.file_id = str_of(f.id)   },
        {                    .path = STR("sub/t.csv"),   .file_id = str_of(f.id)},
        {                    .path = STR("c.txt"), .content = STR("content"), .has_content = true},
        { .path = STR("u.txt"),       .url = STR("data:text/plain;base64,aGk=")},
    };
    struct exec_spec spec = {.session = str_of(id),
                             .files = files,
                             .file_count = COUNT(files),
                             .code = STR("for n in ('table.csv', 'sub/t.csv', 'c.txt', 'u.txt'):"
                                         " print(open(n).read())")};
    struct exec_spec first = {.session = str_of(id),
                              .code = STR("import time, os\ntime.sleep(0.5)\nprint(os.listdir())")};
    start(&before, &alice, &first);
    start(&r, &alice, &spec);
    finish(&r);
    CHECK(before.done && strcmp(before.text, "[]\n") == 0);
    CHECK(r.err.kind == ERR_NONE && strcmp(r.text, "1,2\n1,2\ncontent\nhi\n") == 0);
    CHECK(r.files[0] == '\0');
    list_files(&a, &alice, id);
    CHECK(a.count == 4);
    start(&r, &bob, &spec);
    finish(&r);
    CHECK(r.err.kind == ERR_MISSING);
    spec.session = (struct str){0};
    start(&r, &bob, &spec); /* his own session, but not his file */
    finish(&r);
    CHECK(r.err.kind == ERR_MISSING);
    files[3].url = STR("http://127.0.0.1:1/x");
    start(&r, &alice, &spec);
    finish(&r);
    CHECK(r.err.kind != ERR_NONE && r.text[0] == '\0');
}
