/* The host's hand in a workspace: nothing outside is reached, and every change is told once. */
#include "engine/engine_int.h"
#include "scratch.h"

#include <sys/resource.h>
#include <time.h>

#define TOLD_MAX 64

struct bench {
    struct scratch dir, outside;
    struct tree *tree;
    struct limits limits;
    uint32_t hit;
    size_t count; /* of what the last scan told */
    struct {
        enum file_change change;
        char path[256];
        uint64_t size;
        bool too_large, unlisted;
    } told[TOLD_MAX];
    char status[160];
    struct err e;
};

static int open_space(void **state)
{
    static struct bench s;

    s = (struct bench){.tree = tree_new()};
    limits_default(&s.limits);
    *state = &s;
    return scratch_open(&s.dir) < 0 || scratch_open(&s.outside) < 0 ? -1 : 0;
}

static int close_space(void **state)
{
    struct bench *s = *state;

    tree_free(s->tree);
    return scratch_close(&s->dir) < 0 || scratch_close(&s->outside) < 0 ? -1 : 0;
}

/* --- putting and getting --- */

static int put(struct bench *s, struct str path)
{
    AUTO_CLOSE int src = open(scratch_put(&s->outside, "upload", STR("new")), O_RDONLY | O_CLOEXEC);
    const struct space sp = {s->dir.fd, geteuid()};

    assert_true(src >= 0);
    return space_put(&sp, path, src, 0, 0, &s->e);
}

static int get(struct bench *s, struct str path)
{
    const struct space sp = {s->dir.fd, geteuid()};

    return space_get(&sp, path, &s->e);
}

static void expect_got(struct bench *s, struct str path, struct str bytes)
{
    AUTO_CLOSE int fd = get(s, path);
    char text[64];

    assert_true(fd >= 0);
    assert_int_equal(read(fd, text, sizeof(text)), bytes.n);
    assert_memory_equal(text, bytes.p, bytes.n);
}

static void test_put_and_get(void **state)
{
    struct bench *s = *state;

    assert_int_equal(put(s, STR("a.txt")), 0);
    expect_got(s, STR("a.txt"), STR("new"));
    assert_int_equal(put(s, STR("x/y/z.txt")), 0);
    expect_got(s, STR("x/y/z.txt"), STR("new"));
    scratch_put(&s->dir, "a.txt", STR("longer than before"));
    assert_int_equal(put(s, STR("a.txt")), 0);
    expect_got(s, STR("a.txt"), STR("new"));
    assert_int_equal(scratch_count(&s->dir), 4); /* and no temporary file */
}

/* The temporary name is the code's to plant something under. */
/* What a file on its way in is called, for as many as this program has. */
#define PLANTED 64

static const char *upload_name(unsigned i)
{
    static char name[32];

    snprintf(name, sizeof(name), ".retort-upload-%u", i);
    return name;
}

static void test_put_over_what_was_planted(void **state)
{
    struct bench *s = *state;
    char target[64];

    snprintf(target, sizeof(target), "%s/victim", s->outside.path);
    scratch_put(&s->outside, "victim", STR("untouched"));
    for (unsigned i = 0; i < PLANTED; i++)
        assert_int_equal(symlinkat(target, s->dir.fd, upload_name(i)), 0);
    assert_int_equal(symlinkat(target, s->dir.fd, "a.txt"), 0);
    assert_int_equal(put(s, STR("a.txt")), 0);
    expect_got(s, STR("a.txt"), STR("new"));
    scratch_expect(&s->outside, "victim", STR("untouched"));

    for (unsigned i = 0; i < PLANTED; i++) {
        (void)!unlinkat(s->dir.fd, upload_name(i), 0);
        assert_int_equal(mkdirat(s->dir.fd, upload_name(i), 0700), 0);
    }
    assert_int_equal(put(s, STR("b.txt")), -1);
    assert_has(s->e.text, "b.txt");
}

static void test_refused_paths(void **state)
{
    struct bench *s = *state;
    static char longest[2000];
    const struct str rows[] = {
        STR(""),
        STR("/"),
        STR("/etc/passwd"),
        STR(".."),
        STR("../x"),
        STR("."),
        STR("d/../.."),
        STR("d/../../x"),
        STR("link/x"),
        STR("d/up/up/x"),
        STR("a\0b"),
        STR("d/"),
        STR("d//x"),
        {longest, sizeof(longest)},
    };

    memset(longest, 'x', sizeof(longest));
    assert_int_equal(mkdirat(s->dir.fd, "d", 0700), 0);
    assert_int_equal(symlinkat(s->outside.path, s->dir.fd, "link"), 0);
    assert_int_equal(symlinkat("..", s->dir.fd, "d/up"), 0);
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO_CLOSE int fd = get(s, rows[i]);
        if (fd >= 0 || put(s, rows[i]) == 0)
            fail_msg("row %zu was accepted", i);
        assert_true(s->e.kind != ERR_NONE);
    }
    assert_int_equal(scratch_count(&s->outside), 1); /* the upload itself */
}

static void test_folders(void **state)
{
    struct bench *s = *state;
    const struct space sp = {s->dir.fd, geteuid()};
    struct stat st;

    assert_int_equal(space_mkdir(&sp, STR("a/b/c"), &s->e), 0);
    assert_int_equal(fstatat(s->dir.fd, "a/b/c", &st, 0), 0);
    assert_true(S_ISDIR(st.st_mode));
    assert_int_equal(space_mkdir(&sp, STR("a/b/c"), &s->e), 0);
    assert_int_equal(symlinkat(s->outside.path, s->dir.fd, "away"), 0);
    assert_int_equal(space_mkdir(&sp, STR("away/in"), &s->e), -1);
    assert_int_equal(fstatat(s->outside.fd, "in", &st, 0), -1);
    assert_int_equal(space_mkdir(&sp, STR("../up"), &s->e), -1);
    assert_int_equal(space_mkdir(&sp, STR("/abs"), &s->e), -1);
    assert_int_equal(space_mkdir(&sp, STR(""), &s->e), -1);
}

static void test_get_of_what_is_no_file(void **state)
{
    struct bench *s = *state;

    assert_int_equal(mkfifoat(s->dir.fd, "fifo", 0600), 0);
    assert_int_equal(mkdirat(s->dir.fd, "folder", 0700), 0);
    scratch_put(&s->outside, "secret", STR("secret"));
    assert_int_equal(symlinkat("/etc/hostname", s->dir.fd, "link"), 0);
    assert_int_equal(get(s, STR("fifo")), -1); /* and does not wait for a writer */
    assert_has(s->e.text, "not a regular file");
    assert_int_equal(get(s, STR("folder")), -1);
    assert_int_equal(get(s, STR("link")), -1);
    assert_int_equal(get(s, STR("absent")), -1);
    assert_int_equal(s->e.kind, ERR_MISSING);
}

/* --- what changed --- */

static void on_told(void *arg, const struct event *ev)
{
    struct bench *s = arg;

    if (ev->kind == EVENT_STATUS) {
        assert_true(str_to_cstr(ev->text, s->status, sizeof(s->status)));
        return;
    }
    assert_int_equal(ev->kind, EVENT_FILE);
    assert_true(s->count < TOLD_MAX);
    assert_true(str_to_cstr(ev->file.path, s->told[s->count].path, sizeof(s->told[0].path)));
    s->told[s->count].change = ev->file.change;
    s->told[s->count].size = ev->file.size;
    s->told[s->count].unlisted = ev->file.unlisted;
    s->told[s->count++].too_large = ev->file.too_large;
}

static uint32_t scan_for(struct bench *s, tree_fn *fn, void *arg)
{
    const struct space sp = {s->dir.fd, geteuid()};
    struct look *k = look_new(s->tree);

    if (!look_try(k, s->tree, &sp))
        look_walk(k, &sp);
    return tree_tell(s->tree, k, &s->limits, fn, arg);
}

static size_t scan(struct bench *s)
{
    s->count = 0;
    s->status[0] = '\0';
    s->hit = scan_for(s, on_told, s);
    return s->count;
}

static void expect_told(struct bench *s, size_t i, enum file_change change, const char *path)
{
    assert_string_equal(s->told[i].path, path);
    assert_int_equal(s->told[i].change, change);
}

/* The kernel's clock for files moves in ticks of up to 10 ms. */
static void wait_a_tick(void)
{
    const struct timespec tick = {.tv_nsec = 12000000};

    nanosleep(&tick, NULL);
}

static void test_created(void **state)
{
    struct bench *s = *state;

    assert_int_equal(scan(s), 0);
    scratch_put(&s->dir, "b", STR("12345"));
    scratch_put(&s->dir, "a", STR("1"));
    assert_int_equal(mkdirat(s->dir.fd, "d", 0700), 0);
    scratch_put(&s->dir, "d/c", STR(""));
    assert_int_equal(scan(s), 3);
    expect_told(s, 0, FILE_CREATED, "a");
    expect_told(s, 1, FILE_CREATED, "b");
    expect_told(s, 2, FILE_CREATED, "d/c");
    assert_int_equal(s->told[1].size, 5);
    assert_int_equal(s->hit, 0);
    assert_int_equal(scan(s), 0);
}

static void test_changed_in_place(void **state)
{
    struct bench *s = *state;
    struct timespec times[2];
    struct stat st;

    scratch_put(&s->dir, "a", STR("12345"));
    scratch_put(&s->dir, "b", STR("12345"));
    scan(s);
    wait_a_tick();
    assert_int_equal(fstatat(s->dir.fd, "a", &st, 0), 0);
    scratch_put(&s->dir, "a", STR("54321")); /* the same file, the same length */
    times[0] = st.st_atim;
    times[1] = st.st_mtim;
    assert_int_equal(utimensat(s->dir.fd, "a", times, 0), 0); /* and the old time put back */
    assert_int_equal(scan(s), 1);
    expect_told(s, 0, FILE_CHANGED, "a");
    assert_int_equal(scan(s), 0);
}

/* One that is empty is not looked at twice; what comes is seen all the same, however soon. */
static void test_what_comes_into_an_empty_one(void **state)
{
    struct bench *s = *state;

    for (int i = 0; i < 300; i++) {
        if (i % 100 == 0)
            wait_a_tick();
        for (int quiet = 0; quiet < i % 3; quiet++)
            assert_int_equal(scan(s), 0);
        scratch_put(&s->dir, "a", STR("1"));
        assert_int_equal(scan(s), 1);
        expect_told(s, 0, FILE_CREATED, "a");
        assert_int_equal(unlinkat(s->dir.fd, "a", 0), 0);
        assert_int_equal(scan(s), 1);
        expect_told(s, 0, FILE_DELETED, "a");
    }
    assert_int_equal(mkdirat(s->dir.fd, "d", 0700), 0);
    wait_a_tick();
    assert_int_equal(scan(s), 0); /* no file, but not empty */
    scratch_put(&s->dir, "d/c", STR("1"));
    assert_int_equal(scan(s), 1);
}

static void test_deleted_and_renamed(void **state)
{
    struct bench *s = *state;

    scratch_put(&s->dir, "a", STR("1"));
    scratch_put(&s->dir, "b", STR("1"));
    scan(s);
    assert_int_equal(unlinkat(s->dir.fd, "a", 0), 0);
    assert_int_equal(scan(s), 1);
    expect_told(s, 0, FILE_DELETED, "a");
    assert_int_equal(s->told[0].size, 0);
    assert_int_equal(renameat(s->dir.fd, "b", s->dir.fd, "c"), 0);
    assert_int_equal(scan(s), 2);
    expect_told(s, 0, FILE_DELETED, "b");
    expect_told(s, 1, FILE_CREATED, "c");
}

static void test_replaced(void **state)
{
    struct bench *s = *state;

    scratch_put(&s->dir, "a", STR("1"));
    scan(s);
    scratch_put(&s->dir, "new", STR("2"));
    assert_int_equal(renameat(s->dir.fd, "new", s->dir.fd, "a"), 0);
    assert_int_equal(scan(s), 1);
    expect_told(s, 0, FILE_CHANGED, "a");
}

static void test_not_looked_at(void **state)
{
    struct bench *s = *state;

    scratch_put(&s->outside, "secret", STR("secret"));
    assert_int_equal(symlinkat("/etc/hostname", s->dir.fd, "link"), 0);
    assert_int_equal(symlinkat(s->outside.path, s->dir.fd, "folder"), 0);
    assert_int_equal(mkfifoat(s->dir.fd, "fifo", 0600), 0);
    assert_int_equal(mkdirat(s->dir.fd, "__pycache__", 0700), 0);
    scratch_put(&s->dir, "__pycache__/m.pyc", STR("x"));
    assert_int_equal(scan(s), 0);
    assert_int_equal(s->hit, 0);
}

static void test_too_large(void **state)
{
    struct bench *s = *state;

    s->limits.artifact_bytes = 4;
    scratch_put(&s->dir, "a", STR("1234"));
    scratch_put(&s->dir, "b", STR("12345"));
    assert_int_equal(scan(s), 2);
    assert_false(s->told[0].too_large);
    assert_true(s->told[1].too_large);
    assert_int_equal(s->hit, IN(LIMIT_ARTIFACT_SIZE));
}

static void test_too_many(void **state)
{
    struct bench *s = *state;

    s->limits.artifact_count = 3;
    for (char name[] = "a"; *name <= 'e'; ++*name)
        scratch_put(&s->dir, name, STR("1"));
    assert_int_equal(scan(s), 5);
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(s->told[i].unlisted, i >= 3);
    assert_int_equal(s->hit, IN(LIMIT_ARTIFACT_COUNT));
    assert_has(s->status, "2 more files");
    assert_int_equal(scan(s), 0); /* all of them have been seen */
    assert_int_equal(s->hit, 0);
}

/* Put or deleted by the host: no news. What the code did beside it is. */
static void test_noted(void **state)
{
    struct bench *s = *state;

    for (char name[] = "a"; *name <= 'e'; name[0] = (char)(name[0] + 2))
        scratch_put(&s->dir, name, STR("1"));
    assert_int_equal(scan(s), 3);
    scratch_put(&s->dir, "b", STR("1"));
    scratch_put(&s->dir, "d", STR("1"));
    tree_note(s->tree, s->dir.fd, geteuid(), STR("d"));
    assert_int_equal(scan(s), 1);
    expect_told(s, 0, FILE_CREATED, "b");
    assert_int_equal(unlinkat(s->dir.fd, "a", 0), 0);
    assert_int_equal(unlinkat(s->dir.fd, "c", 0), 0);
    tree_note(s->tree, s->dir.fd, geteuid(), STR("c"));
    tree_note(s->tree, s->dir.fd, geteuid(), STR("never there"));
    assert_int_equal(scan(s), 1);
    expect_told(s, 0, FILE_DELETED, "a");
}

/* --- looks that take their time --- */

static size_t tell_look(struct bench *s, struct look *k)
{
    s->count = 0;
    s->status[0] = '\0';
    s->hit = tree_tell(s->tree, k, &s->limits, on_told, s);
    return s->count;
}

/* What a later one has told, an earlier one must not take back. */
static void test_an_old_look_says_nothing(void **state)
{
    struct bench *s = *state;
    const struct space sp = {s->dir.fd, geteuid()};
    struct look *first = look_new(s->tree), *second = look_new(s->tree);

    look_walk(first, &sp);
    scratch_put(&s->dir, "a", STR("1"));
    look_walk(second, &sp);
    assert_int_equal(tell_look(s, second), 1);
    assert_true(look_is_old(first, s->tree));
    assert_int_equal(tell_look(s, first), 0);
    assert_int_equal(scan(s), 0);
}

/* Nor what the host has put meanwhile. */
static void test_a_look_from_before_a_put_says_nothing(void **state)
{
    struct bench *s = *state;
    const struct space sp = {s->dir.fd, geteuid()};
    struct look *k = look_new(s->tree);

    look_walk(k, &sp);
    scratch_put(&s->dir, "a", STR("1"));
    tree_note(s->tree, s->dir.fd, geteuid(), STR("a"));
    assert_int_equal(tell_look(s, k), 0);
    assert_int_equal(scan(s), 0);
}

/* A server that has no descriptor left sees nothing, and takes nothing for deleted. */
static void test_a_blind_look_says_nothing(void **state)
{
    struct bench *s = *state;
    struct rlimit before, none;

    assert_int_equal(mkdirat(s->dir.fd, "d", 0700), 0);
    scratch_put(&s->dir, "a", STR("1"));
    scratch_put(&s->dir, "d/b", STR("1"));
    assert_int_equal(scan(s), 2);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    for (rlim_t spare = 0; spare < 2; spare++) { /* not even the top, then not the folder below */
        int next = fcntl(s->dir.fd, F_DUPFD_CLOEXEC, 0);
        assert_true(next >= 0);
        close(next);
        none = (struct rlimit){(rlim_t)next + spare, before.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
        scan(s);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
        assert_int_equal(s->count, 0);
    }
    assert_int_equal(unlinkat(s->dir.fd, "a", 0), 0);
    assert_int_equal(scan(s), 1);
    expect_told(s, 0, FILE_DELETED, "a");
}

static void make_many(struct bench *s, const char *folder, int count, int length)
{
    char name[SPACE_NAME_MAX];

    for (int i = 0; i < count; i++) {
        snprintf(name, sizeof(name), "%s%0*d", folder, length, i);
        AUTO_CLOSE int fd = openat(s->dir.fd, name, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
        assert_true(fd >= 0);
    }
}

static void on_counted(void *arg, const struct event *ev)
{
    size_t *count = arg;

    *count += ev->kind == EVENT_FILE;
}

/* Many files are not looked at on the spot. */
static void test_a_try_gives_up(void **state)
{
    struct bench *s = *state;
    const struct space sp = {s->dir.fd, geteuid()};
    struct look *k = look_new(s->tree);
    size_t count = 0;

    scratch_put(&s->dir, "a", STR("1"));
    assert_true(look_try(k, s->tree, &sp));
    assert_int_equal(tell_look(s, k), 1);
    make_many(s, "", 1500, 8);
    k = look_new(s->tree);
    assert_false(look_try(k, s->tree, &sp));
    look_walk(k, &sp);
    tree_tell(s->tree, k, &s->limits, on_counted, &count);
    assert_int_equal(count, 1500);
    k = look_new(s->tree);
    assert_false(look_try(k, s->tree, &sp)); /* without going through a thousand of them first */
    look_free(k);
}

/* Their names are in the server's memory. */
static void test_names_are_bounded(void **state)
{
    struct bench *s = *state;
    char folder[SPACE_NAME_MAX] = "";
    size_t count = 0;

    for (size_t n = 0; n < 753; n += 251) {
        snprintf(folder + n, sizeof(folder) - n, "%0250d/", 0);
        assert_int_equal(mkdirat(s->dir.fd, folder, 0700), 0);
    }
    make_many(s, folder, 2300, 250); /* 1 KB each, of 2 MB */
    scan_for(s, on_counted, &count);
    assert_between(count, 2000, 2299);
}

/* Mode and date come with the bytes; a delete says whether there was something. */
static void test_put_whole(void **state)
{
    struct bench *s = *state;
    const struct space sp = {s->dir.fd, geteuid()};
    AUTO_CLOSE int src = open(scratch_put(&s->outside, "upload", STR("new")), O_RDONLY | O_CLOEXEC);
    struct stat st;

    assert_int_equal(space_put(&sp, STR("d/run.sh"), src, 0750, 1234567, &s->e), 0);
    assert_int_equal(fstatat(s->dir.fd, "d/run.sh", &st, 0), 0);
    assert_int_equal(st.st_mode & 07777, 0750);
    assert_int_equal(st.st_mtim.tv_sec, 1234);
    assert_int_equal(st.st_mtim.tv_nsec, 567000000);
    assert_int_equal(space_delete(&sp, STR("d/run.sh"), &s->e), 1);
    assert_int_equal(space_delete(&sp, STR("d/run.sh"), &s->e), 0);
    assert_int_equal(space_delete(&sp, STR("no/such"), &s->e), 0);
    assert_int_equal(space_delete(&sp, STR("d/../d"), &s->e), 0);
    assert_int_equal(space_delete(&sp, STR("d"), &s->e), 0); /* not a file */
}

static void test_deep(void **state)
{
    struct bench *s = *state;
    AUTO_CLOSE int at = fcntl(s->dir.fd, F_DUPFD_CLOEXEC, 0);

    for (int i = 0; i < 60; i++) {
        assert_int_equal(mkdirat(at, "d", 0700), 0);
        int next = openat(at, "d", O_DIRECTORY | O_RDONLY | O_CLOEXEC);
        assert_true(next >= 0);
        close(openat(next, "f", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
        close(at);
        at = next;
    }
    s->limits.artifact_count = TOLD_MAX;
    assert_between(scan(s), 20, TOLD_MAX); /* down to some depth, and back */
    assert_int_equal(scan(s), 0);
}

/* --- kinds --- */

static void test_mime(void **state)
{
    static const char *const rows[][2] = {
        {"plot.png",       "image/png"               },
        {"PHOTO.JPG",      "image/jpeg"              },
        {"a/b.c/data.csv", "text/csv"                },
        {"archive.tar.gz", "application/gzip"        },
        {"notes.txt",      "text/plain"              },
        {".png",           "application/octet-stream"},
        {"png",            "application/octet-stream"},
        {"x.unknown",      "application/octet-stream"},
        {"",               "application/octet-stream"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_string_equal(mime_of(str_of(rows[i][0])), rows[i][1]);
    assert_string_equal(mime_suffix(STR("text/plain")), ".txt");
    assert_string_equal(mime_suffix(STR("image/jpeg")), ".jpg");
    assert_string_equal(mime_suffix(STR("application/octet-stream")), "");
}

#define WITH_SPACE(f) cmocka_unit_test_setup_teardown(f, open_space, close_space)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_SPACE(test_put_and_get),
        WITH_SPACE(test_put_over_what_was_planted),
        WITH_SPACE(test_refused_paths),
        WITH_SPACE(test_folders),
        WITH_SPACE(test_get_of_what_is_no_file),
        WITH_SPACE(test_created),
        WITH_SPACE(test_changed_in_place),
        WITH_SPACE(test_what_comes_into_an_empty_one),
        WITH_SPACE(test_deleted_and_renamed),
        WITH_SPACE(test_replaced),
        WITH_SPACE(test_not_looked_at),
        WITH_SPACE(test_too_large),
        WITH_SPACE(test_too_many),
        WITH_SPACE(test_noted),
        WITH_SPACE(test_an_old_look_says_nothing),
        WITH_SPACE(test_a_look_from_before_a_put_says_nothing),
        WITH_SPACE(test_a_blind_look_says_nothing),
        WITH_SPACE(test_a_try_gives_up),
        WITH_SPACE(test_names_are_bounded),
        WITH_SPACE(test_put_whole),
        WITH_SPACE(test_deep),
        cmocka_unit_test(test_mime),
    };

    return RUN(tests);
}
