/* Blobs: whole or not there, once for each content, gone when nobody needs them. */
#include "loop/loop.h"
#include "shop.h"

#include <dirent.h>
#include <signal.h>
#include <sys/wait.h>

#define HASH_ABC "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
#define HOUR     3600

static int shop_open_named(void **state)
{
    int rc = shop_open(state);
    struct shop *s = *state;

    s->store->temp_names = true; /* as on a file system without O_TMPFILE */
    return rc;
}

/* Puts a blob; returns its hash, valid until the next one. */
static const char *put(struct shop *s, struct str bytes, bool durable)
{
    static char hash[HASH_HEX];
    struct blob *b = blob_new(s->store, 1 * MiB, &s->e);
    uint64_t size;

    assert_non_null(b);
    assert_ok(s, blob_write(b, bytes, &s->e));
    assert_ok(s, blob_keep(b, durable, hash, &size, &s->e));
    assert_int_equal(size, bytes.n);
    return hash;
}

static void expect(struct shop *s, const char *hash, struct str bytes)
{
    AUTO_CLOSE int fd = blob_open(s->store, hash, &s->e);
    char got[64];

    assert_true(fd >= 0);
    assert_int_equal(read(fd, got, sizeof(got)), bytes.n);
    assert_memory_equal(got, bytes.p, bytes.n);
}

static const char *path_of(const char *hash)
{
    static char path[128];

    snprintf(path, sizeof(path), "blobs/%.2s/%.62s", hash, hash + 2);
    return path;
}

static struct stat stat_of(struct shop *s, const char *hash)
{
    struct stat st;

    assert_int_equal(fstatat(s->dir.fd, path_of(hash), &st, 0), 0);
    return st;
}

static bool is_there(struct shop *s, const char *hash)
{
    return faccessat(s->dir.fd, path_of(hash), F_OK, 0) == 0;
}

static void set_age(struct shop *s, const char *hash, time_t seconds)
{
    struct timespec at[2] = {{.tv_sec = time(NULL) - seconds}, {.tv_sec = time(NULL) - seconds}};

    assert_int_equal(utimensat(s->dir.fd, path_of(hash), at, 0), 0);
}

static size_t count_in(struct shop *s, const char *path)
{
    DIR *d = fdopendir(openat(s->dir.fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    size_t n = 0;

    if (!d)
        return 0;
    for (struct dirent *entry; (entry = readdir(d));)
        n += entry->d_name[0] != '.';
    closedir(d);
    return n;
}

/* --- in and out --- */

static void test_put_and_open(void **state)
{
    struct shop *s = *state;
    struct blob *b = blob_new(s->store, 3, &s->e);
    char hash[HASH_HEX];
    uint64_t size;

    assert_ok(s, blob_write(b, STR("a"), &s->e));
    assert_ok(s, blob_write(b, STR(""), &s->e));
    assert_ok(s, blob_write(b, STR("bc"), &s->e));
    assert_ok(s, blob_keep(b, BLOB_NOW, hash, &size, &s->e));
    assert_string_equal(hash, HASH_ABC);
    assert_int_equal(size, 3);
    shop_reopen(s);
    expect(s, hash, STR("abc"));
    assert_int_equal(stat_of(s, hash).st_mode & 0777, 0600);
    assert_int_equal(count_in(s, "blobs/tmp"), 0);
    put(s, STR(""), false);
}

static void test_same_bytes_same_blob(void **state)
{
    struct shop *s = *state;
    struct stat after;

    put(s, STR("abc"), false);
    set_age(s, HASH_ABC, 2 * (time_t)HOUR);
    assert_string_equal(put(s, STR("abc"), true), HASH_ABC);
    after = stat_of(s, HASH_ABC);
    assert_true(after.st_mtim.tv_sec > time(NULL) - HOUR); /* touched */
    assert_int_equal(count_in(s, "blobs/ba"), 1);
    assert_int_equal(count_in(s, "blobs/tmp"), 0);
}

/* A power cut can leave a name without its bytes. */
static void test_a_torn_one_is_replaced(void **state)
{
    struct shop *s = *state;

    put(s, STR("abc"), false);
    assert_int_equal(truncate(scratch_put(&s->dir, path_of(HASH_ABC), STR("")), 0), 0);
    put(s, STR("abc"), false);
    expect(s, HASH_ABC, STR("abc"));
}

static void test_all_of_an_fd(void **state)
{
    static char large[700 * 1024];
    struct shop *s = *state;
    AUTO_CLOSE int fd = -1;
    struct blob *b = blob_new(s->store, sizeof(large), &s->e);
    char hash[HASH_HEX];
    uint64_t size;

    memset(large, 'x', sizeof(large));
    fd = open(scratch_put(&s->dir, "large", (struct str){large, sizeof(large)}),
              O_RDONLY | O_CLOEXEC);
    assert_int_equal(lseek(fd, 5, SEEK_SET), 5);
    assert_ok(s, blob_write_fd(b, fd, &s->e));
    assert_ok(s, blob_keep(b, BLOB_LATER, hash, &size, &s->e));
    assert_int_equal(size, sizeof(large));
    b = blob_new(s->store, sizeof(large), &s->e);
    assert_ok(s, blob_write(b, (struct str){large, sizeof(large)}, &s->e));
    assert_ok(s, blob_keep(b, BLOB_LATER, large, &size, &s->e));
    assert_string_equal(hash, large);
}

/* The same bytes have the same name, with holes or without; only what is data takes room. */
static void test_holes_stay_holes(void **state)
{
    static char plain[3 * 1024 * 1024];
    struct shop *s = *state;
    AUTO_CLOSE int fd = -1;
    struct blob *b = blob_new(s->store, sizeof(plain), &s->e);
    char hash[HASH_HEX], same[HASH_HEX];
    uint64_t size;

    fd = open(scratch_put(&s->dir, "holes", STR("")), O_RDWR | O_CLOEXEC);
    memcpy(plain + MiB, "data", 4);
    assert_int_equal(pwrite(fd, "data", 4, MiB), 4);
    assert_int_equal(ftruncate(fd, sizeof(plain)), 0);
    assert_ok(s, blob_write_fd(b, fd, &s->e));
    assert_ok(s, blob_keep(b, BLOB_LATER, hash, &size, &s->e));
    assert_int_equal(size, sizeof(plain));
    assert_true(stat_of(s, hash).st_blocks * 512 < (blkcnt_t)(64 * KiB));
    assert_int_equal(stat_of(s, hash).st_size, sizeof(plain));
    b = blob_new(s->store, sizeof(plain), &s->e);
    assert_ok(s, blob_write(b, (struct str){plain, sizeof(plain)}, &s->e));
    assert_ok(s, blob_keep(b, BLOB_LATER, same, &size, &s->e));
    assert_string_equal(hash, same);
    b = blob_new(s->store, sizeof(plain) - 1, &s->e);
    assert_refused(s, blob_write_fd(b, fd, &s->e), ERR_LIMIT);
    blob_free(b);
}

static void test_limit(void **state)
{
    struct shop *s = *state;
    struct blob *b = blob_new(s->store, 4, &s->e);
    char hash[HASH_HEX];
    uint64_t size;

    assert_ok(s, blob_write(b, STR("abc"), &s->e));
    assert_refused(s, blob_write(b, STR("de"), &s->e), ERR_LIMIT);
    assert_refused(s, blob_keep(b, BLOB_LATER, hash, &size, &s->e), ERR_HOST);
    assert_false(is_there(s, hash));
    assert_false(is_there(s, HASH_ABC));
    assert_int_equal(count_in(s, "blobs"), 1); /* tmp */
    assert_int_equal(count_in(s, "blobs/tmp"), 0);
}

static void test_what_cannot_be_read(void **state)
{
    struct shop *s = *state;
    struct blob *b = blob_new(s->store, 100, &s->e);
    char hash[HASH_HEX];
    uint64_t size;
    int p[2];

    assert_int_equal(pipe2(p, O_CLOEXEC), 0);
    assert_refused(s, blob_write_fd(b, p[0], &s->e), ERR_HOST);
    assert_refused(s, blob_keep(b, BLOB_LATER, hash, &size, &s->e), ERR_HOST);
    fd_closep(&p[0]);
    fd_closep(&p[1]);
}

static void test_freed(void **state)
{
    struct shop *s = *state;
    struct blob *b = blob_new(s->store, 100, &s->e);

    assert_ok(s, blob_write(b, STR("abc"), &s->e));
    assert_int_equal(count_in(s, "blobs/tmp"), s->store->temp_names);
    blob_free(b);
    blob_free(NULL);
    assert_int_equal(count_in(s, "blobs/tmp"), 0);
    assert_false(is_there(s, HASH_ABC));
}

/* An upload that is given up when the server has closed its store already. */
static void test_freed_after_the_store(void **state)
{
    struct shop *s = *state;
    struct blob *b = blob_new(s->store, 100, &s->e);

    assert_ok(s, blob_write(b, STR("abc"), &s->e));
    store_close(take_ptr(&s->store));
    blob_free(b);
    assert_int_equal(count_in(s, "blobs/tmp"), 0);
}

/* What the database needs is left to it. */
static void test_a_disk_that_is_nearly_full(void **state)
{
    struct shop *s = *state;

    s->store->reserve = UINT64_MAX;
    assert_null(blob_new(s->store, 100, &s->e));
    assert_int_equal(s->e.kind, ERR_FULL);
    assert_int_equal(count_in(s, "blobs/tmp"), 0);
    s->store->reserve = 1;
    put(s, STR("abc"), false);
}

static void test_no_blob(void **state)
{
    static const char *const bad[] = {
        "",
        "abc",
        "../../../../../../../../../../../../../../../../../../../etc/passwd",
        "BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD",
        HASH_ABC "0",
    };
    struct shop *s = *state;

    for (size_t i = 0; i < COUNT(bad); i++)
        assert_refused(s, blob_open(s->store, bad[i], &s->e), ERR_CALLER);
    assert_refused(s, blob_open(s->store, HASH_ABC, &s->e), ERR_MISSING);
}

/* --- a crash --- */

static _Noreturn void die_half_way(struct shop *s)
{
    struct blob *b = blob_new(s->store, 100, &s->e);

    if (!b || blob_write(b, STR("abc"), &s->e) < 0)
        _exit(1);
    raise(SIGKILL);
    _exit(1);
}

static void test_a_crash_leaves_nothing(void **state)
{
    struct shop *s = *state;
    bool named = s->store->temp_names;
    struct store_config config = engine_config(s->dir.path);
    struct loop *l;
    struct store *server;
    int status;
    pid_t pid = fork();

    if (pid == 0)
        die_half_way(s);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
    shop_reopen(s); /* not the server: this might be a server's that is at work */
    assert_int_equal(count_in(s, "blobs/tmp"), named);
    l = loop_new(&(struct err){0});
    server = store_open(l, &config, &s->e);
    assert_non_null(server);
    assert_int_equal(count_in(s, "blobs/tmp"), 0);
    assert_int_equal(count_in(s, "blobs"), 1);
    store_close(server);
    loop_free(l);
}

/* --- the sweep --- */

struct sweep {
    struct shop *shop;
    int found;
    const char *touch; /* after it was found */
    bool fail;         /* when all is done */
};

static int sweep(struct db *db, void *arg, struct err *e)
{
    struct sweep *w = arg;

    w->found = blob_sweep(w->shop->store, db, e);
    if (w->found < 0)
        return -1;
    if (w->touch)
        set_age(w->shop, w->touch, 0);
    return w->fail ? err_set(e, ERR_CALLER, "no") : 0;
}

static void test_sweep(void **state)
{
    struct shop *s = *state;
    struct sweep w = {.shop = s};

    put(s, STR("abc"), false);
    set_age(s, HASH_ABC, HOUR - 60);
    assert_ok(s, store_call(s->store, sweep, &w, &s->e));
    assert_int_equal(w.found, 0);
    assert_true(is_there(s, HASH_ABC));
    set_age(s, HASH_ABC, HOUR + 60);
    assert_ok(s, store_call(s->store, sweep, &w, &s->e));
    assert_int_equal(w.found, 1);
    assert_false(is_there(s, HASH_ABC));
    assert_ok(s, store_call(s->store, sweep, &w, &s->e));
    assert_int_equal(w.found, 0);
}

static void name_by_session(struct shop *s, const char *hash)
{
    struct session_row r = {.id = "sess_a", .tenant = mem_strdup("t"), .pool = mem_strdup("p")};
    struct space_row f = {.path = mem_strdup("a")};

    snprintf(f.hash, sizeof(f.hash), "%s", hash);
    assert_ok(s, db_session_put(s->db, &r, &s->e));
    assert_ok(s, db_space_put(s->db, "sess_a", &f, &s->e));
    session_row_done(&r);
    space_row_done(&f);
}

static void name_by_file(struct shop *s, const char *hash)
{
    struct file_row r = {.id = "file_a",
                         .tenant = mem_strdup("t"),
                         .name = mem_strdup("n"),
                         .mime = mem_strdup("m")};

    snprintf(r.hash, sizeof(r.hash), "%s", hash);
    assert_ok(s, db_file_put(s->db, &r, &s->e));
    file_row_done(&r);
}

static void name_by_exec(struct shop *s, const char *hash)
{
    struct exec_row r = {
        .id = "exec_a",
        .tenant = mem_strdup("t"),
        .session = mem_strdup("s"),
        .pool = mem_strdup("p"),
        .request = mem_strdup("r"),
        .door = mem_strdup("d"),
        .kind = mem_strdup("k"),
        .code = mem_strdup("c"),
        .status = mem_strdup("ok"),
    };

    snprintf(r.events_hash, sizeof(r.events_hash), "%s", hash);
    assert_ok(s, db_exec_put(s->db, &r, &s->e));
    exec_row_done(&r);
}

static void test_sweep_spares_what_has_a_row(void **state)
{
    static void (*const name_by[])(struct shop *, const char *) = {name_by_session, name_by_file,
                                                                   name_by_exec};
    static const struct str bytes[] = {STR("one"), STR("two"), STR("three"), STR("nobody's")};
    struct shop *s = *state;
    struct sweep w = {.shop = s};
    char hash[COUNT(bytes)][HASH_HEX];

    for (size_t i = 0; i < COUNT(bytes); i++) {
        snprintf(hash[i], HASH_HEX, "%s", put(s, bytes[i], false));
        set_age(s, hash[i], 2 * (time_t)HOUR);
        if (i < COUNT(name_by))
            name_by[i](s, hash[i]);
    }
    assert_ok(s, store_call(s->store, sweep, &w, &s->e));
    assert_int_equal(w.found, 1);
    for (size_t i = 0; i < COUNT(bytes); i++)
        assert_int_equal(is_there(s, hash[i]), i < COUNT(name_by));
    assert_int_equal(db_session_delete(s->db, "t", "sess_a", &s->e), 1);
    assert_int_equal(db_file_delete(s->db, "t", "file_a", &s->e), 1);
    assert_int_equal(db_exec_forget(s->db, 1, 9, &s->e), 1);
    assert_ok(s, store_call(s->store, sweep, &w, &s->e));
    assert_int_equal(w.found, 3);
    assert_false(is_there(s, hash[0]) || is_there(s, hash[1]) || is_there(s, hash[2]));
}

/* Put once more, or opened, while the sweep has it on its list. */
static void test_sweep_looks_twice(void **state)
{
    struct shop *s = *state;
    struct sweep w = {.shop = s, .touch = HASH_ABC};

    put(s, STR("abc"), false);
    set_age(s, HASH_ABC, 2 * (time_t)HOUR);
    assert_ok(s, store_call(s->store, sweep, &w, &s->e));
    assert_int_equal(w.found, 1);
    assert_true(is_there(s, HASH_ABC));
}

static void test_to_open_is_to_touch(void **state)
{
    struct shop *s = *state;
    struct sweep w = {.shop = s};

    put(s, STR("abc"), false);
    set_age(s, HASH_ABC, 2 * (time_t)HOUR);
    expect(s, HASH_ABC, STR("abc"));
    assert_ok(s, store_call(s->store, sweep, &w, &s->e));
    assert_int_equal(w.found, 0);
}

static int refuse_commit(struct db *db, struct err *e)
{
    (void)db;
    return err_set(e, ERR_HOST, "the disk is full");
}

/* What was taken away in the same transaction comes back, so nothing may be gone. */
static void test_sweep_of_an_undone_job(void **state)
{
    struct shop *s = *state;
    struct sweep w = {.shop = s, .fail = true};
    struct db_ops ops = *s->db->ops;
    const struct db_ops *before = s->db->ops;

    put(s, STR("abc"), false);
    set_age(s, HASH_ABC, 2 * (time_t)HOUR);
    assert_refused(s, store_call(s->store, sweep, &w, &s->e), ERR_CALLER);
    assert_int_equal(w.found, 1);
    assert_true(is_there(s, HASH_ABC));
    w.fail = false;
    ops.commit = refuse_commit;
    s->db->ops = &ops;
    assert_refused(s, store_call(s->store, sweep, &w, &s->e), ERR_HOST);
    assert_int_equal(w.found, 1);
    assert_true(is_there(s, HASH_ABC));
    s->db->ops = before;
    assert_ok(s, store_call(s->store, sweep, &w, &s->e));
    assert_false(is_there(s, HASH_ABC));
}

static void test_sweep_leaves_strangers_alone(void **state)
{
    struct shop *s = *state;
    struct sweep w = {.shop = s};

    put(s, STR("abc"), false);
    scratch_put(&s->dir, "blobs/ba/README", STR("what is this?"));
    scratch_put(&s->dir, "blobs/notes", STR("mine"));
    struct timespec old[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
    assert_int_equal(utimensat(s->dir.fd, "blobs/ba/README", old, 0), 0);
    assert_int_equal(utimensat(s->dir.fd, "blobs/notes", old, 0), 0);
    assert_ok(s, store_call(s->store, sweep, &w, &s->e));
    assert_int_equal(w.found, 0);
    scratch_expect(&s->dir, "blobs/ba/README", STR("what is this?"));
    scratch_expect(&s->dir, "blobs/notes", STR("mine"));
}

#define BOTH_WAYS(f)                                                                               \
    IN_SHOP(f),                                                                                    \
    {                                                                                              \
#f " (named)", f, shop_open_named, shop_close, NULL                                        \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH_WAYS(test_put_and_open),
        BOTH_WAYS(test_same_bytes_same_blob),
        BOTH_WAYS(test_a_torn_one_is_replaced),
        BOTH_WAYS(test_all_of_an_fd),
        BOTH_WAYS(test_holes_stay_holes),
        BOTH_WAYS(test_limit),
        BOTH_WAYS(test_what_cannot_be_read),
        BOTH_WAYS(test_freed),
        BOTH_WAYS(test_freed_after_the_store),
        BOTH_WAYS(test_a_disk_that_is_nearly_full),
        BOTH_WAYS(test_a_crash_leaves_nothing),
        IN_SHOP(test_no_blob),
        IN_SHOP(test_sweep),
        IN_SHOP(test_sweep_spares_what_has_a_row),
        IN_SHOP(test_sweep_looks_twice),
        IN_SHOP(test_to_open_is_to_touch),
        IN_SHOP(test_sweep_of_an_undone_job),
        IN_SHOP(test_sweep_leaves_strangers_alone),
    };

    return RUN(tests);
}
