/*
 * The routes below /anthropic. anthropic-version and anthropic-beta are not looked at:
 * what each of them once switched on is always there, and what a client does not know it
 * leaves alone. Queries are not checked for the same reason.
 */
#include "doors/anthropic/messages_int.h"

#define ANY (ROUTE_HIDDEN | ROUTE_QUERY)

// clang-format off
const struct route anthropic_routes[] = {
    {.method = HTTP_POST, .path = "/anthropic/v1/messages", .id = "anthropic_messages",
     .flags = ANY, .body_kind = BODY_BYTES, .body_max = MESSAGES_BODY_MAX, .status = 200,
     .handle = handle_messages},
    {.method = HTTP_POST, .path = "/anthropic/v1/messages/count_tokens",
     .id = "anthropic_count_tokens", .flags = ANY, .body_kind = BODY_BYTES,
     .body_max = MESSAGES_BODY_MAX, .status = 200, .handle = handle_count_tokens},

    {.method = HTTP_POST, .path = "/anthropic/v1/files", .id = "anthropic_file_upload",
     .flags = ANY, .body_kind = BODY_FORM, .status = 200, .handle = handle_file_upload},
    {.method = HTTP_GET, .path = "/anthropic/v1/files", .id = "anthropic_files", .flags = ANY,
     .status = 200, .handle = handle_files},
    {.method = HTTP_GET, .path = "/anthropic/v1/files/{file}", .id = "anthropic_file",
     .flags = ANY, .status = 200, .handle = handle_file},
    {.method = HTTP_GET, .path = "/anthropic/v1/files/{file}/content",
     .id = "anthropic_file_content", .flags = ANY, .status = 200, .handle = handle_file_content},
    {.method = HTTP_DELETE, .path = "/anthropic/v1/files/{file}", .id = "anthropic_file_delete",
     .flags = ANY, .status = 200, .handle = handle_file_delete},

    {.method = HTTP_GET, .path = "/anthropic/v1/containers", .id = "anthropic_containers",
     .flags = ANY, .status = 200, .handle = handle_containers},
    {.method = HTTP_GET, .path = "/anthropic/v1/containers/{container}",
     .id = "anthropic_container", .flags = ANY, .status = 200, .handle = handle_container},
    {.method = HTTP_DELETE, .path = "/anthropic/v1/containers/{container}",
     .id = "anthropic_container_delete", .flags = ANY, .status = 200,
     .handle = handle_container_delete},

    {.method = HTTP_GET, .path = "/anthropic/v1/models", .id = "anthropic_models", .flags = ANY,
     .status = 200, .handle = handle_models},
    {.method = HTTP_GET, .path = "/anthropic/v1/models/{model}", .id = "anthropic_model",
     .flags = ANY, .status = 200, .handle = handle_model},
};
// clang-format on
const size_t anthropic_route_count = COUNT(anthropic_routes);
