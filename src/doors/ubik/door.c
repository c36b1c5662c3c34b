/* The routes below /ubik/api/v1. Handlers check their bodies themselves, because this door answers
 * 422 where other doors answer 400. */
#include "doors/ubik/ubik_int.h"

/* keyed: a key may be in the query, because a browser requests this without headers. */
#define ROW(m, p, h, body, keyed, s)                                                               \
    {                                                                                              \
        .method = HTTP_##m, .path = UBIK_ROOT p, .id = "ubik_" #h,                                 \
        .flags = ROUTE_HIDDEN | ROUTE_QUERY | ((keyed) ? ROUTE_QUERY_KEY : 0),                     \
        .body_kind = (body), .body_max = (body) == BODY_TEXT ? BODY_UBIK_MAX : 0, .status = (s),   \
        .handle = (h)                                                                              \
    }
#define GET(p, h)     ROW(GET, p, h, BODY_NONE, false, 200)
#define STREAM(p, h)  ROW(GET, p, h, BODY_NONE, true, 200)
#define POST(p, h, s) ROW(POST, p, h, BODY_TEXT, false, s)
#define FORM(p, h, s) ROW(POST, p, h, BODY_FORM, false, s)
#define NUDGE(p, h)   ROW(POST, p, h, BODY_NONE, false, 200)
#define DELETE(p, h)  ROW(DELETE, p, h, BODY_NONE, false, 204)

// clang-format off
static const struct route routes[] = {
    GET("/health", handle_health),
    POST("/auth/token", handle_token, 200),
    GET("/preferences", handle_preferences_get),
    ROW(PUT, "/preferences", handle_preferences_put, BODY_TEXT, false, 200),

    GET("/tools", handle_tools),
    GET("/tools/{tool}", handle_tool),
    POST("/tools/{tool}/execute", handle_tool_execute, 202),

    GET("/tool-executions", handle_executions),
    GET("/tool-executions/{execution}", handle_execution),
    STREAM("/tool-executions/{execution}/stream", handle_stream),
    FORM("/tool-executions/{execution}/provide-input", handle_provide_input, 202),
    NUDGE("/tool-executions/{execution}/stop", handle_execution_stop),
    STREAM("/assets/tools/{tool}/{execution}/{path...}", handle_asset),

    FORM("/documents", handle_document_post, 200),
    GET("/documents", handle_documents),
    GET("/documents/{document}", handle_document),
    DELETE("/documents/{document}", handle_document_delete),
    NUDGE("/documents/{document}/reprocess", handle_document_reprocess),

    GET("/sandboxes", handle_sandboxes),
    GET("/sandboxes/{sandbox}", handle_sandbox),
    NUDGE("/sandboxes/{sandbox}/extend", handle_sandbox_extend),
    DELETE("/sandboxes/{sandbox}", handle_sandbox_delete),

    POST("/agent-sessions", handle_agent_session_post, 201),
    GET("/agent-sessions", handle_agent_sessions),
    GET("/agent-sessions/{session}", handle_agent_session),
    DELETE("/agent-sessions/{session}", handle_agent_session_delete),
    POST("/agent-sessions/{session}/messages", handle_agent_session_say, 202),
    GET("/agent-sessions/{session}/messages", handle_agent_session_messages),
    STREAM("/agent-sessions/{session}/stream", handle_agent_session_stream),
    NUDGE("/agent-sessions/{session}/stop", handle_agent_session_stop),
    FORM("/agent-sessions/{session}/upload", handle_agent_session_upload, 200),
};
// clang-format on

const struct door ubik_door = {.name = "ubik",
                               .routes = routes,
                               .route_count = COUNT(routes),
                               .error = ubik_error,
                               .identify = ubik_identify};
