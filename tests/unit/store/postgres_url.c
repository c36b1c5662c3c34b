/* How to connect to PostgreSQL: what the URL says, and what is added to it. */
#include "store/postgres_int.h"
#include "unit.h"

#include <stdlib.h>

static char *value_of(char **keywords, char **values, const char *keyword)
{
    for (size_t i = 0; keywords[i]; i++)
        if (strcmp(keywords[i], keyword) == 0)
            return values[i];
    return NULL;
}

static void assert_mode(const char *url, const char *mode)
{
    struct err e = {0};
    char **keywords = NULL, **values = NULL;
    const char *found;

    if (postgres_params(url, "secret", &keywords, &values, &e) < 0)
        fail_msg("%s: %s", url, e.text);
    found = value_of(keywords, values, "sslmode");
    if (!found != !mode || (mode && strcmp(found, mode) != 0))
        fail_msg("%s: sslmode is %s", url, found ? found : "not set");
    assert_string_equal(value_of(keywords, values, "password"), "secret");
    assert_string_equal(value_of(keywords, values, "gssencmode"), "disable");
    postgres_params_free(keywords);
    postgres_params_free(values);
}

/* Over a network the certificate is verified unless somebody has said otherwise. */
static void test_tls(void **state)
{
    (void)state;
    unsetenv("PGSSLMODE");
    unsetenv("PGHOST");
    assert_mode("postgresql://db.example/x", "verify-full");
    assert_mode("postgresql://10.0.0.1:5433/x", "verify-full");
    assert_mode("postgresql://[2001:db8::1]/x", "verify-full");
    assert_mode("postgresql://127.evil.example/x", "verify-full");
    assert_mode("postgresql://localhost,db.example/x", "verify-full");
    assert_mode("postgresql:///x?host=db.example", "verify-full");
    assert_mode("postgresql://db.example/x?sslmode=require", "require");
    assert_mode("postgresql:///x", NULL);
    assert_mode("postgresql://localhost/x", NULL);
    assert_mode("postgresql://127.0.0.2/x", NULL);
    assert_mode("postgresql://[::1]/x", NULL);
    assert_mode("postgresql:///x?host=/run/postgresql", NULL);
    setenv("PGHOST", "db.example", 1);
    assert_mode("postgresql:///x", "verify-full");
    setenv("PGSSLMODE", "verify-ca", 1);
    assert_mode("postgresql:///x", NULL); /* libpq reads it there */
}

static void test_refused(void **state)
{
    static const struct {
        const char *url, *text;
    } bad[] = {
        {"postgresql://a:b@localhost/x",           "password"     },
        {"postgres://localhost/x?password=b",      "password"     },
        {"postgresql://localhost/x?sslpassword=b", "password"     },
        {"mysql://localhost/x",                    "postgresql://"},
        {"host=localhost",                         "postgresql://"},
        {"",                                       "postgresql://"},
        {"postgresql://localhost/x?nonsense=1",    "nonsense"     },
    };

    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct err e = {0};
        assert_int_equal(store_url_check(bad[i].url, &e), -1);
        assert_int_equal(e.kind, ERR_CALLER);
        assert_has(e.text, bad[i].text);
    }
    assert_int_equal(store_url_check("postgres://localhost/x", &(struct err){0}), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tls),
        cmocka_unit_test(test_refused),
    };

    return RUN(tests);
}
