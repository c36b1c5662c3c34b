/* Variables and files that come with a request. */
#include "doors/values/values.h"
#include "unit.h"

#include <stdlib.h>

/* The service's own rule has its own tests; here only that it is asked. */
int space_path_clean(struct str path, char ret[SPACE_PATH_MAX], struct err *e)
{
    if (!str_to_cstr(path, ret, SPACE_PATH_MAX) || strstr(ret, ".."))
        return err_set(e, ERR_CALLER, "the path must not hold '..'");
    return 0;
}

struct trial {
    struct exec_inputs g;
    json_t *body;
    char param[PARAM_MAX];
    struct err e;
};

static int take(struct trial *t, const char *json,
                int (*fn)(struct exec_inputs *, const json_t *, char *, struct err *))
{
    *t = (struct trial){.body = json_loads(json, JSON_ALLOW_NUL | JSON_DECODE_ANY, NULL)};
    assert_non_null(t->body);
    return fn(&t->g, t->body, t->param, &t->e);
}

static void drop(struct trial *t)
{
    exec_inputs_done(&t->g);
    json_decref(t->body);
}

static void refuses(const char *json,
                    int (*fn)(struct exec_inputs *, const json_t *, char *, struct err *),
                    enum err_kind kind, const char *param, const char *says)
{
    struct trial t;

    assert_int_equal(take(&t, json, fn), -1);
    assert_int_equal(t.e.kind, kind);
    assert_string_equal(t.param, param);
    assert_has(t.e.text, says);
    drop(&t);
}

static void test_env(void **state)
{
    struct trial t;

    (void)state;
    assert_int_equal(take(&t, "{\"_a1\": \"x\", \"B\": \"\"}", exec_inputs_env), 0);
    assert_int_equal(t.g.env_count, 2);
    assert_str(t.g.env[0].name, "_a1");
    assert_str(t.g.env[0].value, "x");
    assert_str(t.g.env[1].name, "B");
    assert_str(t.g.env[1].value, "");
    drop(&t);
}

static void test_nothing_is_given(void **state)
{
    struct exec_inputs g = {0};
    char param[PARAM_MAX];
    struct err e;

    (void)state;
    assert_int_equal(exec_inputs_env(&g, NULL, param, &e), 0);
    assert_int_equal(exec_inputs_files(&g, NULL, param, &e), 0);
    assert_int_equal(g.env_count + g.file_count, 0);
    exec_inputs_done(&g);
}

static void test_env_is_refused(void **state)
{
    (void)state;
    refuses("{\"1a\": \"\"}", exec_inputs_env, ERR_CALLER, "env.1a", "digit");
    refuses("{\"\": \"\"}", exec_inputs_env, ERR_CALLER, "env.", "name");
    refuses("{\"a=b\": \"\"}", exec_inputs_env, ERR_CALLER, "env.a=b", "name");
    refuses("{\"\u00e9\": \"\"}", exec_inputs_env, ERR_CALLER, "env.\u00e9", "name");
    refuses("{\"a\": 1}", exec_inputs_env, ERR_CALLER, "env.a", "string");
    refuses("{\"a\": \"x\\u0000y\"}", exec_inputs_env, ERR_CALLER, "env.a", "NUL");
}

/* {"a0": "", "a1": "", ...}, or one value of n bytes. */
static char *many(size_t members, size_t bytes)
{
    json_t *v = json_object();
    char *value = mem_zalloc(bytes + 1), *text;

    memset(value, 'x', bytes);
    for (size_t i = 0; i < members; i++) {
        char name[16];
        snprintf(name, sizeof(name), "a%zu", i);
        json_object_set_new(v, name, json_string(value));
    }
    text = json_dumps(v, 0);
    json_decref(v);
    free(value);
    return text;
}

static void test_env_has_limits(void **state)
{
    AUTO_FREE char *most = many(ENV_COUNT_MAX, 0), *longest = many(1, ENV_VALUE_MAX);
    AUTO_FREE char *more = many(ENV_COUNT_MAX + 1, 0), *longer = many(1, ENV_VALUE_MAX + 1);
    struct trial t;

    (void)state;
    assert_int_equal(take(&t, most, exec_inputs_env), 0);
    drop(&t);
    assert_int_equal(take(&t, longest, exec_inputs_env), 0);
    drop(&t);
    refuses(more, exec_inputs_env, ERR_LIMIT, "env", "64");
    refuses(longer, exec_inputs_env, ERR_LIMIT, "env.a0", "8192");
}

static void test_files(void **state)
{
    struct trial t;

    (void)state;
    assert_int_equal(take(&t,
                          "[{\"id\": \"file_1\"}, {\"url\": \"data:,x\", \"path\": \"a/b\"},"
                          " {\"path\": \"c\", \"content\": \"\"},"
                          " {\"path\": \"d\", \"content_base64\": \"AP8=\"}]",
                          exec_inputs_files),
                     0);
    assert_int_equal(t.g.file_count, 4);
    assert_str(t.g.file[0].file_id, "file_1");
    assert_int_equal(t.g.file[0].path.n, 0);
    assert_false(t.g.file[0].has_content);
    assert_str(t.g.file[1].url, "data:,x");
    assert_str(t.g.file[1].path, "a/b");
    assert_true(t.g.file[2].has_content);
    assert_str(t.g.file[2].content, "");
    assert_true(t.g.file[3].has_content);
    assert_str(t.g.file[3].content, "\0\xff");
    drop(&t);
}

static void test_files_are_refused(void **state)
{
    (void)state;
    refuses("[{\"path\": \"a\"}]", exec_inputs_files, ERR_CALLER, "files[0]", "exactly one");
    refuses("[{\"id\": \"file_1\", \"url\": \"data:,\"}]", exec_inputs_files, ERR_CALLER,
            "files[0]", "exactly one");
    refuses("[{\"id\": \"file_1\"}, {\"content\": \"x\"}]", exec_inputs_files, ERR_CALLER,
            "files[1].path", "path");
    refuses("[{\"id\": \"file_1\", \"path\": \"../x\"}]", exec_inputs_files, ERR_CALLER,
            "files[0].path", "..");
    refuses("[{\"path\": \"a\", \"content_base64\": \"AP8\"}]", exec_inputs_files, ERR_CALLER,
            "files[0].content_base64", "base64");
    refuses("[7]", exec_inputs_files, ERR_CALLER, "files[0]", "exactly one");
}

static void test_files_have_a_limit(void **state)
{
    json_t *list = json_array();
    AUTO_FREE char *text = NULL;

    (void)state;
    for (size_t i = 0; i <= INPUT_COUNT_MAX; i++)
        json_array_append_new(list, json_pack("{s:s}", "id", "file_1"));
    text = json_dumps(list, 0);
    json_decref(list);
    refuses(text, exec_inputs_files, ERR_LIMIT, "files", "64");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_env),
        cmocka_unit_test(test_nothing_is_given),
        cmocka_unit_test(test_env_is_refused),
        cmocka_unit_test(test_env_has_limits),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_files_are_refused),
        cmocka_unit_test(test_files_have_a_limit),
    };
    return RUN(tests);
}
