/* Addresses as people write them, and the sockets made of them. */
#include "cli/listen.h"
#include "scratch.h"

#include <netinet/in.h>

static void test_addresses(void **state)
{
    static const struct {
        const char *text;
        const char *shown; /* NULL: refused */
        bool local;
    } rows[] = {
        {"8000",                  "http://127.0.0.1:8000",       true },
        {"127.0.0.1:8000",        "http://127.0.0.1:8000",       true },
        {"127.9.9.9:1",           "http://127.9.9.9:1",          true },
        {"localhost:8000",        "http://127.0.0.1:8000",       true },
        {"0.0.0.0:80",            "http://0.0.0.0:80",           false},
        {"192.0.2.1:65535",       "http://192.0.2.1:65535",      false},
        {"[::1]:8000",            "http://[::1]:8000",           true },
        {"[::]:8000",             "http://[::]:8000",            false},
        {"[::ffff:127.0.0.1]:1",  "http://[::ffff:127.0.0.1]:1", true },
        {"[::ffff:192.0.2.1]:1",  "http://[::ffff:192.0.2.1]:1", false},
        {"unix:/run/x.sock",      "unix:/run/x.sock",            true },
        {"",                      NULL,                          false},
        {":8000",                 NULL,                          false},
        {"127.0.0.1",             NULL,                          false},
        {"127.0.0.1:",            NULL,                          false},
        {"127.0.0.1:65536",       NULL,                          false},
        {"127.0.0.1:99999999999", NULL,                          false},
        {"127.0.0.1:8x",          NULL,                          false},
        {"127.0.0.1:-1",          NULL,                          false},
        {"300.0.0.1:1",           NULL,                          false},
        {"::1:8000",              NULL,                          false},
        {"[::1]",                 NULL,                          false},
        {"[]:80",                 NULL,                          false},
        {"example.com:80",        NULL,                          false},
        {"unix:",                 NULL,                          false},
        {"unix:relative",         NULL,                          false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct listener l = {.fd = -1};
        char shown[ADDRESS_SHOWN];
        struct err e;
        int rc = address_parse(rows[i].text, &l.address, &e);
        if ((rc == 0) != (rows[i].shown != NULL))
            fail_msg("'%s' gives %d", rows[i].text, rc);
        if (rc < 0)
            continue;
        listener_show(&l, false, shown);
        assert_string_equal(shown, rows[i].shown);
        assert_int_equal(address_is_local(&l.address), rows[i].local);
    }
}

static void test_long_unix_path(void **state)
{
    char text[160] = "unix:/";
    struct address a;
    struct err e;

    (void)state;
    memset(text + 6, 'x', 120);
    assert_int_equal(address_parse(text, &a, &e), -1);
    assert_has(e.text, "at most");
}

static int open_dir(void **state)
{
    static struct scratch d;

    *state = &d;
    return scratch_open(&d);
}

static int close_dir(void **state)
{
    return scratch_close(*state);
}

static int open_at(struct listeners *ls, char *address, struct err *e)
{
    struct settings s = {
        .serve.listen = {&address, 1},
          .serve.socket_mode = 0640
    };

    return listeners_open(ls, &s, e);
}

/* What a dead server left is removed, what a living one uses is not, and what is no socket stays.
 */
static void test_unix_socket(void **state)
{
    struct scratch *d = *state;
    struct listeners first, second;
    char address[64];
    struct stat st;
    struct err e;

    snprintf(address, sizeof(address), "unix:%s/s", d->path);
    assert_int_equal(open_at(&first, address, &e), 0);
    assert_int_equal(fstatat(d->fd, "s", &st, 0), 0);
    assert_true(S_ISSOCK(st.st_mode));
    assert_int_equal(st.st_mode & 0777, 0640);
    assert_int_equal(open_at(&second, address, &e), -1);
    assert_has(e.text, "another server listens on");
    listeners_done(&second);
    assert_int_equal(fstatat(d->fd, "s", &st, 0), 0);

    fd_closep(&first.item[0].lock); /* as if it had been killed: the socket stays behind */
    listeners_done(&first);
    assert_int_equal(fstatat(d->fd, "s", &st, 0), 0);
    assert_int_equal(open_at(&second, address, &e), 0);
    listeners_done(&second);
    assert_int_equal(fstatat(d->fd, "s", &st, 0), -1);

    scratch_put(d, "s", STR("mine"));
    assert_int_equal(open_at(&second, address, &e), -1);
    assert_has(e.text, "is no socket");
    listeners_done(&second);
    scratch_expect(d, "s", STR("mine"));
}

static void test_port_is_known(void **state)
{
    struct listeners ls;
    char address[] = "127.0.0.1:0", shown[ADDRESS_SHOWN];
    struct err e;

    (void)state;
    assert_int_equal(open_at(&ls, address, &e), 0);
    listener_show(&ls.item[0], true, shown);
    assert_has(shown, "https://127.0.0.1:");
    assert_string_not_equal(shown, "https://127.0.0.1:0");
    listeners_done(&ls);
}

/* Handed over by a service manager: only what is meant for us, and only listening sockets. */
static void test_activation(void **state)
{
    char pid[16];

    (void)state;
    snprintf(pid, sizeof(pid), "%d", (int)getpid());
    setenv("LISTEN_PID", "1", 1);
    setenv("LISTEN_FDS", "2", 1);
    assert_int_equal(activation_count(), 0);
    setenv("LISTEN_PID", pid, 1);
    setenv("LISTEN_FDS", "2", 1);
    assert_int_equal(activation_count(), 2);
    assert_null(getenv("LISTEN_FDS"));
    assert_int_equal(activation_count(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_long_unix_path),
        cmocka_unit_test_setup_teardown(test_unix_socket, open_dir, close_dir),
        cmocka_unit_test(test_port_is_known),
        cmocka_unit_test(test_activation),
    };

    return RUN(tests);
}
