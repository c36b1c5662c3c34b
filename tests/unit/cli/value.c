/* Numbers with units, both ways. */
#include "cli/cli_int.h"
#include "unit.h"

#define BAD UINT64_MAX

struct row {
    const char *text;
    uint64_t value;
};

static void check(enum option_type type, const struct row *rows, size_t count)
{
    struct option o = {.name = "x", .type = type, .metavar = "N", .max = UINT64_MAX - 1};
    struct settings s;
    struct err e;

    settings_init(&s);
    for (size_t i = 0; i < count; i++) {
        int got;
        s.pool.limits.wall_ms = 42;
        o.at = offsetof(struct settings, pool.limits.wall_ms);
        got = option_set(&o, &s, "--x", rows[i].text, &e);
        if (rows[i].value == BAD ? got == 0 || s.pool.limits.wall_ms != 42
                                 : got < 0 || s.pool.limits.wall_ms != rows[i].value)
            fail_msg("'%s' gives %d and %llu", rows[i].text, got,
                     (unsigned long long)s.pool.limits.wall_ms);
    }
    settings_done(&s);
}

static void test_sizes(void **state)
{
    static const struct row rows[] = {
        {"0",                    0                    },
        {"1",                    1                    },
        {"17B",                  17                   },
        {"1K",                   1024                 },
        {"1k",                   1024                 },
        {"1KB",                  1024                 },
        {"1KiB",                 1024                 },
        {"512M",                 512 * MiB            },
        {"2g",                   2 * GiB              },
        {"1T",                   1024 * GiB           },
        {"1.5G",                 1536 * MiB           },
        {"0.5K",                 512                  },
        {"0.0000001G",           0                    }, /* past the sixth digit nothing counts */
        {"18446744073709551613", 18446744073709551613u},
        {"18446744073709551616", BAD                  },
        {"99999999999T",         BAD                  },
        {"16777216T",            BAD                  },
        {"1.5",                  BAD                  },
        {"1.5.5K",               BAD                  },
        {".5K",                  BAD                  },
        {"1.K",                  BAD                  },
        {"K",                    BAD                  },
        {"",                     BAD                  },
        {"1 K",                  BAD                  },
        {" 1K",                  BAD                  },
        {"1KK",                  BAD                  },
        {"1X",                   BAD                  },
        {"-1K",                  BAD                  },
        {"+1K",                  BAD                  },
        {"0x10",                 BAD                  },
        {"inf",                  BAD                  },
        {"1E",                   BAD                  },
    };

    (void)state;
    check(OPTION_SIZE, rows, COUNT(rows));
}

static void test_seconds(void **state)
{
    static const struct row rows[] = {
        {"0",                    0        },
        {"30",                   30000    },
        {"0.5",                  500      },
        {"0.001",                1        },
        {"0.0009",               0        },
        {"1.2345",               1234     },
        {"10s",                  10000    },
        {"1m",                   60000    },
        {"1.5h",                 5400000  },
        {"2d",                   172800000},
        {"",                     BAD      },
        {"s",                    BAD      },
        {"1ms",                  1        },
        {"20000ms",              20000    },
        {"1mss",                 BAD      },
        {"1w",                   BAD      },
        {"m",                    BAD      },
        {"1,5",                  BAD      },
        {"-1",                   BAD      },
        {"nan",                  BAD      },
        {"1e3",                  BAD      },
        {"1.",                   BAD      },
        {"1.5x",                 BAD      },
        {".5",                   BAD      },
        {"99999999999999999999", BAD      },
        {"18446744073709552",    BAD      },
    };

    (void)state;
    check(OPTION_SECONDS, rows, COUNT(rows));
}

static void test_cores_and_counts(void **state)
{
    static const struct row cores[] = {
        {"1",    100},
        {"0.5",  50 },
        {"2.25", 225},
        {"1K",   BAD}
    };
    static const struct row counts[] = {
        {"0",   0  },
        {"64",  64 },
        {"1.0", BAD},
        {"1K",  BAD},
        {"",    BAD}
    };

    (void)state;
    check(OPTION_CORES, cores, COUNT(cores));
    check(OPTION_COUNT, counts, COUNT(counts));
}

static void test_modes(void **state)
{
    static const struct row rows[] = {
        {"0600",  0600},
        {"660",   0660},
        {"0",     0   },
        {"0888",  BAD },
        {"",      BAD },
        {"-1",    BAD },
        {" 600",  BAD },
        {"0o600", BAD },
    };

    (void)state;
    check(OPTION_MODE, rows, COUNT(rows));
}

static void test_choices(void **state)
{
    const struct option o = {.type = OPTION_CHOICE,
                             .metavar = "WORD",
                             .choices = "none|some|allow-list",
                             .at = offsetof(struct settings, pool.egress)};
    struct settings s;
    struct err e;
    char text[32];

    (void)state;
    settings_init(&s);
    assert_int_equal(option_set(&o, &s, "--egress", "allow-list", &e), 0);
    assert_int_equal(s.pool.egress, 2);
    option_show(&o, &s, text, sizeof(text));
    assert_string_equal(text, "allow-list");
    assert_int_equal(option_set(&o, &s, "--egress", "allow", &e), -1);
    assert_string_equal(e.text, "--egress: 'allow' is neither none, some nor allow-list");
    assert_int_equal(option_set(&o, &s, "--egress", "", &e), -1);
    assert_int_equal(s.pool.egress, 2);
    settings_done(&s);
}

static void test_words(void **state)
{
    const struct option *o = option_by_name(STR("listen"), IN(COMMAND_SERVE));
    struct settings s;
    struct err e;

    (void)state;
    settings_init(&s);
    assert_int_equal(setting_set(o, &s, SOURCE_FILE, "f:1", "1 ,\t2", &e), 0);
    assert_int_equal(setting_set(o, &s, SOURCE_FLAG, "--listen", "3", &e), 0);
    assert_int_equal(setting_set(o, &s, SOURCE_FLAG, "--listen", " 4", &e), 0);
    assert_int_equal(s.serve.listen.count, 2); /* flags replace the file and add to each other */
    assert_string_equal(s.serve.listen.item[0], "3");
    assert_string_equal(s.serve.listen.item[1], "4");
    assert_int_equal(setting_set(o, &s, SOURCE_FLAG, "--listen", "5,,6", &e), -1);
    assert_string_equal(e.text, "--listen: something is missing beside a comma");
    assert_int_equal(setting_set(o, &s, SOURCE_FLAG, "--listen", "", &e), -1);
    settings_done(&s);
}

/* A value is shown as it may be written. */
static void test_shown(void **state)
{
    static const struct {
        enum option_type type;
        uint64_t value;
        const char *text;
    } rows[] = {
        {OPTION_SIZE,    0,          "0"    },
        {OPTION_SIZE,    1000,       "1000" },
        {OPTION_SIZE,    1024,       "1K"   },
        {OPTION_SIZE,    1536 * MiB, "1536M"},
        {OPTION_SIZE,    2 * GiB,    "2G"   },
        {OPTION_SIZE,    2048 * GiB, "2T"   },
        {OPTION_SECONDS, 30000,      "30"   },
        {OPTION_SECONDS, 500,        "0.5"  },
        {OPTION_SECONDS, 1,          "0.001"},
        {OPTION_SECONDS, 0,          "0"    },
        {OPTION_SECONDS, 60000,      "60"   },
        {OPTION_SECONDS, 900000,     "15m"  },
        {OPTION_SECONDS, 901000,     "901"  },
        {OPTION_SECONDS, 86400000,   "24h"  },
        {OPTION_SECONDS, 2592000000, "30d"  },
        {OPTION_MODE,    0600,       "0600" },
        {OPTION_CORES,   100,        "1"    },
        {OPTION_CORES,   5,          "0.05" },
        {OPTION_COUNT,   64,         "64"   },
    };
    struct settings s = {0};
    char text[32];

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct option o = {.type = rows[i].type, .at = offsetof(struct settings, pool.limits.pids)};
        s.pool.limits.pids = rows[i].value;
        option_show(&o, &s, text, sizeof(text));
        assert_string_equal(text, rows[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_seconds),
        cmocka_unit_test(test_cores_and_counts),
        cmocka_unit_test(test_modes),
        cmocka_unit_test(test_choices),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_shown),
    };

    return RUN(tests);
}
