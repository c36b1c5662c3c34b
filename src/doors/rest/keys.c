/* API keys: made, listed, revoked. */
#include "doors/rest/rest_int.h"

static void on_created(void *arg, const struct key_row *key, const char *secret,
                       const struct err *failed)
{
    struct request *r = arg;

    if (failed) {
        answer_error(r, failed, NULL);
        return;
    }
    answer_header(r, "cache-control", "no-store");
    answer_json(r, 201, render_key(key, secret));
}

void handle_create_key(struct request *r)
{
    const json_t *body = request_json(r);

    service_key_create(
        request_service(r), request_caller(r), json_view(json_object_get(body, "tenant")),
        json_view(json_object_get(body, "name")), json_is_true(json_object_get(body, "admin")),
        json_is_true(json_object_get(body, "approver")), on_created, r);
}

static void on_keys(void *arg, const struct key_row *keys, size_t count, const struct err *failed)
{
    struct request *r = arg;
    json_t *data;

    if (failed) {
        answer_error(r, failed, NULL);
        return;
    }
    data = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(data, render_key(&keys[i], NULL));
    answer_json(r, 200, render_list(data, false, NULL));
}

void handle_list_keys(struct request *r)
{
    service_key_list(request_service(r), request_caller(r), on_keys, r);
}

void handle_delete_key(struct request *r)
{
    service_key_revoke(request_service(r), request_caller(r), request_path(r, "key"), on_deleted,
                       r);
}
