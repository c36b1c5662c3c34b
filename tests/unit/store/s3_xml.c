/* What an S3 server lists: XML that is not trusted. */
#include "store/s3_int.h"
#include "unit.h"

#define REST        "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcd"
#define WHEN        "<LastModified>2026-01-02T03:04:05.000Z</LastModified>"
#define OBJECT(key) "<Contents><Key>" key "</Key>" WHEN "<Size>12</Size></Contents>"
#define PAGE(more, objects)                                                                        \
    "<?xml version=\"1.0\"?><ListBucketResult xmlns=\"x\"><IsTruncated>" more                      \
    "</IsTruncated>" objects "</ListBucketResult>"

static void test_a_page(void **state)
{
    struct s3_page p = {0};

    (void)state;
    s3_page_parse(STR(PAGE("true", OBJECT("p/ab/" REST) OBJECT("p/cd/" REST))), "p/", &p);
    assert_int_equal(p.count, 2);
    assert_string_equal(p.at[0].hash, "ab" REST);
    assert_string_equal(p.at[1].hash, "cd" REST);
    assert_int_equal(p.at[0].modified_s, 1767323045);
    assert_int_equal(p.at[0].size, 12);
    assert_string_equal(p.last, "p/cd/" REST);
    s3_page_done(&p);
    s3_page_parse(STR(PAGE("false", OBJECT("ab/" REST))), "", &p);
    assert_int_equal(p.count, 1);
    assert_string_equal(p.last, "");
    s3_page_done(&p);
}

/* Whatever is in the bucket beside our blobs is not ours to remove. */
static void test_what_is_no_blob(void **state)
{
    static const char *const pages[] = {
        "",
        "<",
        "<Contents",
        PAGE("false", OBJECT("")),
        PAGE("false", OBJECT("p/")),
        PAGE("false", OBJECT("q/ab/" REST)),
        PAGE("false", OBJECT("ab/" REST)),
        PAGE("false", OBJECT("p/ab/" REST "0")),
        PAGE("false", OBJECT("p/abc" REST)),
        PAGE("false", OBJECT("p/AB/" REST)),
        PAGE("false", OBJECT("p/a&/" REST)),
        PAGE("false", "<Contents><Key>p/ab/" REST "</Key></Contents>"),
        PAGE("false", "<Contents><Key>p/ab/" REST "</Key>" WHEN),
        PAGE("false",
             "<Contents><Key>p/ab/" REST "</Key><LastModified>now</LastModified></Contents>"),
    };

    (void)state;
    for (size_t i = 0; i < COUNT(pages); i++) {
        struct s3_page p = {0};
        s3_page_parse(str_of(pages[i]), "p/", &p);
        assert_int_equal(p.count, 0);
        s3_page_done(&p);
    }
}

static void test_tags(void **state)
{
    struct str xml = STR("<a><Code>x</Code><Codex>no</Codex><Code n='1'>y</Code></a>");
    char small[2];
    size_t at = 0;

    (void)state;
    assert_true(str_is(xml_next(xml, "Code", &at), "x"));
    assert_true(str_is(xml_next(xml, "Code", &at), "y"));
    assert_null(xml_next(xml, "Code", &at).p);
    xml_copy(STR("yes"), small, sizeof(small));
    assert_string_equal(small, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_page),
        cmocka_unit_test(test_what_is_no_blob),
        cmocka_unit_test(test_tags),
    };

    return RUN(tests);
}
