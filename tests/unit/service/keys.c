/* Where a secret becomes a tenant. */
#include "service/service_int.h"
#include "unit.h"

#include <stdlib.h>

enum { KEYS = 3 };

struct fixture {
    struct service sv;
    char secret[KEYS][KEY_SECRET_MAX];
};

static void init(struct fixture *f, size_t count)
{
    static const char *const tenants[KEYS] = {"alice", "bob", "carol"};

    *f = (struct fixture){0};
    f->sv.keys = mem_zalloc(KEYS * sizeof(*f->sv.keys));
    for (size_t i = 0; i < count; i++) {
        key_make(&f->sv.keys[i], f->secret[i], tenants[i], "", i == 0);
        f->sv.keys[i].used_ms = time_now_ms(); /* so that nothing is written */
    }
    f->sv.key_count = count;
}

static void done(struct fixture *f)
{
    keys_free(f->sv.keys, f->sv.key_count);
}

static void expect_refused(struct fixture *f, struct str secret, bool local)
{
    struct caller c = {.tenant = "left over", .key = "left over", .admin = true};
    uint64_t before = f->sv.counts.refused_auth;

    assert_false(service_authorise(&f->sv, secret, local, &c));
    assert_string_equal(c.tenant, "");
    assert_string_equal(c.key, "");
    assert_false(c.admin);
    assert_int_equal(f->sv.counts.refused_auth, before + 1);
}

static void test_no_keys(void **state)
{
    struct fixture f;
    struct caller c = {0};

    (void)state;
    init(&f, 0);
    assert_false(service_has_keys(&f.sv));
    assert_true(service_authorise(&f.sv, STR(""), true, &c));
    assert_string_equal(c.tenant, "local");
    assert_string_equal(c.key, "");
    assert_true(c.admin);
    assert_true(service_authorise(&f.sv, STR("anything"), true, &c)); /* clients insist on one */
    expect_refused(&f, STR(""), false);
    expect_refused(&f, STR("anything"), false);
    done(&f);
}

static void test_each_key_is_its_tenant(void **state)
{
    struct fixture f;

    (void)state;
    init(&f, KEYS);
    assert_true(service_has_keys(&f.sv));
    for (size_t i = 0; i < KEYS; i++) {
        struct caller c = {0};
        assert_true(service_authorise(&f.sv, str_of(f.secret[i]), false, &c));
        assert_string_equal(c.tenant, f.sv.keys[i].tenant);
        assert_string_equal(c.key, f.sv.keys[i].id);
        assert_int_equal(c.admin, i == 0);
    }
    done(&f);
}

static void test_others_are_refused(void **state)
{
    struct fixture f;
    struct str good;

    (void)state;
    init(&f, KEYS);
    good = str_of(f.secret[1]);
    expect_refused(&f, STR(""), true);
    expect_refused(&f, STR("rt_nothing"), true);
    expect_refused(&f, (struct str){good.p, good.n - 1}, true);
    f.secret[1][good.n - 1] ^= 1;
    expect_refused(&f, good, true);
    done(&f);
}

static void test_revoked(void **state)
{
    struct fixture f;

    (void)state;
    init(&f, 1);
    f.sv.keys[0].revoked_ms = 1;
    expect_refused(&f, str_of(f.secret[0]), true);
    expect_refused(&f, STR(""), true); /* there has been one: none may be left out */
    assert_true(service_has_keys(&f.sv));
    done(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_keys),
        cmocka_unit_test(test_each_key_is_its_tenant),
        cmocka_unit_test(test_others_are_refused),
        cmocka_unit_test(test_revoked),
    };

    return RUN(tests);
}
