/*
 * The door: its state and its routes.
 *
 * The header anthropic-version is ignored, and anthropic-beta switches on nothing here: everything
 * is always on, and clients ignore what they do not know. What it names beyond this door is for the
 * model's endpoint. Unknown queries are ignored, too.
 */
#include "doors/anthropic/messages_int.h"

#include <stdlib.h>

#define ROUTE(method_, path_, id_, handle_, ...)                                                   \
    {                                                                                              \
        .method = HTTP_##method_, .path = "/anthropic/v1/" path_, .id = "anthropic_" id_,          \
        .flags = ROUTE_HIDDEN | ROUTE_QUERY | ROUTE_NUL, .status = 200, .handle = handle_,         \
        __VA_ARGS__                                                                                \
    }
#define MESSAGES .body_kind = BODY_BYTES, .body_max = MESSAGES_BODY_MAX
#define BATCH    .body_kind = BODY_BYTES, .body_max = BATCH_BODY_MAX

// clang-format off
static const struct route routes[] = {
    ROUTE(POST,   "messages",               "messages",         handle_messages,     MESSAGES),
    ROUTE(POST,   "messages/count_tokens",  "count_tokens",     handle_count_tokens, MESSAGES),
    ROUTE(POST,   "messages/batches",       "batch_create",     handle_batch_create, BATCH),
    ROUTE(GET,    "messages/batches",       "batches",          handle_batches),
    ROUTE(GET,    "messages/batches/{batch}", "batch",          handle_message_batch),
    ROUTE(DELETE, "messages/batches/{batch}", "batch_delete",   handle_batch_delete),
    ROUTE(POST,   "messages/batches/{batch}/cancel", "batch_cancel", handle_batch_cancel),
    ROUTE(GET,    "messages/batches/{batch}/results", "batch_results", handle_batch_results),
    ROUTE(POST,   "files",                  "file_upload",      handle_file_upload,  .body_kind = BODY_FORM),
    ROUTE(GET,    "files",                  "files",            handle_files),
    ROUTE(GET,    "files/{file}",           "file",             handle_file),
    ROUTE(GET,    "files/{file}/content",   "file_content",     handle_file_content),
    ROUTE(DELETE, "files/{file}",           "file_delete",      handle_file_delete),
    ROUTE(GET,    "containers",             "containers",       handle_containers),
    ROUTE(GET,    "containers/{container}", "container",        handle_container),
    ROUTE(DELETE, "containers/{container}", "container_delete", handle_container_delete),
    ROUTE(POST,   "skills",                 "skill_create",     handle_skill_create, .body_kind = BODY_FORM),
    ROUTE(GET,    "skills",                 "skills",           handle_skills),
    ROUTE(GET,    "skills/{skill}",         "skill",            handle_skill),
    ROUTE(DELETE, "skills/{skill}",         "skill_delete",     handle_skill_delete),
    ROUTE(POST,   "skills/{skill}/versions", "skill_version_create", handle_skill_version_create,
          .body_kind = BODY_FORM),
    ROUTE(GET,    "skills/{skill}/versions", "skill_versions",  handle_skill_versions),
    ROUTE(GET,    "skills/{skill}/versions/{version}", "skill_version", handle_skill_version),
    ROUTE(GET,    "skills/{skill}/versions/{version}/content", "skill_content", handle_skill_content),
    ROUTE(DELETE, "skills/{skill}/versions/{version}", "skill_version_delete", handle_skill_version_delete),
    ROUTE(GET,    "models",                 "models",           handle_models),
    ROUTE(GET,    "models/{model}",         "model",            handle_model),
};
// clang-format on

struct anthropic *anthropic_new(const struct anthropic_config *config)
{
    struct anthropic *a = mem_zalloc(sizeof(*a));

    a->config = *config;
    a->registry = turn_registry_new(a);
    a->promised = json_object();
    a->batches = batches_new(a);
    return a;
}

void anthropic_drain(void *room)
{
    struct anthropic *a = room;

    a->draining = true;
    tool_calls_leave(a);
}

void anthropic_close(void *room)
{
    struct anthropic *a = room;

    turn_registry_close(a->registry);
    batches_close(a->batches);
    tool_calls_leave(a);
}

void anthropic_free(void *room)
{
    struct anthropic *a = room;

    turn_registry_free(a->registry);
    batches_free(a->batches);
    json_decref(a->promised);
    free(a);
}

const struct door anthropic_door = {.name = "anthropic",
                                    .routes = routes,
                                    .route_count = COUNT(routes),
                                    .error = anthropic_error,
                                    .prefix = "/anthropic",
                                    .id_header = "request-id"};
