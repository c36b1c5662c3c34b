/* Callbacks of the service that answer a request: with one value, a page of a list, or no content.
 */
#include "doors/rest/rest_int.h"

void answer_value(struct request *r, int status, json_t *value, const struct err *failed)
{
    if (!failed)
        return answer_json(r, status, value);
    json_decref(value);
    answer_error(r, failed, NULL);
}

void answer_page(struct request *r, json_t *data, bool more, const struct err *failed)
{
    const json_t *last = json_array_get(data, json_array_size(data) - 1);

    answer_value(r, 200, render_list(data, more, json_string_value(json_object_get(last, "id"))),
                 failed);
}

void on_deleted(void *arg, const struct err *failed)
{
    if (failed)
        answer_error(arg, failed, NULL);
    else
        answer_empty(arg, 204);
}
