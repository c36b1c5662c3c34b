#include "egress/egress_int.h"
#include "unit.h"

#include <arpa/inet.h>

static bool allows(const char *hosts, const char *host, uint16_t port)
{
    struct err e;
    struct egress_policy *p = egress_policy_new(hosts, false, &e);
    struct host h;
    bool yes;

    assert_non_null(p);
    yes = host_parse(str_of(host), &h) && policy_allows(p, &h, port);
    egress_policy_free(p);
    return yes;
}

static void test_hosts(void **state)
{
    static const char list[] = "pypi.org, *.pythonhosted.org, example.com:8443, 10.0.0.5";

    (void)state;
    assert_true(allows(list, "pypi.org", 443));
    assert_true(allows(list, "PyPI.org.", 80));
    assert_false(allows(list, "pypi.org", 22));
    assert_true(allows(list, "files.pythonhosted.org", 443));
    assert_false(allows(list, "pythonhosted.org", 443));
    assert_true(allows(list, "example.com", 8443));
    assert_false(allows(list, "example.com", 443));
    assert_true(allows(list, "10.0.0.5", 80));
    assert_true(allows(list, "[::ffff:10.0.0.5]", 80));
    assert_false(allows(list, "10.0.0.6", 80));
    assert_false(allows(list, "evil.org", 443));
    assert_false(allows(list, "pypi.org\r\n", 443));
    assert_false(allows(list, "", 443));
    assert_false(allows("", "pypi.org", 443));
    assert_true(allows("*", "pypi.org", 443));
    assert_false(allows("*", "167772165", 443));
}

static bool may_dial(const char *hosts, bool private, const char *asked, const char *address)
{
    struct err e;
    struct egress_policy *p = egress_policy_new(hosts, private, &e);
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(443)};
    struct host h;
    bool yes;

    assert_true(host_parse(str_of(asked), &h));
    assert_int_equal(inet_pton(AF_INET, address, &a.sin_addr), 1);
    yes = policy_may_dial(p, &h, (struct sockaddr *)&a);
    egress_policy_free(p);
    return yes;
}

static void test_addresses(void **state)
{
    (void)state;
    assert_true(may_dial("a.com", false, "a.com", "8.8.8.8"));
    assert_false(may_dial("a.com", false, "a.com", "10.0.0.5"));
    assert_true(may_dial("a.com", true, "a.com", "10.0.0.5"));
    assert_false(may_dial("*", false, "10.0.0.5", "10.0.0.5"));
    assert_true(may_dial("10.0.0.5", false, "10.0.0.5", "10.0.0.5"));
    assert_false(may_dial("10.0.0.5, a.com", false, "a.com", "10.0.0.5"));
}

static void test_wrong_words(void **state)
{
    struct err e;

    (void)state;
    assert_null(egress_policy_new("pypi.org, http://x", false, &e));
    assert_int_equal(e.kind, ERR_CALLER);
    assert_has(e.text, "'http://x'");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hosts),
        cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_wrong_words),
    };

    return RUN(tests);
}
