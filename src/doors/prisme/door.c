/* The routes below /prisme, and the shape of errors. */
#include "doors/prisme/prisme_int.h"

/* As Prisme.ai's own services answer. Takes message. */
static json_t *prisme_error(struct request *r, int status, const char *type, const char *param,
                            json_t *message)
{
    return json_pack("{s:s, s:o, s:{s:s?, s:i, s:s}}", "error", type, "message", message, "details",
                     "param", param, "status", status, "requestId", request_caller(r)->request);
}

// clang-format off
static const struct field functions_body[] = {
    {"functions", FIELD_OBJECT, REQUIRED, 0, 0, NULL,
     "Each by its name: code, and language where it is given: python.",
     "{\"hello\": {\"code\": \"return 'Hello ' + name\", \"language\": \"python\"}}"},
    {0},
};

static const struct field run_body[] = {
    {"parameters", FIELD_OBJECT, OPTIONAL, 0, 0, NULL,
     "Each is a variable of the function; all of them are in `parameters`, too.",
     "{\"name\": \"world\"}"},
    {0},
};

static const struct field execute_body[] = {
    {"code", FIELD_TEXT, REQUIRED, 0, EXEC_CODE_MAX, NULL, "A complete Python script.",
     "\"return 6 * 7\""},
    {"files", FIELD_LIST, OPTIONAL, 0, FILES_MAX, "string", "URLs of files to be there.", NULL},
    {"parameters", FIELD_OBJECT, OPTIONAL, 0, 0, NULL, "As those of a function.", NULL},
    {"metadata", FIELD_OBJECT, OPTIONAL, 0, 0, NULL,
     "Of the message that led here; tool_choice is what its user asked for.", NULL},
    {0},
};

static const struct field resolve_body[] = {
    {"approved", FIELD_BOOL, REQUIRED, 0, 0, NULL, "Whether the code may run.", "true"},
    {"reason", FIELD_TEXT, OPTIONAL, 0, TASK_REASON, NULL, "Why; it is kept.", NULL},
    {0},
};

static const struct route routes[] = {
    {.method = HTTP_POST, .path = "/prisme/v2/functions/{workspace}", .id = "prisme_functions_put",
     .flags = ROUTE_HIDDEN, .body_kind = BODY_JSON, .body = functions_body,
     .body_max = FUNCTIONS_BYTES, .status = 200, .handle = handle_functions_put},
    {.method = HTTP_GET, .path = "/prisme/v2/functions/{workspace}", .id = "prisme_functions_get",
     .flags = ROUTE_HIDDEN, .status = 200, .handle = handle_functions_get},
    {.method = HTTP_DELETE, .path = "/prisme/v2/functions/{workspace}",
     .id = "prisme_functions_delete", .flags = ROUTE_HIDDEN, .status = 204,
     .handle = handle_functions_delete},
    {.method = HTTP_POST, .path = "/prisme/v2/functions/{workspace}/run/{function}",
     .id = "prisme_function_run", .flags = ROUTE_HIDDEN, .body_kind = BODY_JSON, .body = run_body,
     .body_max = BODY_PRISME_MAX, .status = 200, .handle = handle_function_run},
    {.method = HTTP_POST, .path = "/prisme/execute_python", .id = "prisme_execute_python",
     .flags = ROUTE_HIDDEN, .body_kind = BODY_JSON, .body = execute_body,
     .body_max = BODY_PRISME_MAX, .status = 200, .handle = handle_execute_python},
    {.method = HTTP_POST, .path = "/prisme/v1/agents/{agent}/tasks/{task}/resolve",
     .id = "prisme_resolve", .flags = ROUTE_HIDDEN, .body_kind = BODY_JSON, .body = resolve_body,
     .status = 200, .handle = handle_resolve},
    {.method = HTTP_GET, .path = "/prisme/v1/agents/{agent}/tasks/{task}", .id = "prisme_task",
     .flags = ROUTE_HIDDEN, .status = 200, .handle = handle_task},
};
// clang-format on

const struct door prisme_door = {.name = "prisme",
                                 .routes = routes,
                                 .route_count = COUNT(routes),
                                 .error = prisme_error,
                                 .identify = prisme_identify,
                                 .prefix = "/prisme",
                                 .drops_nulls = true,
                                 .correlates = true};
