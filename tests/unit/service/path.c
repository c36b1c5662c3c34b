/* Paths as strangers write them. */
#include "service/service_int.h"
#include "unit.h"

static void test_kept_as(void **state)
{
    static const char *const rows[][2] = {
        {"a.csv",               "a.csv"   },
        {"./a.csv",             "a.csv"   },
        {"a//b/./c",            "a/b/c"   },
        {"/workspace/a",        "a"       },
        {"/workspace//a",       NULL      }, /* what is left is absolute */
        {"/mnt/data/x/y",       "x/y"     },
        {"..a/b..",             "..a/b.." },
        {"\xff\n",              "\xff\n"  },
        {"",                    NULL      },
        {".",                   NULL      },
        {"./.",                 NULL      },
        {"/workspace/",         NULL      },
        {"/etc/passwd",         NULL      },
        {"/workspacex/a",       NULL      },
        {"..",                  NULL      },
        {"../a",                NULL      },
        {"a/../b",              NULL      },
        {"a/..",                NULL      },
        {"/workspace/../etc/a", NULL      },
        {"dir/",                NULL      },
        {"%2e%2e/a",            "%2e%2e/a"}, /* decoding is the door's, once */
    };
    char got[SPACE_PATH_MAX];

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct err e = {0};
        int rc = space_path_clean(str_of(rows[i][0]), got, &e);
        assert_int_equal(rc, rows[i][1] ? 0 : -1);
        if (rows[i][1])
            assert_string_equal(got, rows[i][1]);
        else
            assert_int_equal(e.kind, ERR_CALLER);
    }
}

static void test_nul(void **state)
{
    char got[SPACE_PATH_MAX];
    struct err e;

    (void)state;
    assert_int_equal(space_path_clean((struct str){"a\0b", 3}, got, &e), -1);
}

static void test_length_and_depth(void **state)
{
    char path[2 * SPACE_PATH_MAX], got[SPACE_PATH_MAX];
    struct err e;

    (void)state;
    memset(path, 'a', sizeof(path));
    assert_int_equal(space_path_clean((struct str){path, 255}, got, &e), 0);
    assert_int_equal(space_path_clean((struct str){path, 256}, got, &e), -1);
    for (size_t i = 100; i < sizeof(path); i += 101)
        path[i] = '/';
    for (size_t n = 900; n < 1200; n++) {
        if (path[n - 1] == '/')
            continue;
        int rc = space_path_clean((struct str){path, n}, got, &e);
        assert_int_equal(rc, n < SPACE_PATH_MAX ? 0 : -1);
        if (rc == 0)
            assert_int_equal(strlen(got), n);
    }
    for (size_t i = 0; i < 200; i++)
        path[i] = i % 2 ? '/' : 'a';
    assert_int_equal(space_path_clean((struct str){path, 63}, got, &e), 0); /* 32 parts */
    assert_int_equal(space_path_clean((struct str){path, 65}, got, &e), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kept_as),
        cmocka_unit_test(test_nul),
        cmocka_unit_test(test_length_and_depth),
    };

    return RUN(tests);
}
