#include "fetch/fetch.h"
#include "unit.h"

#include <arpa/inet.h>

static bool has(const char *words, const char *host, uint16_t port, bool web_only)
{
    struct err e;
    struct host_list *l = host_list_new(words, &e);
    struct host h;
    bool found;

    assert_non_null(l);
    if (web_only)
        host_list_set_web_only(l);
    found = host_parse(str_of(host), &h) && host_list_has(l, &h, port);
    host_list_free(l);
    return found;
}

static void test_names(void **state)
{
    struct host h;

    (void)state;
    assert_true(host_parse(STR("Files.Example.COM."), &h));
    assert_false(h.is_address);
    assert_string_equal(h.name, "files.example.com");
    assert_true(host_parse(STR("a_b-c.x1"), &h));
    assert_true(host_parse(STR("localhost"), &h));
}

static void test_addresses(void **state)
{
    struct host h;

    (void)state;
    assert_true(host_parse(STR("10.0.0.1"), &h));
    assert_true(h.is_address && IN6_IS_ADDR_V4MAPPED(&h.address) && !*h.name);
    assert_true(host_parse(STR("[::1]"), &h));
    assert_true(h.is_address && IN6_IS_ADDR_LOOPBACK(&h.address));
    assert_true(host_parse(STR("fd00::1"), &h) && h.is_address);
}

static void test_neither(void **state)
{
    static const char *const rows[] = {
        "",      ".",     "a..b",      ".a",    "a b",        "a/b",        "a@b",
        "a%2eb", "127.1", "0x7f.1",    "1.2.3", "2130706433", "[a]",        "[1.2.3.4]",
        "[::1",  "::1]",  "1.2.3.4.5", "a.0x1", "a.1",        "fe80::1%lo", "\xc3\xa4.de",
    };
    char label[80] = {0}, name[300] = {0};
    struct host h;

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++)
        if (host_parse(str_of(rows[i]), &h))
            fail_msg("'%s' is no host", rows[i]);
    assert_false(host_parse((struct str){"a\0b", 3}, &h));
    memset(label, 'a', 63);
    assert_true(host_parse(str_of(label), &h));
    label[63] = 'a';
    assert_false(host_parse(str_of(label), &h));
    for (size_t i = 0; i < 254; i++)
        name[i] = i % 2 ? '.' : 'a';
    name[253] = '\0';
    assert_true(host_parse(str_of(name), &h));
    memcpy(name + 253, ".a", 2);
    assert_false(host_parse(str_of(name), &h));
}

static void test_ports(void **state)
{
    static const char *const bad[] = {
        "",     ":80",  "a:",        "a:0",    "a:65536",
        "a:8x", "a:+8", "[::1]x:80", "[::1]:", "a:99999999999999999999"};
    struct str host;
    uint16_t port;

    (void)state;
    assert_true(host_port_split(STR("a.b:8080"), &host, &port));
    assert_str(host, "a.b");
    assert_int_equal(port, 8080);
    assert_true(host_port_split(STR("[::1]:65535"), &host, &port));
    assert_str(host, "[::1]");
    assert_int_equal(port, 65535);
    assert_true(host_port_split(STR("[::1]"), &host, &port) && port == 0 && host.n == 5);
    assert_true(host_port_split(STR("fd00::1"), &host, &port) && port == 0 && host.n == 7);
    assert_true(host_port_split(STR("a"), &host, &port) && port == 0);
    for (size_t i = 0; i < COUNT(bad); i++)
        if (host_port_split(str_of(bad[i]), &host, &port))
            fail_msg("'%s' is no host and port", bad[i]);
}

static void test_list(void **state)
{
    (void)state;
    assert_true(has("a.com, b.com", "B.com.", 80, false));
    assert_true(has("a.com", "a.com", 9999, false));
    assert_false(has("a.com", "a.com", 9999, true));
    assert_true(has("a.com", "a.com", 443, true));
    assert_true(has("a.com:9999", "a.com", 9999, true));
    assert_false(has("a.com:9999", "a.com", 80, false));
    assert_false(has("a.com", "x.a.com", 80, false));
    assert_true(has("*.a.com", "y.x.a.com", 80, false));
    assert_false(has("*.a.com", "a.com", 80, false));
    assert_false(has("*.a.com", "xa.com", 80, false));
    assert_true(has("*", "anything.org", 80, true));
    assert_true(has("*", "10.0.0.1", 80, true));
    assert_false(has("*", "anything.org", 22, true));
    assert_false(has("", "a.com", 80, false));
    assert_true(has("10.0.0.0/8", "10.255.0.1", 80, false));
    assert_false(has("10.0.0.0/9", "10.128.0.1", 80, false));
    assert_true(has("fd00::/8", "[fdff::1]", 80, false));
    assert_true(has("0.0.0.0/0", "8.8.8.8", 80, false));
    assert_false(has("0.0.0.0/0", "::1", 80, false));
    assert_true(has("[::1]:80", "::1", 80, false));
    /* A name that an address could be taken for is not below anything. */
    assert_false(has("*.0.0.1.example", "127.0.0.1", 80, false));
}

static void test_list_of_addresses(void **state)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(80)};
    struct err e;
    struct host_list *l = host_list_new("*, a.com, 10.0.0.0/8, 127.0.0.1:81", &e);

    (void)state;
    inet_pton(AF_INET, "10.1.2.3", &a.sin_addr);
    assert_true(host_list_has_address(l, (struct sockaddr *)&a));
    /* "*" is about hosts that were asked for, not about addresses. */
    inet_pton(AF_INET, "11.1.2.3", &a.sin_addr);
    assert_false(host_list_has_address(l, (struct sockaddr *)&a));
    inet_pton(AF_INET, "127.0.0.1", &a.sin_addr);
    assert_false(host_list_has_address(l, (struct sockaddr *)&a));
    a.sin_port = htons(81);
    assert_true(host_list_has_address(l, (struct sockaddr *)&a));
    host_list_free(l);
}

static void test_wrong_words(void **state)
{
    static const char *const rows[] = {
        "10.0.0.1/8", "10.0.0.0/33", "::/129",     "10.0.0.0/",     "a.com/8",
        "a b,c:d",    "*.",          "*.*",        "*.10.0.0.1",    "*a.com",
        "a.*.com",    "a..b",        "http://a.b", "10.0.0.0/8:80", "1.2.3",
    };
    struct err e;

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        if (host_list_new(rows[i], &e))
            fail_msg("'%s' is no list", rows[i]);
        assert_int_equal(e.kind, ERR_CALLER);
    }
    assert_null(host_list_new("a.com, b..c, d.com", &e));
    assert_has(e.text, "'b..c' is not a host");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),       cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_neither),     cmocka_unit_test(test_ports),
        cmocka_unit_test(test_list),        cmocka_unit_test(test_list_of_addresses),
        cmocka_unit_test(test_wrong_words),
    };

    return RUN(tests);
}
