#include "fetch/fetch.h"
#include "unit.h"

struct row {
    const char *from, *name;
};

static void test_of_url(void **state)
{
    static const struct row rows[] = {
        {"http://h/a.csv",                  "a.csv"       },
        {"http://h/dir/a%20b.csv?x=/y#/z",  "a b.csv"     },
        {"http://h",                        "download"    },
        {"http://h/",                       "download"    },
        {"http://h/dir/",                   "download"    },
        {"http://h?a/b.csv",                "download"    },
        {"http://h/a/..",                   "download"    },
        {"http://h/%2e%2e",                 "download"    },
        {"http://h/..%2f..%2fetc%2fpasswd", "passwd"      },
        {"http://h/a%2F",                   "download"    },
        {"http://h/a%5cb",                  "b"           },
        {"http://h/a\\b",                   "b"           },
        {"http://h/%252e%252e%252fx",       "%2e%2e%2fx"  },
        {"http://h/a%00b%0a%1b%7f",         "ab"          },
        {"http://h/%c2%85x",                "x"           },
        {"http://h/n%C3%A4me",              "n\xc3\xa4me" },
        {"http://h/n%E4me",                 "n_me"        },
        {"http://h/a%2",                    "a%2"         },
        {"http://h/a%zz",                   "a%zz"        },
        {"http://h/%20%20a%20",             "a"           },
        {"http://h/%20",                    "download"    },
        {"data:text/plain,abc",             "download.txt"},
        {"",                                "download"    },
    };
    char name[256];

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        url_file_name(str_of(rows[i].from), name, sizeof(name));
        assert_string_equal(name, rows[i].name);
    }
}

static void test_of_disposition(void **state)
{
    static const struct row rows[] = {
        {"attachment; filename=a.csv",                                 "a.csv"           },
        {"attachment; filename=\"a b;c.csv\"",                         "a b;c.csv"       },
        {"attachment; filename=\"a\\\"b\"",                            "a\"b"            },
        {"ATTACHMENT;FILENAME = x ; size=3",                           "x"               },
        {"inline; filename=\"/etc/passwd\"",                           "passwd"          },
        {"inline; filename=\"C:\\\\dir\\\\x.csv\"",                    "x.csv"           },
        {"attachment; filename=old; filename*=UTF-8''n%C3%A4w",        "n\xc3\xa4w"      },
        {"attachment; filename*=UTF-8'en'%e2%82%ac.csv; filename=old", "\xe2\x82\xac.csv"},
        {"attachment; filename*=ISO-8859-1''n%E4w; filename=old",      "n\xc3\xa4w"      },
        {"attachment; filename*=KOI8-R''x; filename=old",              "old"             },
        {"attachment; filename*=UTF-8''..%2F..; filename=old",         "old"             },
        {"attachment; filename*=broken; filename=old",                 "old"             },
        {"attachment; filename=\"unfinished",                          "unfinished"      },
        {"attachment; x=\"; filename=no\"; filename=yes",              "yes"             },
        {"attachment; filename=first; filename=second",                "first"           },
    };
    static const char *const none[] = {"",
                                       "attachment",
                                       "attachment; filename",
                                       "filename=x",
                                       "attachment; filename=",
                                       "a; filename=\"..\"",
                                       "a; filename=\"\"",
                                       "a; filename=\"\\"};
    char name[256];

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        assert_true(disposition_file_name(str_of(rows[i].from), name, sizeof(name)));
        assert_string_equal(name, rows[i].name);
    }
    for (size_t i = 0; i < COUNT(none); i++)
        if (disposition_file_name(str_of(none[i]), name, sizeof(name)))
            fail_msg("'%s' names no file, and not '%s'", none[i], name);
}

/* Cut to what fits, and never through a character. */
static void test_length(void **state)
{
    static const char euro[3] = {'\xe2', '\x82', '\xac'};
    char url[600] = "http://h/", name[300];

    (void)state;
    memset(url + 9, 'a', 500);
    url_file_name(str_of(url), name, sizeof(name));
    assert_int_equal(strlen(name), 255);
    url_file_name(str_of(url), name, 16);
    assert_int_equal(strlen(name), 15);
    for (size_t i = 0; i < 498; i += 3)
        memcpy(url + 9 + i, euro, sizeof(euro));
    url_file_name(str_of(url), name, sizeof(name));
    assert_int_equal(strlen(name), 255);
    url_file_name(str_of(url), name, 17);
    assert_int_equal(strlen(name), 15);
    assert_int_equal(str_utf8_len(str_of(name)), 15);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_of_url),
        cmocka_unit_test(test_of_disposition),
        cmocka_unit_test(test_length),
    };

    return RUN(tests);
}
