/* --out, with a workspace that is a plain directory. */
#include "cli/cli_int.h"
#include "scratch.h"

struct session {
    struct scratch space;
};

int workspace_get(struct session *s, struct str path, struct err *e)
{
    char name[256];
    int fd;

    assert_true(str_to_cstr(path, name, sizeof(name)));
    fd = openat(s->space.fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? err_sys(e, "open %s", name) : fd;
}

struct fixture {
    struct session session;
    struct scratch out;
    struct settings s;
    struct artifacts k;
    struct buf line;
    struct err e;
};

static int set_up(void **state)
{
    static struct fixture h;

    h = (struct fixture){.k.dir = -1, .s.pool.limits.artifact_bytes = 100};
    buf_init(&h.line, 4096);
    *state = &h;
    return scratch_open(&h.session.space) < 0 || scratch_open(&h.out) < 0 ? -1 : 0;
}

static int tear_down(void **state)
{
    struct fixture *h = *state;

    artifacts_done(&h->k);
    settings_done(&h->s);
    buf_done(&h->line);
    return scratch_close(&h->session.space) < 0 || scratch_close(&h->out) < 0 ? -1 : 0;
}

static void use_out(struct fixture *h, const char *below)
{
    char path[64];

    snprintf(path, sizeof(path), "%s%s", h->out.path, below);
    h->s.out = mem_strdup(path);
}

static int report(struct fixture *h, enum file_change change, const char *path, uint64_t size)
{
    struct event ev = {.kind = EVENT_FILE};

    ev.file.change = change;
    ev.file.path = str_of(path);
    ev.file.size = size;
    ev.file.mime = "text/csv";
    ev.file.too_large = size > h->s.pool.limits.artifact_bytes;
    return artifacts_file(&h->k, &h->session, &ev, &h->e);
}

static struct str summary(struct fixture *h)
{
    h->line.n = 0;
    assert_int_equal(artifacts_summary(&h->k, &h->line, &h->e), 0);
    return buf_str(&h->line);
}

static void test_without_out(void **state)
{
    struct fixture *h = *state;

    assert_int_equal(artifacts_open(&h->k, &h->s, &h->e), 0);
    assert_str(summary(h), "");
    assert_int_equal(report(h, FILE_CREATED, "a.csv", 12), 0);
    assert_int_equal(report(h, FILE_CREATED, "b\n", 5), 0);
    assert_int_equal(report(h, FILE_CHANGED, "a.csv", 13), 0);
    assert_str(summary(h),
               "made: a.csv (13 B, text/csv), b\\x0a (5 B, text/csv); use --out DIR to keep");
    assert_int_equal(report(h, FILE_DELETED, "a.csv", 0), 0);
    assert_int_equal(report(h, FILE_CREATED, "huge", 101), 0);
    assert_str(
        summary(h),
        "made: b\\x0a (5 B, text/csv), huge (101 B, too large to keep); use --out DIR to keep");
    assert_int_equal(report(h, FILE_DELETED, "b\n", 0), 0);
    assert_int_equal(report(h, FILE_DELETED, "huge", 0), 0);
    assert_int_equal(report(h, FILE_DELETED, "never seen", 0), 0);
    assert_str(summary(h), "");
}

static void test_many_names(void **state)
{
    struct fixture *h = *state;
    char name[16];

    assert_int_equal(artifacts_open(&h->k, &h->s, &h->e), 0);
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof(name), "f%d", i);
        assert_int_equal(report(h, FILE_CREATED, name, 1), 0);
    }
    summary(h);
    assert_int_equal(buf_put(&h->line, (struct str){"", 1}), 0);
    assert_has(h->line.p, "f11 (1 B, text/csv) and 88 more;");
}

static void test_copies(void **state)
{
    struct fixture *h = *state;

    use_out(h, "/new/folder");
    assert_int_equal(artifacts_open(&h->k, &h->s, &h->e), 0);
    scratch_put(&h->session.space, "a.csv", STR("1,2"));
    assert_int_equal(report(h, FILE_CREATED, "a.csv", 3), 0);
    scratch_expect(&h->out, "new/folder/a.csv", STR("1,2"));
    scratch_put(&h->session.space, "a.csv", STR("3"));
    assert_int_equal(report(h, FILE_CHANGED, "a.csv", 1), 0);
    scratch_expect(&h->out, "new/folder/a.csv", STR("3"));
    assert_int_equal(report(h, FILE_CREATED, "huge", 101), 0);
    assert_int_equal(report(h, FILE_DELETED, "a.csv", 0), 0); /* the copy stays */
    assert_int_equal(scratch_count(&h->out), 3);
    summary(h);
    assert_int_equal(buf_put(&h->line, (struct str){"", 1}), 0);
    assert_has(h->line.p, "kept: a.csv (1 B, text/csv), huge (101 B, too large to keep) in /tmp/");
}

/* Between the report and the copy the guest may do what it likes. */
static void test_workspace_changes_meanwhile(void **state)
{
    struct fixture *h = *state;
    char long_text[200];

    use_out(h, "");
    assert_int_equal(artifacts_open(&h->k, &h->s, &h->e), 0);
    assert_int_equal(report(h, FILE_CREATED, "gone", 3), -1);
    assert_int_equal(h->e.kind, ERR_CALLER);
    assert_int_equal(symlinkat("/etc/passwd", h->session.space.fd, "link"), 0);
    assert_int_equal(report(h, FILE_CREATED, "link", 3), -1);
    assert_int_equal(h->e.kind, ERR_CALLER);
    memset(long_text, 'x', sizeof(long_text));
    scratch_put(&h->session.space, "grown", (struct str){long_text, sizeof(long_text)});
    assert_int_equal(report(h, FILE_CREATED, "grown", 3), -1);
    assert_int_equal(h->e.kind, ERR_LIMIT);
    assert_int_equal(scratch_count(&h->out), 0);
    summary(h);
    assert_int_equal(buf_put(&h->line, (struct str){"", 1}), 0);
    assert_has(h->line.p, "gone (3 B, not kept)");
}

static void test_figures(void **state)
{
    const struct mime_part png = {STR("image/png"), STR("png bytes")};
    const struct mime_part svg = {STR("image/svg+xml"), STR("<svg/>")};
    struct fixture *h = *state;
    char name[NAME_SHOWN];

    assert_int_equal(artifacts_open(&h->k, &h->s, &h->e), 0);
    assert_int_equal(artifacts_figure(&h->k, &h->session, &png, name, &h->e), 0);
    assert_string_equal(name, "");

    use_out(h, "");
    assert_int_equal(artifacts_open(&h->k, &h->s, &h->e), 0);
    scratch_put(&h->session.space, "figure-2.svg", STR("the code's own"));
    assert_int_equal(artifacts_figure(&h->k, &h->session, &png, name, &h->e), 0);
    assert_string_equal(name, "figure-1.png");
    assert_int_equal(artifacts_figure(&h->k, &h->session, &svg, name, &h->e), 0);
    assert_string_equal(name, "figure-3.svg");
    scratch_expect(&h->out, "figure-1.png", STR("png bytes"));
    scratch_expect(&h->out, "figure-3.svg", STR("<svg/>"));
}

static void test_out_is_no_directory(void **state)
{
    struct fixture *h = *state;

    scratch_put(&h->out, "file", STR(""));
    use_out(h, "/file");
    assert_int_equal(artifacts_open(&h->k, &h->s, &h->e), -1);
    assert_has(h->e.text, "file is not a directory");
    settings_done(&h->s);
    use_out(h, "/file/below");
    assert_int_equal(artifacts_open(&h->k, &h->s, &h->e), -1);
    assert_has(h->e.text, "is not a directory");
}

#define WITH_FIXTURE(t) cmocka_unit_test_setup_teardown(t, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FIXTURE(test_without_out), WITH_FIXTURE(test_many_names),
        WITH_FIXTURE(test_copies),      WITH_FIXTURE(test_workspace_changes_meanwhile),
        WITH_FIXTURE(test_figures),     WITH_FIXTURE(test_out_is_no_directory),
    };

    return RUN(tests);
}
