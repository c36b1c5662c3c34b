/* What the service has, as JSON. */
#include "doors/rest/rest_int.h"
#include "unit.h"

#include <stdlib.h>

const char *session_state_name(enum session_state s)
{
    return s == SESSION_ASLEEP ? "asleep" : "idle";
}

const char *approval_state_name(int s)
{
    return s == APPROVAL_PENDING ? "pending" : "used";
}

const char *http_type_of(const struct err *e)
{
    return e->kind == ERR_BUSY ? "busy" : e->kind == ERR_CALLER ? "invalid_request" : "internal";
}

/* Takes the value. */
static void expect(json_t *v, const char *want)
{
    AUTO_FREE char *got = json_dumps(v, JSON_COMPACT | JSON_REAL_PRECISION(12));

    json_decref(v);
    assert_string_equal(got, want);
}

static char pool_name[] = "default", tenant[] = "acme", session[] = "sess_1";

static void test_small_values(void **state)
{
    json_t *v = json_array();

    (void)state;
    json_array_append_new(v, time_json(0));
    json_array_append_new(v, time_json(1769860800123));
    json_array_append_new(v, render_seconds(60000));
    json_array_append_new(v, render_seconds(1500));
    json_array_append_new(v, render_text(NULL));
    json_array_append_new(v, render_text("a\xff"));
    expect(v, "[null,\"2026-01-31T12:00:00.123Z\",60,1.5,null,\"a\xef\xbf\xbd\"]");
}

static void test_lists(void **state)
{
    (void)state;
    expect(render_list(json_array(), false, NULL),
           "{\"data\":[],\"has_more\":false,\"last_id\":null}");
    expect(render_list(json_pack("[i]", 1), true, "x_1"),
           "{\"data\":[1],\"has_more\":true,\"last_id\":\"x_1\"}");
}

static void test_session(void **state)
{
    char metadata[] = "{\"user\":\"ada\"}";
    const struct session_row row = {
        .id = "sess_1",
        .pool = pool_name,
        .metadata = metadata,
        .created_ms = 1000,
        .used_ms = 2000,
        .idle_ms = 600000,
        .lifetime_ms = 1500,
        .expires_ms = 3000,
        .executions = 7,
    };
    const struct session_info info = {.row = &row, .state = SESSION_ASLEEP, .queued = 2};

    (void)state;
    expect(render_session(&info),
           "{\"id\":\"sess_1\",\"object\":\"session\",\"pool\":\"default\",\"name\":null,"
           "\"state\":\"asleep\",\"created_at\":\"1970-01-01T00:00:01.000Z\","
           "\"last_used_at\":\"1970-01-01T00:00:02.000Z\",\"sleeps_at\":null,"
           "\"expires_at\":\"1970-01-01T00:00:03.000Z\",\"idle_timeout\":600,\"lifetime\":1.5,"
           "\"executions\":7,\"queued\":2,\"metadata\":{\"user\":\"ada\"},\"memory_bytes\":null,"
           "\"note\":null}");
}

static struct exec_row exec_row(void)
{
    static char kind[] = "cell", status[] = "ok", code[] = "6*7", door[] = "rest", req[] = "req_1";

    return (struct exec_row){
        .id = "exec_1",
        .tenant = tenant,
        .session = session,
        .pool = pool_name,
        .request = req,
        .door = door,
        .kind = kind,
        .code = code,
        .status = status,
        .created_ms = 1000,
    };
}

static void test_execution(void **state)
{
    struct exec_row row = exec_row();
    json_t *events = json_loads(
        "[{\"type\":\"stdout\",\"text\":\"a\"},{\"type\":\"stderr\",\"text\":\"b\"},"
        "{\"type\":\"stdout\",\"text\":\"c\"},"
        "{\"type\":\"display\",\"data\":{\"text/plain\":\"no\"}},"
        "{\"type\":\"result\",\"data\":{\"text/plain\":\"42\"}},"
        "{\"type\":\"file\",\"path\":\"a b/\u00e9\",\"change\":\"created\",\"size\":3,"
        "\"mime\":\"x/y\"},"
        "{\"type\":\"file\",\"path\":\"gone\",\"change\":\"deleted\",\"size\":0,\"mime\":\"x/y\"},"
        "{\"type\":\"file\",\"path\":\"big\",\"change\":\"created\",\"size\":9,\"mime\":\"x/y\","
        "\"too_large\":true},"
        "{\"type\":\"file\",\"path\":\"\ufffd\",\"change\":\"created\",\"size\":1,"
        "\"mime\":\"x/y\"}]",
        0, NULL);
    json_t *outcome = json_pack("{s:s}", "status", "ok");
    const struct exec_info info = {.row = &row, .events = events, .outcome = outcome};
    json_t *v = render_exec(&info);

    (void)state;
    assert_string_equal(json_string_value(json_object_get(v, "stdout")), "ac");
    assert_string_equal(json_string_value(json_object_get(v, "stderr")), "b");
    assert_string_equal(json_string_value(json_object_get(v, "result")), "42");
    assert_ptr_equal(json_object_get(v, "events"), events);
    expect(json_incref(json_object_get(v, "files")),
           "[{\"path\":\"a b/\u00e9\",\"change\":\"created\",\"size\":3,\"mime\":\"x/y\","
           "\"url\":\"/v1/sessions/sess_1/files/a%20b/%C3%A9\"},"
           "{\"path\":\"gone\",\"change\":\"deleted\",\"size\":0,\"mime\":\"x/y\",\"url\":null},"
           "{\"path\":\"big\",\"change\":\"created\",\"size\":9,\"mime\":\"x/y\",\"url\":null},"
           "{\"path\":\"\ufffd\",\"change\":\"created\",\"size\":1,\"mime\":\"x/y\","
           "\"url\":null}]");
    json_decref(v);
    expect(render_exec_brief(&info),
           "{\"id\":\"exec_1\",\"object\":\"execution\",\"session\":\"sess_1\","
           "\"pool\":\"default\",\"kind\":\"cell\",\"status\":\"ok\","
           "\"created_at\":\"1970-01-01T00:00:01.000Z\",\"started_at\":null,\"ended_at\":null,"
           "\"outcome\":{\"status\":\"ok\"},\"key\":null,\"door\":\"rest\"}");
    json_decref(events);
    json_decref(outcome);
}

static void test_audit_tells_who_asked(void **state)
{
    struct exec_row row = exec_row();
    const struct exec_info info = {.row = &row};

    (void)state;
    expect(render_audit(&info),
           "{\"id\":\"exec_1\",\"object\":\"execution\",\"session\":\"sess_1\","
           "\"pool\":\"default\",\"kind\":\"cell\",\"status\":\"ok\","
           "\"created_at\":\"1970-01-01T00:00:01.000Z\",\"started_at\":null,\"ended_at\":null,"
           "\"outcome\":null,\"key\":null,\"door\":\"rest\",\"code\":\"6*7\",\"files\":[],"
           "\"events\":[],\"tenant\":\"acme\",\"request_id\":\"req_1\",\"approval\":null}");
}

static void test_output_is_joined(void **state)
{
    json_t *events = json_loads("[{\"type\":\"stdout\",\"text\":\"a\\u0000\"},"
                                "{\"type\":\"status\",\"text\":\"no\"},"
                                "{\"type\":\"stderr\",\"text\":\"b\"}]",
                                JSON_ALLOW_NUL, NULL);
    struct buf both, one;

    (void)state;
    buf_init(&both, 64);
    buf_init(&one, 64);
    events_output(events, IN(EVENT_STDOUT) | IN(EVENT_STDERR), &both);
    events_output(events, IN(EVENT_STDERR), &one);
    assert_str(buf_str(&both), "a\0b");
    assert_str(buf_str(&one), "b");
    buf_done(&both);
    buf_done(&one);
    json_decref(events);
}

static void test_stream_events_have_a_url(void **state)
{
    struct event ev = {.kind = EVENT_FILE};

    (void)state;
    ev.file.path = STR("\xff?#%");
    ev.file.mime = "x/y";
    expect(render_event(&ev, "sess_1"),
           "{\"type\":\"file\",\"path\":\"\ufffd?#%\",\"change\":\"created\",\"size\":0,"
           "\"mime\":\"x/y\",\"url\":\"/v1/sessions/sess_1/files/%FF%3F%23%25\"}");
    ev.file.change = FILE_DELETED;
    expect(render_event(&ev, "sess_1"),
           "{\"type\":\"file\",\"path\":\"\ufffd?#%\",\"change\":\"deleted\",\"size\":0,"
           "\"mime\":\"x/y\",\"url\":null}");
}

static void test_stream_lines_are_ascii(void **state)
{
    json_t *v = json_pack("[s]", "\u00e9\n\U0001f600");
    AUTO_FREE char *line = json_line(v);

    (void)state;
    assert_string_equal(line, "[\"\\u00E9\\n\\uD83D\\uDE00\"]");
    json_decref(v);
}

static void test_pool(void **state)
{
    char preload[] = "pandas, numpy", hosts[] = "pypi.org,*.example.com:443";
    struct service_pool pool = {
        .name = pool_name,
        .preload = preload,
        .ready = 2,
        .max_sessions = 9,
        .idle_ms = 1000,
        .lifetime_ms = 2000,
        .egress = EGRESS_ALLOW_LIST,
        .egress_hosts = hosts,
    };
    struct pool_info info = {
        .pool = &pool,
        .python = "",
        .learned = {"sympy", "sklearn.svm"},
        .learned_count = 2,
        .why = "still starting"
    };

    (void)state;
    limits_default(&pool.limits);
    pool.limits.cpu_percent = 150;
    expect(render_pool(&info),
           "{\"name\":\"default\",\"description\":null,\"python\":\"\",\"packages\":{},"
           "\"preload\":[\"pandas\",\"numpy\"],\"learned\":[\"sympy\",\"sklearn.svm\"],"
           "\"limits\":{\"wall_s\":60,\"cpu_s\":null,"
           "\"cpus\":1.5,\"memory_bytes\":2147483648,\"processes\":128,\"disk_bytes\":1073741824,"
           "\"tmp_bytes\":268435456,\"open_files\":1024,\"output_bytes\":16777216,"
           "\"artifact_count\":200,\"artifact_bytes\":268435456},"
           "\"egress\":{\"mode\":\"allow-list\",\"hosts\":[\"pypi.org\",\"*.example.com:443\"]},"
           "\"ready\":2,\"parked\":0,\"sessions\":0,\"max_sessions\":9,\"idle_timeout\":1,"
           "\"lifetime\":2,\"up\":false,\"problem\":\"still starting\"}");
}

static void test_a_secret_is_told_once(void **state)
{
    char name[] = "chat";
    const struct key_row row = {
        .id = "key_1", .tenant = tenant, .name = name, .hint = "rt_ab", .created_ms = 1000};
    json_t *v = render_key(&row, "rt_abcdef");

    (void)state;
    assert_string_equal(json_string_value(json_object_get(v, "secret")), "rt_abcdef");
    json_decref(v);
    expect(render_key(&row, NULL),
           "{\"id\":\"key_1\",\"tenant\":\"acme\",\"name\":\"chat\",\"hint\":\"rt_ab\","
           "\"admin\":false,\"approver\":false,\"pools\":null,\"doors\":null,"
           "\"read_only\":false,\"expires_at\":null,\"created_at\":\"1970-01-01T00:00:01.000Z\","
           "\"last_"
           "used_at\":null,"
           "\"revoked_at\":null}");
}

static void test_our_own_faults_are_not_told(void **state)
{
    struct err e;

    (void)state;
    err_set(&e, ERR_BUSY, "too many");
    expect(render_error(&e, "req_1"), "{\"type\":\"busy\",\"message\":\"too many\",\"param\":null,"
                                      "\"request_id\":\"req_1\"}");
    err_set(&e, ERR_HOST, "disk /srv/secret is full");
    expect(render_error(&e, "req_1"),
           "{\"type\":\"internal\",\"message\":\"something went wrong on our side\","
           "\"param\":null,\"request_id\":\"req_1\"}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small_values),
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_session),
        cmocka_unit_test(test_execution),
        cmocka_unit_test(test_audit_tells_who_asked),
        cmocka_unit_test(test_output_is_joined),
        cmocka_unit_test(test_stream_events_have_a_url),
        cmocka_unit_test(test_stream_lines_are_ascii),
        cmocka_unit_test(test_pool),
        cmocka_unit_test(test_a_secret_is_told_once),
        cmocka_unit_test(test_our_own_faults_are_not_told),
    };
    return RUN(tests);
}
