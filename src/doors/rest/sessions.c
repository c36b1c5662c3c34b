/* Sessions: create, list, get, rename, restart, delete. */
#include "doors/rest/rest_int.h"

/* --- answers --- */

static void on_session(void *arg, const struct session_info *info, const struct err *failed)
{
    answer_value(arg, 200, failed ? NULL : render_session(info), failed);
}

ON_LIST(on_sessions, session_info, render_session)

/* --- create --- */

static void on_created(void *arg, const struct session_info *info, const struct err *failed)
{
    answer_value(arg, failed || info->existed ? 200 : 201, failed ? NULL : render_session(info),
                 failed);
}

static int check_metadata(const json_t *metadata, struct err *e)
{
    if (metadata && json_dumpb(metadata, NULL, 0, JSON_COMPACT) > METADATA_MAX)
        return err_set(e, ERR_LIMIT, "metadata has at most %zu bytes as JSON", METADATA_MAX);
    return 0;
}

static void create(struct request *r, const json_t *body, const struct exec_inputs *g)
{
    const struct session_spec spec = {
        .pool = json_view(json_object_get(body, "pool")),
        .name = json_view(json_object_get(body, "name")),
        .metadata = json_object_get(body, "metadata"),
        .env = g->env,
        .env_count = g->env_count,
        .idle_ms = json_ms(json_object_get(body, "idle_timeout")),
        .lifetime_ms = json_ms(json_object_get(body, "lifetime")),
    };

    service_session_create(request_service(r), request_caller(r), &spec, on_created, r);
}

void handle_create_session(struct request *r)
{
    const json_t *body = request_json(r);
    AUTO(exec_inputs_done) struct exec_inputs g = {0};
    char param[PARAM_MAX] = "metadata";
    struct err e;

    if (check_metadata(json_object_get(body, "metadata"), &e) < 0 ||
        exec_inputs_env(&g, json_object_get(body, "env"), param, &e) < 0)
        answer_error(r, &e, param);
    else
        create(r, body, &g);
}

/* --- the rest: one call each --- */

void handle_list_sessions(struct request *r)
{
    service_session_list(request_service(r), request_caller(r), request_page(r), on_sessions, r);
}

HANDLE_ID(handle_get_session, service_session_get, "session", on_session)

void handle_rename_session(struct request *r)
{
    service_session_rename(request_service(r), request_caller(r), request_path(r, "session"),
                           json_view(json_object_get(request_json(r), "name")), on_session, r);
}

void handle_extend_session(struct request *r)
{
    uint64_t idle_ms = json_ms(json_object_get(request_json(r), "idle_timeout"));

    service_session_extend(request_service(r), request_caller(r), request_path(r, "session"),
                           idle_ms, on_session, r);
}

HANDLE_ID(handle_interrupt_session, service_session_interrupt, "session", on_session)
HANDLE_ID(handle_restart_session, service_session_restart, "session", on_session)
HANDLE_ID(handle_delete_session, service_session_delete, "session", on_deleted)
