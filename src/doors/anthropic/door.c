/* The room and its door. */
#include "doors/anthropic/messages_int.h"

#include <stdlib.h>

struct anthropic *anthropic_new(const struct anthropic_config *config)
{
    struct anthropic *a = mem_zalloc(sizeof(*a));

    a->config = *config;
    a->desk = desk_new(a);
    return a;
}

void anthropic_drain(struct anthropic *a)
{
    a->draining = true;
    deeds_leave(a);
}

void anthropic_close(struct anthropic *a)
{
    if (!a)
        return;
    desk_close(a->desk);
    deeds_leave(a);
}

void anthropic_free(struct anthropic *a)
{
    if (!a)
        return;
    desk_free(a->desk);
    free(a);
}

json_t *stamp_value(int64_t ms)
{
    char text[TIME_TEXT];

    if (ms == 0)
        return json_null();
    time_print(ms, text);
    return json_string(text);
}

void anthropic_door_init(struct door *ret, struct anthropic *a)
{
    *ret = (struct door){.name = "anthropic",
                         .routes = anthropic_routes,
                         .route_count = anthropic_route_count,
                         .ctx = a,
                         .error = anthropic_error,
                         .prefix = "/anthropic",
                         .id_header = "request-id"};
}
