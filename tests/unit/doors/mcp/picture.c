/* Pictures by their bytes: what they are, and that nothing broken passes. */
#include "doors/mcp/execution.h"
#include "unit.h"

#include <stdlib.h>

/* Each is red, 3 x 2. */
static const unsigned char png[] = {
    0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x48, 0x44, 0x52,
    0x00, 0x00, 0x00, 0x03, 0x00, 0x00, 0x00, 0x02, 0x08, 0x02, 0x00, 0x00, 0x00, 0x12, 0x16, 0xf1,
    0x4d, 0x00, 0x00, 0x00, 0x15, 0x49, 0x44, 0x41, 0x54, 0x78, 0x9c, 0x63, 0x3c, 0xc1, 0x25, 0xc7,
    0xc0, 0xc0, 0xc0, 0xc0, 0xc0, 0xc0, 0xc4, 0x00, 0x03, 0x00, 0x11, 0xc6, 0x00, 0xf4, 0x84, 0xe1,
    0x1a, 0x01, 0x00, 0x00, 0x00, 0x00, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82,
};

static const unsigned char gif[] = {
    0x47, 0x49, 0x46, 0x38, 0x37, 0x61, 0x03, 0x00, 0x02, 0x00, 0x81, 0x00, 0x00, 0xc8, 0x0a,
    0x1e, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x2c, 0x00, 0x00, 0x00, 0x00,
    0x03, 0x00, 0x02, 0x00, 0x00, 0x08, 0x06, 0x00, 0x01, 0x08, 0x1c, 0x18, 0x10, 0x00, 0x3b,
};

static const unsigned char webp[] = {
    0x52, 0x49, 0x46, 0x46, 0x3a, 0x00, 0x00, 0x00, 0x57, 0x45, 0x42, 0x50, 0x56, 0x50,
    0x38, 0x20, 0x2e, 0x00, 0x00, 0x00, 0x90, 0x01, 0x00, 0x9d, 0x01, 0x2a, 0x03, 0x00,
    0x02, 0x00, 0x01, 0x40, 0x26, 0x25, 0xa0, 0x02, 0x74, 0xba, 0x00, 0x03, 0x98, 0x00,
    0xfe, 0xf5, 0x89, 0x1f, 0xe3, 0x79, 0xbc, 0xd6, 0xb5, 0xbf, 0xfd, 0xfb, 0x4b, 0xff,
    0x02, 0x77, 0xff, 0x02, 0x77, 0xfd, 0x0c, 0x00, 0x00, 0x00,
};

static const unsigned char webp_lossless[] = {
    0x52, 0x49, 0x46, 0x46, 0x1e, 0x00, 0x00, 0x00, 0x57, 0x45, 0x42, 0x50, 0x56,
    0x50, 0x38, 0x4c, 0x11, 0x00, 0x00, 0x00, 0x2f, 0x02, 0x40, 0x00, 0x00, 0x07,
    0x50, 0x85, 0x22, 0xd7, 0xa3, 0xff, 0x81, 0x88, 0xe8, 0x7f, 0x00, 0x00,
};

/* As much of a JPEG as is looked at: a filling byte, a comment, the size, a scan. */
static const unsigned char jpeg[] = {
    0xff, 0xd8, 0xff, 0xff, 0xfe, 0x00, 0x04, 'h',  'i',  0xff, 0xc2, 0x00,
    0x0b, 0x08, 0x00, 0x02, 0x00, 0x03, 0x01, 0x01, 0x11, 0x00, 0xff, 0xda,
    0x00, 0x08, 0x01, 0x01, 0x00, 0x00, 0x3f, 0x00, 0x7f, 0xff, 0xd9,
};

/* The wide kind, which says its size minus one in three bytes each. */
static const unsigned char webp_wide[] = {
    'R', 'I', 'F', 'F', 0x16, 0, 0, 0, 'W', 'E', 'B', 'P', 'V', 'P', '8',
    'X', 10,  0,   0,   0,    0, 0, 0, 0,   2,   0,   0,   1,   0,   0,
};

#define BYTES(a) ((struct str){(const char *)(a), sizeof(a)})

static const struct {
    const char *mime;
    const unsigned char *p;
    size_t n;
} pictures[] = {
    {"image/png",  png,           sizeof(png)          },
    {"image/jpeg", jpeg,          sizeof(jpeg)         },
    {"image/gif",  gif,           sizeof(gif)          },
    {"image/webp", webp,          sizeof(webp)         },
    {"image/webp", webp_lossless, sizeof(webp_lossless)},
    {"image/webp", webp_wide,     sizeof(webp_wide)    },
};

static void test_each_is_known(void **state)
{
    struct picture p;

    (void)state;
    for (size_t i = 0; i < COUNT(pictures); i++) {
        assert_true(picture_look((struct str){(const char *)pictures[i].p, pictures[i].n}, &p));
        assert_string_equal(p.mime, pictures[i].mime);
        assert_int_equal(p.width, 3);
        assert_int_equal(p.height, 2);
        assert_true(p.whole);
        assert_null(picture_why_not(&p, pictures[i].n));
    }
}

/* In memory of just that length, so that a read past it is seen. */
static void test_no_part_is_whole(void **state)
{
    struct picture p;

    (void)state;
    for (size_t i = 0; i < COUNT(pictures); i++)
        for (size_t n = 0; n < pictures[i].n; n++) {
            char *part = mem_zalloc(n ? n : 1);
            memcpy(part, pictures[i].p, n);
            picture_look((struct str){part, n}, &p);
            assert_false(p.whole);
            free(part);
        }
}

/* Every byte of a PNG is under a checksum, or where the next one is found by. */
static void test_no_byte_of_a_png_may_change(void **state)
{
    unsigned char bad[sizeof(png)];
    struct picture p;

    (void)state;
    for (size_t i = 0; i < sizeof(png); i++)
        for (unsigned bit = 0; bit < 8; bit++) {
            memcpy(bad, png, sizeof(png));
            bad[i] ^= (unsigned char)(1u << bit);
            picture_look(BYTES(bad), &p);
            assert_false(p.whole);
        }
}

static void test_what_is_none(void **state)
{
    static const char *const rows[] = {
        "",       "hello",   "<svg xmlns='http://www.w3.org/2000/svg'/>", "RIFF1234WAVEfmt ",
        "GIF88a", "%PDF-1.7"};
    struct picture p;

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_false(picture_look(str_of(rows[i]), &p));
}

static void test_no_size_is_not_whole(void **state)
{
    unsigned char none[sizeof(gif)];
    struct picture p;

    (void)state;
    memcpy(none, gif, sizeof(gif));
    none[6] = 0;
    assert_true(picture_look(BYTES(none), &p));
    assert_false(p.whole);
    assert_has(picture_why_not(&p, sizeof(none)), "damaged");
}

static void test_what_is_too_much(void **state)
{
    struct picture p = {"image/png", 1568, 1568, true};

    (void)state;
    assert_null(picture_why_not(&p, 525000));
    assert_has(picture_why_not(&p, 525001), "kB");
    p.height = 1569;
    assert_has(picture_why_not(&p, 1000), "1568");
    p = (struct picture){"image/png", 1569, 1, true};
    assert_has(picture_why_not(&p, 1000), "1568");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_is_known),
        cmocka_unit_test(test_no_part_is_whole),
        cmocka_unit_test(test_no_byte_of_a_png_may_change),
        cmocka_unit_test(test_what_is_none),
        cmocka_unit_test(test_no_size_is_not_whole),
        cmocka_unit_test(test_what_is_too_much),
    };

    return RUN(tests);
}
