#include "cli/cli_int.h"
#include "unit.h"

static void test_best_part(void **state)
{
    struct event ev = {.bundle.count = 3};

    (void)state;
    ev.bundle.part[0] = (struct mime_part){STR("text/plain"), STR("<Figure>")};
    ev.bundle.part[1] = (struct mime_part){STR("image/svg+xml"), STR("<svg/>")};
    ev.bundle.part[2] = (struct mime_part){STR("image/png"), STR("...")};
    assert_ptr_equal(image_part(&ev), &ev.bundle.part[2]);
    ev.bundle.count = 2;
    assert_ptr_equal(image_part(&ev), &ev.bundle.part[1]);
    ev.bundle.count = 1;
    assert_null(image_part(&ev));
}

static void test_suffix(void **state)
{
    (void)state;
    assert_string_equal(image_suffix(STR("image/jpeg")), ".jpg");
    assert_null(image_suffix(STR("image/../../etc")));
    assert_null(image_suffix(STR("text/plain")));
}

static void test_png(void **state)
{
    static const char png[] = "\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\2\x80\0\0\1\xe0";
    uint32_t w = 0, h = 0;

    (void)state;
    assert_true(png_size((struct str){png, sizeof(png) - 1}, &w, &h));
    assert_int_equal(w, 640);
    assert_int_equal(h, 480);
    for (size_t n = 0; n < sizeof(png) - 1; n++) {
        AUTO_FREE char *cut = mem_zalloc(n); /* its own allocation: reading past it is seen */
        memcpy(cut, png, n);
        assert_false(png_size((struct str){cut, n}, &w, &h));
    }
    assert_false(png_size(STR("GIF89a..................."), &w, &h));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_best_part),
        cmocka_unit_test(test_suffix),
        cmocka_unit_test(test_png),
    };

    return RUN(tests);
}
