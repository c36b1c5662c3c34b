/* API keys: made, listed, revoked. */
#include "doors/rest/rest_int.h"

static void on_created(void *arg, const struct key_row *key, const char *secret,
                       const struct err *failed)
{
    if (!failed)
        answer_header(arg, "cache-control", "no-store");
    answer_value(arg, 201, failed ? NULL : render_key(key, secret), failed);
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
    json_t *data = json_array();

    for (size_t i = 0; !failed && i < count; i++)
        json_array_append_new(data, render_key(&keys[i], NULL));
    answer_value(arg, 200, render_list(data, false, NULL), failed);
}

void handle_list_keys(struct request *r)
{
    service_key_list(request_service(r), request_caller(r), on_keys, r);
}

HANDLE_ID(handle_delete_key, service_key_revoke, "key", on_deleted)
