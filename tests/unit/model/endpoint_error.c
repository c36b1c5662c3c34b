/* What endpoints say when they give no reply. */
#include "golden.h"
#include "model/model_int.h"

static void test_words(void **state)
{
    static const struct {
        const char *body, *text;
    } rows[] = {
        {"{\"error\":{\"message\":\"m\",\"type\":\"t\"}}",                    "m"                       },
        {"{\"type\":\"error\",\"error\":{\"type\":\"t\",\"message\":\"m\"}}", "m"                       },
        {"{\"error\":\"m\"}",                                                 "m"                       },
        {"{\"message\":\"m\"}",                                               "m"                       },
        {"{\"detail\":\"m\"}",                                                "m"                       },
        {"{\"detail\":[{\"loc\":[\"body\",\"tools\",0],\"msg\":\"no\"}]}",    "body.tools: no"          },
        {"{\"error\":null,\"detail\":\"m\"}",                                 "m"                       },
        {"{\"error\":{\"error\":{\"error\":{\"message\":\"deep\"}}}}",        ""                        },
        {"{}",                                                                ""                        },
        {"<html>bad gateway</html>",                                          "<html>bad gateway</html>"},
        {"",                                                                  ""                        },
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct endpoint_error p;

        endpoint_error_of_body(&p, str_of(rows[i].body));
        assert_string_equal(p.text, rows[i].text);
        endpoint_error_done(&p);
    }
}

static void test_status_of_an_error_in_a_stream(void **state)
{
    static const struct {
        const char *error;
        int status;
    } rows[] = {
        {"{'type':'overloaded_error','message':''}",     529},
        {"{'type':'rate_limit_error','message':''}",     429},
        {"{'type':'authentication_error','message':''}", 401},
        {"{'type':'invalid_request_error'}",             400},
        {"{'type':'api_error'}",                         500},
        {"{'code':503}",                                 503},
        {"{'code':'rate_limit_exceeded'}",               429},
        {"{'code':7}",                                   500},
        {"'text'",                                       500},
        {"null",                                         500},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        json_t *error = json_of(rows[i].error);
        struct endpoint_error p;

        endpoint_error_of_json(&p, error);
        assert_int_equal(p.status, rows[i].status);
        endpoint_error_done(&p);
        json_decref(error);
    }
}

static void says(const char *what, const char *key, int status, const char *expected)
{
    struct model_failure f = {.trouble = MODEL_DENIED, .status = status};

    failure_say(&f, "fast", key, what);
    assert_string_equal(f.err.text, expected);
    assert_int_equal(f.err.kind, ERR_DENIED);
}

static void test_the_sentence(void **state)
{
    (void)state;
    says("no", NULL, 400, "the model fast answered 400: no");
    says("", NULL, 400, "the model fast answered 400");
    says("did not answer in time", NULL, 0, "the model fast did not answer in time");
    says("  a\r\n\r\n b\x01\xff"
         "c\xe2\x80\xa8"
         "d\\e ",
         NULL, 400, "the model fast answered 400: a b c d\\e ");
}

static void test_a_key_is_not_told(void **state)
{
    (void)state;
    says("key sk-1 and SK-1sk-1.", "sk-1", 401, "the model fast answered 401: key *** and ******.");
    says("aXb", "X", 401, "the model fast answered 401: a*b");
    says("x", "", 401, "the model fast answered 401: x");
}

/* Where it would be cut in two by what is left out, too. */
static void test_a_key_at_the_end_of_what_is_shown(void **state)
{
    (void)state;
    for (size_t n = 250; n < 320; n++) {
        struct model_failure f = {.trouble = MODEL_BUSY};
        char text[400];

        memset(text, '.', n);
        snprintf(text + n, sizeof(text) - n, "sk-0123456789-%s", "and more, and more");
        failure_say(&f, "m", "sk-0123456789-", text);
        assert_null(strstr(f.err.text, "sk"));
        assert_null(strstr(f.err.text, "0123"));
    }
}

static void test_when_to_come_again(void **state)
{
    struct model_failure f = {.trouble = MODEL_BUSY, .status = 429, .retry_ms = 1500};

    (void)state;
    failure_say(&f, "m", NULL, "x");
    assert_int_equal(f.err.kind, ERR_BUSY);
    assert_int_equal(f.err.retry_s, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_status_of_an_error_in_a_stream),
        cmocka_unit_test(test_the_sentence),
        cmocka_unit_test(test_a_key_is_not_told),
        cmocka_unit_test(test_a_key_at_the_end_of_what_is_shown),
        cmocka_unit_test(test_when_to_come_again),
    };

    return RUN(tests);
}
