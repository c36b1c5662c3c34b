#include "fetch/fetch.h"
#include "unit.h"

#include <arpa/inet.h>
#include <sys/un.h>

static bool is_public(const char *text)
{
    struct sockaddr_in in4 = {.sin_family = AF_INET};
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6};

    if (inet_pton(AF_INET, text, &in4.sin_addr) == 1)
        return address_is_public((struct sockaddr *)&in4);
    if (inet_pton(AF_INET6, text, &in6.sin6_addr) != 1)
        fail_msg("'%s' is not an address", text);
    return address_is_public((struct sockaddr *)&in6);
}

/* The first and the last address of each network, and its neighbours on both sides. */
static void test_edges(void **state)
{
    static const struct {
        const char *before, *first, *last, *after;
    } rows[] = {
        {NULL,                           "0.0.0.0",       "0.255.255.255",   "1.0.0.0"      },
        {"9.255.255.255",                "10.0.0.0",      "10.255.255.255",  "11.0.0.0"     },
        {"100.63.255.255",               "100.64.0.0",    "100.127.255.255", "100.128.0.0"  },
        {"126.255.255.255",              "127.0.0.0",     "127.255.255.255", "128.0.0.0"    },
        {"168.63.129.15",                "168.63.129.16", "168.63.129.16",   "168.63.129.17"},
        {"169.253.255.255",              "169.254.0.0",   "169.254.255.255", "169.255.0.0"  },
        {"172.15.255.255",               "172.16.0.0",    "172.31.255.255",  "172.32.0.0"   },
        {"191.255.255.255",              "192.0.0.0",     "192.0.0.255",     "192.0.1.0"    },
        {"192.0.1.255",                  "192.0.2.0",     "192.0.2.255",     "192.0.3.0"    },
        {"192.88.98.255",                "192.88.99.0",   "192.88.99.255",   "192.88.100.0" },
        {"192.167.255.255",              "192.168.0.0",   "192.168.255.255", "192.169.0.0"  },
        {"198.17.255.255",               "198.18.0.0",    "198.19.255.255",  "198.20.0.0"   },
        {"198.51.99.255",                "198.51.100.0",  "198.51.100.255",  "198.51.101.0" },
        {"203.0.112.255",                "203.0.113.0",   "203.0.113.255",   "203.0.114.0"  },
        {"223.255.255.255",              "224.0.0.0",     "255.255.255.255", NULL           },
        {NULL,                           "::",            "1fff:ffff::",     "2000::"       },
        {"2000:ffff:ffff:ffff::",        "2001::",        "2001:1ff:ffff::", "2001:200::"   },
        {"2001:db7:ffff:ffff::",         "2001:db8::",    "2001:db8:ffff::", "2001:db9::"   },
        {"3ffe:ffff:ffff:ffff::",        "3fff::",        "3fff:fff:ffff::", "3fff:1000::"  },
        {"3fff:ffff:ffff:ffff:ffff::ff", "4000::",        "5fff::",          NULL           },
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        if (rows[i].before && !is_public(rows[i].before))
            fail_msg("%s is public", rows[i].before);
        if (is_public(rows[i].first))
            fail_msg("%s is not public", rows[i].first);
        if (is_public(rows[i].last))
            fail_msg("%s is not public", rows[i].last);
        if (rows[i].after && !is_public(rows[i].after))
            fail_msg("%s is public", rows[i].after);
    }
}

static void test_refused(void **state)
{
    static const char *const rows[] = {
        "::1",
        "::127.0.0.1",
        "::8.8.8.8",
        "::ffff:0:8.8.8.8",
        "100::1",
        "64:ff9b:1::",
        "64:ff9b:1::808:808",
        "2001:0:808:808::1",
        "fc00::1",
        "fd00:ec2::254",
        "fe80::1",
        "fec0::1",
        "ff02::1",
        "5f00::1",
        "169.254.169.254",
        "ffff::",
        "e000::1",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++)
        if (is_public(rows[i]))
            fail_msg("%s is not public", rows[i]);
}

static void test_judged_by_what_is_inside(void **state)
{
    (void)state;
    assert_true(is_public("::ffff:8.8.8.8"));
    assert_false(is_public("::ffff:10.0.0.1"));
    assert_false(is_public("::ffff:127.0.0.1"));
    assert_true(is_public("64:ff9b::8.8.8.8"));
    assert_false(is_public("64:ff9b::169.254.169.254"));
    assert_true(is_public("2002:808:808::1"));
    assert_false(is_public("2002:7f00:1::1"));
    assert_false(is_public("2002:a00:1::"));
}

static void test_public(void **state)
{
    (void)state;
    assert_true(is_public("8.8.8.8"));
    assert_true(is_public("1.1.1.1"));
    assert_true(is_public("2606:4700:4700::1111"));
    assert_true(is_public("2a00:1450::1"));
}

static void test_other_families(void **state)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX};

    (void)state;
    assert_false(address_is_public((struct sockaddr *)&un));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_edges),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_judged_by_what_is_inside),
        cmocka_unit_test(test_public),
        cmocka_unit_test(test_other_families),
    };

    return RUN(tests);
}
