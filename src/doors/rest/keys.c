/* API keys: create, list, revoke. */
#include "doors/rest/rest_int.h"

#include <stdio.h>

static void on_created(void *arg, const struct key_row *key, const char *secret,
                       const struct err *failed)
{
    if (!failed)
        answer_header(arg, "cache-control", "no-store");
    answer_value(arg, 201, failed ? NULL : render_key(key, secret), failed);
}

struct names {
    char text[4096];
};

/* A list of names, comma-separated. One that holds a comma is no name. */
static struct str names_of(const json_t *body, const char *field, struct names *ret)
{
    const json_t *list = json_object_get(body, field);
    json_t *one;
    size_t i, n = 0;

    json_array_foreach(list, i, one) {
        struct str name = json_view(one);
        bool is_name = name.n && !memchr(name.p, ',', name.n);
        n += (size_t)snprintf(ret->text + n, sizeof(ret->text) - n, "%s%.*s", i ? "," : "",
                              is_name ? (int)name.n : 1, is_name ? name.p : "?");
        if (n >= sizeof(ret->text) - 256)
            break;
    }
    return (struct str){ret->text, n};
}

void handle_create_key(struct request *r)
{
    const json_t *body = request_json(r);

    struct names pools = {0}, doors = {0};
    const struct key_spec spec = {
        .tenant = json_view(json_object_get(body, "tenant")),
        .name = json_view(json_object_get(body, "name")),
        .admin = json_is_true(json_object_get(body, "admin")),
        .approver = json_is_true(json_object_get(body, "approver")),
        .limits = {.pools = names_of(body, "pools", &pools),
                   .doors = names_of(body, "doors", &doors),
                   .read_only = json_is_true(json_object_get(body, "read_only")),
                   .expires_ms =
                       (uint64_t)json_integer_value(json_object_get(body, "expires_in")) * 1000},
    };

    service_key_create(request_service(r), request_caller(r), &spec, on_created, r);
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
