/* Settings from a file, the environment and arguments, and who wins. */
#include "cli/cli_int.h"
#include "scratch.h"

static const struct command serve = {.name = "serve", .id = COMMAND_SERVE, .configured = true};

struct desk {
    struct scratch dir;
    struct settings s;
    struct err e;
};

static int open_desk(void **state)
{
    static struct desk d;

    settings_init(&d.s);
    *state = &d;
    return scratch_open(&d.dir);
}

static int close_desk(void **state)
{
    struct desk *d = *state;

    settings_done(&d->s);
    return scratch_close(&d->dir);
}

/* Loads this text as the file, with one more argument or NULL. */
static int load(struct desk *d, const char *text, const char *arg)
{
    char path[256];
    const char *argv[] = {"--config", path, "--state", "/s", arg};

    snprintf(path, sizeof(path), "%s", scratch_put(&d->dir, "retort.ini", str_of(text)));
    settings_done(&d->s);
    settings_init(&d->s);
    d->e = (struct err){0};
    return settings_load(&d->s, &serve, arg ? 5 : 4, argv, &d->e);
}

static void test_who_wins(void **state)
{
    struct desk *d = *state;

    assert_int_equal(load(d, "memory = 100M\n", NULL), 0);
    assert_int_equal(d->s.pools[0].limits.memory_bytes, 100 * MiB);
    setenv("RETORT_MEMORY", "200M", 1);
    assert_int_equal(load(d, "memory = 100M\n", NULL), 0);
    assert_int_equal(d->s.pools[0].limits.memory_bytes, 200 * MiB);
    assert_int_equal(load(d, "memory = 100M\n", "--memory=300M"), 0);
    assert_int_equal(d->s.pools[0].limits.memory_bytes, 300 * MiB);
    assert_int_equal(load(d, "memory = 100M\n[pool a]\nmemory=400M\n[pool b]\n", "--memory=300M"),
                     0);
    assert_int_equal(d->s.pools[0].limits.memory_bytes, 400 * MiB);
    assert_int_equal(d->s.pools[1].limits.memory_bytes, 300 * MiB);
    setenv("RETORT_MEMORY", "much", 1);
    assert_int_equal(load(d, "", NULL), -1);
    assert_string_equal(d->e.text, "RETORT_MEMORY: 'much' is not a size such as 512M or 2G");
    unsetenv("RETORT_MEMORY");
}

static void test_lists_are_replaced(void **state)
{
    struct desk *d = *state;

    assert_int_equal(load(d, "", NULL), 0);
    assert_int_equal(d->s.serve.listen.count, 1);
    assert_string_equal(d->s.serve.listen.item[0], LISTEN_DEFAULT);
    assert_int_equal(load(d, "listen = 1, 2\n", NULL), 0);
    assert_int_equal(d->s.serve.listen.count, 2);
    assert_int_equal(load(d, "listen = 1, 2\n", "--listen=3"), 0);
    assert_int_equal(d->s.serve.listen.count, 1);
    assert_string_equal(d->s.serve.listen.item[0], "3");
}

static void test_pools(void **state)
{
    struct desk *d = *state;

    assert_int_equal(load(d, "", NULL), 0);
    assert_int_equal(d->s.pool_count, 1);
    assert_string_equal(d->s.pools[0].name, "default");
    assert_int_equal(load(d,
                          "idle-timeout = 1h\n"
                          "[pool  web]\n"
                          "  egress = allow-list ; indented is no continuation\n"
                          "  egress-hosts = pypi.org,\n"
                          "    files.pythonhosted.org\n"
                          "[pool empty]\n"
                          "[server]\n"
                          "ready = 0\n",
                          NULL),
                     0);
    assert_int_equal(d->s.pool_count, 2);
    assert_string_equal(d->s.pools[0].name, "web");
    assert_int_equal(d->s.pools[0].egress, EGRESS_ALLOW_LIST);
    assert_string_equal(d->s.pools[0].egress_hosts, "pypi.org, files.pythonhosted.org");
    assert_string_equal(d->s.pools[1].name, "empty");
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(d->s.pools[i].idle_ms, 3600000);
        assert_int_equal(d->s.pools[i].ready, 0);
    }
}

static void test_mistakes(void **state)
{
    static const struct {
        const char *text, *line, *says;
    } rows[] = {
        {"a = 1\n",                              ":1: ",                "there is no setting a"                          },
        {"\nmemry = 1G\n",                       ":2: ",                "there is no setting memry; did you mean memory?"},
        {"idle_timeout = 1\n",                   ":1: ",                "did you mean idle-timeout?"                     },
        {"memory = lots\n",                      ":1: memory: ",        "'lots' is not a size"                           },
        {"\n\nmemory = 1\n",                     ":3: memory: ",        "too little"                                     },
        {"memory = 1G # no\n",                   ":1: memory: ",        "'1G # no' is not a size"                        },
        {"log-format = xml\n",                   ":1: log-format: ",    "'xml' is neither text nor json"                 },
        {"fetch-private = perhaps\n",            ":1: fetch-private: ", "neither yes nor no"                             },
        {"memory = 1G\n[server]\nmemory = 2G\n", ":3: ",                "memory is there already, in line 1"             },
        {"[pool a]\n[pool a]\n",                 ":2: ",                "[pool a] is there already, in line 1"           },
        {"[pool a]\npids = 9\npids = 9\n",       ":3: ",                "pids is there already, in line 2"               },
        {"[pools a]\n",                          ":1: ",                "there is no section [pools a]"                  },
        {"[pool]\n",                             ":1: ",                "there is no section [pool]"                     },
        {"[pool A]\n",                           ":1: ",                "'A' is no name for a pool"                      },
        {"[pool ../x]\n",                        ":1: ",                "'../x' is no name for a pool"                   },
        {"[pool a]\nlisten = 1\n",               ":2: ",                "listen is not a pool's own"                     },
        {"config = /x\n",                        ":1: ",                "config cannot be set in a file"                 },
        {"help = yes\n",                         ":1: ",                "help cannot be set in a file"                   },
        {"memory\n",                             ":1: ",                "neither [section] nor name = value"             },
        {"[pool a]\n\nmemory\n",                 ":3: ",                "neither [section] nor name = value"             },
        {"[pool a\n",                            ":1: ",                "neither [section] nor name = value"             },
        {"= 1\n",                                ":1: ",                "no name before the '='"                         },
        {"description = x\nmemory 2G\n",         ":2: ",                "neither"                                        },
        {"[pool a]\negress = allow-list\n",      "",                    "pool a: egress = allow-list needs egress-hosts" },
        {"[pool a]\negress-hosts = a, b/c\n",    ":2: egress-hosts: ",  "'b/c' is not a host"                            },
        {"fetch-allow = http://a\n",             ":1: fetch-allow: ",   "'http://a' is not a host"                       },
        {"ready = 9\nmax-sessions = 8\n",        "",                    "ready is 9, but max-sessions allows only 8"     },
        {"tls-cert = /x\n",                      "",                    "tls-key is missing"                             },
        {"tls-client-ca = /x\n",                 "",                    "tls-client-ca needs tls-cert and tls-key"       },
        {"listen = nowhere:99\n",                "",                    "'nowhere:99' is no address"                     },
    };
    struct desk *d = *state;

    for (size_t i = 0; i < COUNT(rows); i++) {
        if (load(d, rows[i].text, NULL) == 0)
            fail_msg("accepted: %s", rows[i].text);
        assert_int_equal(d->e.kind, ERR_CALLER);
        assert_has(d->e.text, rows[i].line);
        assert_has(d->e.text, rows[i].says);
        if (*rows[i].line)
            assert_has(d->e.text, "/retort.ini:");
    }
}

static void test_long_and_strange_lines(void **state)
{
    struct desk *d = *state;
    char text[5000];

    memset(text, 'x', sizeof(text));
    memcpy(text, "\ndescription = ", 15);
    text[sizeof(text) - 1] = '\0';
    assert_int_equal(load(d, text, NULL), -1);
    assert_has(d->e.text, ":2: the line is too long");
    assert_int_equal(load(d, "\xef\xbb\xbfmemory = 100M\r\npids = 9\r\n", NULL), 0);
    assert_int_equal(d->s.pool.limits.pids, 9);
    assert_int_equal(load(d, "memory = 100M\nready = 1", NULL), 0); /* no newline at the end */
    assert_int_equal(d->s.pool.ready, 1);
}

/* What is shown can be read again, and gives the same. */
static void test_shown_is_a_file(void **state)
{
    struct desk *d = *state;
    struct buf first, second;

    buf_init(&first, 64 * KiB);
    buf_init(&second, 64 * KiB);
    assert_int_equal(load(d, "idle-timeout = 2h\n[pool a]\nmemory = 1G\n[pool b]\npython=/p\n",
                          "--listen=unix:/x,[::1]:80"),
                     0);
    config_show(&d->s, &first);
    assert_int_equal(buf_put(&first, (struct str){"", 1}), 0);
    assert_has(first.p, "listen             = unix:/x, [::1]:80   ; --listen\n");
    assert_has(first.p, "[pool a]\n");
    assert_int_equal(load(d, first.p, NULL), 0);
    config_show(&d->s, &second);
    assert_int_equal(buf_put(&second, (struct str){"", 1}), 0);
    assert_has(second.p, "listen             = unix:/x, [::1]:80\n");
    assert_string_equal(strstr(first.p, "[pool a]"), strstr(second.p, "[pool a]"));
    buf_done(&first);
    buf_done(&second);
}

static void test_differences(void **state)
{
    static const char *const but[] = {"log-level", NULL};
    struct desk *d = *state;
    struct settings had;
    struct buf b;

    assert_int_equal(load(d, "drain = 5\n[pool a]\n[pool b]\n", NULL), 0);
    had = d->s;
    settings_init(&d->s);
    assert_int_equal(
        load(d, "drain = 6\nlog-level = debug\n[pool a]\n[pool b]\npids = 9\n[pool c]\n", NULL), 0);
    buf_init(&b, KiB);
    config_differences(&had, &d->s, but, &b);
    assert_int_equal(buf_put(&b, (struct str){"", 1}), 0);
    assert_string_equal(b.p, "drain, pool b, pool c");
    buf_done(&b);
    settings_done(&had);
}

static void test_no_file(void **state)
{
    struct desk *d = *state;
    const char *argv[] = {"--state=/s", "--config=/no/such/file"};

    assert_int_equal(settings_load(&d->s, &serve, 2, argv, &d->e), -1);
    assert_has(d->e.text, "cannot read /no/such/file");
    assert_int_equal(d->e.kind, ERR_CALLER);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, open_desk, close_desk)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_who_wins),
        TEST(test_lists_are_replaced),
        TEST(test_pools),
        TEST(test_mistakes),
        TEST(test_long_and_strange_lines),
        TEST(test_shown_is_a_file),
        TEST(test_differences),
        TEST(test_no_file),
    };

    return RUN(tests);
}
