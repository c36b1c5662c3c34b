/* The routes below /ubik/api/v1. Bodies are read by their handlers, as this door answers 422 where
 * others answer 400. */
#include "doors/ubik/ubik_int.h"

#define ROUTE(m, p, i, h) .method = (m), .path = UBIK_ROOT p, .id = "ubik_" i, .handle = (h)
#define HIDDEN            .flags = (ROUTE_HIDDEN | ROUTE_QUERY)
#define STREAMED          .flags = (ROUTE_HIDDEN | ROUTE_QUERY | ROUTE_QUERY_KEY)
#define BODY              .body_kind = BODY_TEXT, .body_max = BODY_UBIK_MAX
#define FORM              .body_kind = BODY_FORM

// clang-format off
static const struct route routes[] = {
    {ROUTE(HTTP_GET, "/health", "health", handle_health), HIDDEN, .status = 200},
    {ROUTE(HTTP_POST, "/auth/token", "token", handle_token), HIDDEN, BODY, .status = 200},
    {ROUTE(HTTP_GET, "/preferences", "preferences_get", handle_preferences_get), HIDDEN, .status = 200},
    {ROUTE(HTTP_PUT, "/preferences", "preferences_put", handle_preferences_put), HIDDEN, BODY, .status = 200},

    {ROUTE(HTTP_GET, "/tools", "tools", handle_tools), HIDDEN, .status = 200},
    {ROUTE(HTTP_GET, "/tools/{tool}", "tool", handle_tool), HIDDEN, .status = 200},
    {ROUTE(HTTP_POST, "/tools/{tool}/execute", "execute", handle_tool_execute), HIDDEN, BODY, .status = 202},

    {ROUTE(HTTP_GET, "/tool-executions", "executions", handle_executions), HIDDEN, .status = 200},
    {ROUTE(HTTP_GET, "/tool-executions/{execution}", "execution", handle_execution), HIDDEN, .status = 200},
    {ROUTE(HTTP_GET, "/tool-executions/{execution}/stream", "stream", handle_stream), STREAMED, .status = 200},
    {ROUTE(HTTP_POST, "/tool-executions/{execution}/provide-input", "provide_input", handle_provide_input),
     HIDDEN, FORM, .status = 202},
    {ROUTE(HTTP_POST, "/tool-executions/{execution}/stop", "execution_stop", handle_execution_stop), HIDDEN,
     .status = 200},
    {ROUTE(HTTP_GET, "/assets/tools/{tool}/{execution}/{path...}", "asset", handle_asset), STREAMED,
     .status = 200},

    {ROUTE(HTTP_POST, "/documents", "document_post", handle_document_post), HIDDEN, FORM, .status = 200},
    {ROUTE(HTTP_GET, "/documents", "documents", handle_documents), HIDDEN, .status = 200},
    {ROUTE(HTTP_GET, "/documents/{document}", "document", handle_document), HIDDEN, .status = 200},
    {ROUTE(HTTP_DELETE, "/documents/{document}", "document_delete", handle_document_delete), HIDDEN,
     .status = 204},
    {ROUTE(HTTP_POST, "/documents/{document}/reprocess", "document_reprocess", handle_document_reprocess),
     HIDDEN, .status = 200},

    {ROUTE(HTTP_GET, "/sandboxes", "sandboxes", handle_sandboxes), HIDDEN, .status = 200},
    {ROUTE(HTTP_GET, "/sandboxes/{sandbox}", "sandbox", handle_sandbox), HIDDEN, .status = 200},
    {ROUTE(HTTP_POST, "/sandboxes/{sandbox}/extend", "sandbox_extend", handle_sandbox_extend), HIDDEN,
     .status = 200},
    {ROUTE(HTTP_DELETE, "/sandboxes/{sandbox}", "sandbox_delete", handle_sandbox_delete), HIDDEN,
     .status = 204},

    {ROUTE(HTTP_POST, "/agent-sessions", "talk_post", handle_talk_post), HIDDEN, BODY, .status = 201},
    {ROUTE(HTTP_GET, "/agent-sessions", "talks", handle_talks), HIDDEN, .status = 200},
    {ROUTE(HTTP_GET, "/agent-sessions/{session}", "talk", handle_talk), HIDDEN, .status = 200},
    {ROUTE(HTTP_DELETE, "/agent-sessions/{session}", "talk_delete", handle_talk_delete), HIDDEN,
     .status = 204},
    {ROUTE(HTTP_POST, "/agent-sessions/{session}/messages", "talk_say", handle_talk_say), HIDDEN, BODY,
     .status = 202},
    {ROUTE(HTTP_GET, "/agent-sessions/{session}/messages", "talk_messages", handle_talk_messages), HIDDEN,
     .status = 200},
    {ROUTE(HTTP_GET, "/agent-sessions/{session}/stream", "talk_stream", handle_talk_stream), STREAMED,
     .status = 200},
    {ROUTE(HTTP_POST, "/agent-sessions/{session}/stop", "talk_stop", handle_talk_stop), HIDDEN, .status = 200},
    {ROUTE(HTTP_POST, "/agent-sessions/{session}/upload", "talk_upload", handle_talk_upload), HIDDEN, FORM,
     .status = 200},
};
// clang-format on

void ubik_door_init(struct door *ret, struct ubik *u)
{
    *ret = (struct door){.name = "ubik",
                         .routes = routes,
                         .route_count = COUNT(routes),
                         .ctx = u,
                         .error = ubik_error,
                         .identify = ubik_identify,
                         .identify_arg = u};
}
