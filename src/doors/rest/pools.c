/* Pools: the list, with packages and limits. */
#include "doors/rest/rest_int.h"

void handle_list_pools(struct request *r)
{
    struct service *sv = request_service(r);
    json_t *data = json_array();

    for (size_t i = 0; i < service_pool_count(sv); i++) {
        struct pool_info info;
        service_pool_get(sv, i, &info);
        if (!service_sees_pool(sv, request_caller(r), info.pool->name))
            continue;
        json_array_append_new(data, render_pool(&info));
    }
    answer_json(r, 200, render_list(data, false, NULL));
}

void handle_get_pool(struct request *r)
{
    struct service *sv = request_service(r);
    struct str name = request_path(r, "pool");

    for (size_t i = 0; i < service_pool_count(sv); i++) {
        struct pool_info info;
        service_pool_get(sv, i, &info);
        if (str_is(name, info.pool->name) &&
            service_sees_pool(sv, request_caller(r), info.pool->name)) {
            answer_json(r, 200, render_pool(&info));
            return;
        }
    }
    answer_fail(r, 404, "not_found", "pool", "there is no such pool");
}
