/* Sessions: made, looked at, woken, stopped, forgotten. */
#include "doors/rest/rest_int.h"

/* --- answers --- */

static void on_session(void *arg, const struct session_info *info, const struct err *failed)
{
    struct request *r = arg;

    if (failed)
        answer_error(r, failed, NULL);
    else
        answer_json(r, 200, render_session(info));
}

static void on_sessions(void *arg, const struct session_info *infos, size_t count, bool more,
                        const struct err *failed)
{
    json_t *data = json_array();

    for (size_t i = 0; !failed && i < count; i++)
        json_array_append_new(data, render_session(&infos[i]));
    answer_page(arg, data, more, failed);
}

/* --- create --- */

static void on_created(void *arg, const struct session_info *info, const struct err *failed)
{
    struct request *r = arg;

    if (failed)
        answer_error(r, failed, NULL);
    else
        answer_json(r, info->existed ? 200 : 201, render_session(info));
}

static int check_metadata(const json_t *metadata, struct err *e)
{
    if (metadata && json_dumpb(metadata, NULL, 0, JSON_COMPACT) > METADATA_MAX)
        return err_set(e, ERR_LIMIT, "metadata has at most %zu bytes as JSON", METADATA_MAX);
    return 0;
}

static void create(struct request *r, const json_t *body, const struct given *g)
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
    AUTO(given_done) struct given g = {0};
    char param[PARAM_MAX] = "metadata";
    struct err e;

    if (check_metadata(json_object_get(body, "metadata"), &e) < 0 ||
        given_env(&g, json_object_get(body, "env"), param, &e) < 0)
        answer_error(r, &e, param);
    else
        create(r, body, &g);
}

/* --- the rest: one call each --- */

void handle_list_sessions(struct request *r)
{
    service_session_list(request_service(r), request_caller(r), request_page(r), on_sessions, r);
}

void handle_get_session(struct request *r)
{
    service_session_get(request_service(r), request_caller(r), request_path(r, "session"),
                        on_session, r);
}

void handle_extend_session(struct request *r)
{
    uint64_t idle_ms = json_ms(json_object_get(request_json(r), "idle_timeout"));

    service_session_extend(request_service(r), request_caller(r), request_path(r, "session"),
                           idle_ms, on_session, r);
}

void handle_interrupt_session(struct request *r)
{
    service_session_interrupt(request_service(r), request_caller(r), request_path(r, "session"),
                              on_session, r);
}

void handle_restart_session(struct request *r)
{
    service_session_restart(request_service(r), request_caller(r), request_path(r, "session"),
                            on_session, r);
}

void handle_delete_session(struct request *r)
{
    service_session_delete(request_service(r), request_caller(r), request_path(r, "session"),
                           on_deleted, r);
}
