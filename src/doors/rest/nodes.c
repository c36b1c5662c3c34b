/* The nodes that share the store with this one. */
#include "doors/rest/rest_int.h"

static json_t *node_value(const struct node_row *n)
{
    json_t *room = n->room ? json_loads(n->room, 0, NULL) : NULL;

    return json_pack("{s:s, s:s, s:s, s:I, s:f, s:o, s:I}", "id", n->id, "name", n->name, "url",
                     n->url, "tenants", (json_int_t)n->homes, "lease_left",
                     (double)n->left_ms / 1000, "room", room ? room : json_object(), "lent",
                     (json_int_t)n->lent);
}

void handle_list_nodes(struct request *r)
{
    const char *self;
    size_t count;
    const struct node_row *rows = service_nodes(request_service(r), &count, &self);
    json_t *data = json_array();

    for (size_t i = 0; i < count; i++)
        json_array_append_new(data, node_value(&rows[i]));
    answer_value(r, 200, render_list(data, false, NULL), NULL);
}
