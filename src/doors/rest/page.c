/* A page of a list: the one way in which all of them are answered. */
#include "doors/rest/rest_int.h"

void answer_page(struct request *r, json_t *data, bool more, const struct err *failed)
{
    const json_t *last = json_array_get(data, json_array_size(data) - 1);

    if (failed) {
        json_decref(data);
        answer_error(r, failed, NULL);
        return;
    }
    answer_json(r, 200, render_list(data, more, json_string_value(json_object_get(last, "id"))));
}
