#include "doors/http/http_int.h"

#include "unit.h"

#define TYPE "multipart/form-data; boundary=b"
#define HEAD "--b\r\nContent-Disposition: form-data; name=\"f\"\r\n\r\n"

/* What came of a form, as text: name|file|mime<data> for each part. */
static struct buf seen;

static void put(const char *mark, struct str s)
{
    assert_int_equal(buf_put(&seen, str_of(mark)), 0);
    assert_int_equal(buf_put(&seen, s), 0);
}

static int on_part(void *arg, const struct part *p, struct err *e)
{
    (void)arg, (void)e;
    put("[", p->name);
    put("|", p->file.p ? p->file : STR("-"));
    put("|", p->mime);
    put("]", (struct str){0});
    return 0;
}

static int on_data(void *arg, struct str bytes, struct err *e)
{
    (void)arg, (void)e;
    assert_true(bytes.n > 0);
    put("", bytes);
    return 0;
}

static const struct multipart_fns fns = {on_part, on_data};

/* In pieces of so many bytes. */
static const char *read_in(struct str body, size_t piece)
{
    struct err e;
    struct multipart *m = multipart_new(STR(TYPE), &fns, NULL, &e);
    int rc = 0;

    buf_done(&seen);
    buf_init(&seen, 64 * KiB);
    assert_non_null(m);
    for (size_t at = 0; rc == 0 && at < body.n; at += piece)
        rc = multipart_feed(m, (struct str){body.p + at, body.n - at < piece ? body.n - at : piece},
                            &e);
    if (rc == 0)
        rc = multipart_end(m, &e);
    multipart_free(m);
    put("", (struct str){"", 1});
    return rc == 0 ? seen.p : "refused";
}

static void same(const char *body, const char *expected)
{
    for (size_t piece = 1; piece <= strlen(body); piece++)
        assert_string_equal(read_in(str_of(body), piece), expected);
}

static void test_parts(void **state)
{
    (void)state;
    same("--b--", "");
    same(HEAD "data\r\n--b--\r\n", "[f|-|]data");
    same("preamble\r\n" HEAD "data\r\n--b--epilogue", "[f|-|]data");
    same(HEAD "\r\n--b--", "[f|-|]");
    same(HEAD "a\r\n" HEAD "b\r\n--b--", "[f|-|]a[f|-|]b");
    same("--b \t\r\nContent-Disposition: form-data; name=f; filename=x\r\nContent-Type: a/b\r\n\r\n"
         "1\r\n--b--",
         "[f|x|a/b]1");
}

static void test_nearly_boundaries(void **state)
{
    (void)state;
    same(HEAD "\r\n--c\r\n-\r\r\n--\r\n--b--", "[f|-|]\r\n--c\r\n-\r\r\n--");
    same(HEAD "\r\r\r\n\n--b\r\n--b--", "[f|-|]\r\r\r\n\n--b");
    same(HEAD "--b--\r\n--b--", "[f|-|]--b--");
}

static void test_names(void **state)
{
    (void)state;
#define NAMED(params) "--b\r\ncontent-disposition: form-data; " params "\r\n\r\n\r\n--b--"
    same(NAMED("name=\"a b\"; filename=\"c;d\""), "[a b|c;d|]");
    same(NAMED("name=a; filename=\"\\\"\\\\\\x\""), "[a|\"\\\\x|]");
    same(NAMED("name=a; filename=\"\""), "[a||]");
    same(NAMED("name=a; filename=x; filename*=utf-8''%e2%82%ac"), "[a|\xe2\x82\xac|]");
    same(NAMED("name=a; filename*=utf-8''y; filename=x"), "[a|y|]");
    same(NAMED("name=a; name=b"), "[a|-|]");
    same(NAMED("name=a;"), "[a|-|]");
    same(NAMED("name=\"\""), "refused");
    same(NAMED("filename=x"), "refused");
    same(NAMED("name=\"a"), "refused");
    same(NAMED("name=a x"), "refused");
    same(NAMED("name=\xff"), "refused");
    same(NAMED("name=a; filename*=x"), "refused");
}

static void test_refused(void **state)
{
    (void)state;
    same("x", "refused");
    same("--b", "refused");
    same("--b-", "refused");
    same("--bx", "refused");
    same("--b\r\n\r\n", "refused");
    same("--b\nContent-Disposition: form-data; name=f\r\n\r\n", "refused");
    same(HEAD "data", "refused");
    same(HEAD "data\r\n--b", "refused");
    same(HEAD "data\r\n--bx", "refused");
    same("--b\r\nno colon\r\n\r\n", "refused");
}

static bool takes(const char *type)
{
    struct err e;
    struct multipart *m = multipart_new(str_of(type), &fns, NULL, &e);

    multipart_free(m);
    return m != NULL;
}

static void test_boundaries(void **state)
{
    char type[128] = "multipart/form-data; boundary=";
    size_t n = strlen(type);

    (void)state;
    memset(type + n, 'x', 70);
    assert_true(takes(type));
    type[n + 70] = 'x';
    assert_false(takes(type));
    assert_true(takes("m/f; a=b; Boundary=\"a b:c\""));
    assert_false(takes("m/f"));
    assert_false(takes("m/f; boundary="));
    assert_false(takes("m/f; boundary=\"\""));
    assert_false(takes("m/f; boundary=\"a "));
    assert_false(takes("m/f; boundary=\"a \""));
    assert_false(takes("m/f; boundary=\"\r\n\""));
    assert_false(takes("m/f; boundary"));
}

static int done(void **state)
{
    (void)state;
    buf_done(&seen);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts),      cmocka_unit_test(test_nearly_boundaries),
        cmocka_unit_test(test_names),      cmocka_unit_test(test_refused),
        cmocka_unit_test(test_boundaries),
    };
    return cmocka_run_group_tests(tests, NULL, done);
}
