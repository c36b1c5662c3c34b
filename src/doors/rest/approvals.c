/* Approvals: listed, looked at, decided. */
#include "doors/rest/rest_int.h"

static void on_list(void *arg, const struct approval_row *rows, size_t count, bool more,
                    const struct err *failed)
{
    json_t *data = json_array();

    for (size_t i = 0; !failed && i < count; i++)
        json_array_append_new(data, render_approval(&rows[i]));
    answer_page(arg, data, more, failed);
}

void handle_list_approvals(struct request *r)
{
    struct str state = request_query(r, "state");

    service_approval_list(request_service(r), request_caller(r),
                          state.p ? approval_state_find(state) : -1, request_page(r), on_list, r);
}

static void on_one(void *arg, const struct approval_info *info, const struct err *failed)
{
    struct request *r = arg;

    if (failed)
        answer_error(r, failed, NULL);
    else
        answer_json(r, 200, render_approval(info->row));
}

void handle_get_approval(struct request *r)
{
    service_approval_get(request_service(r), request_caller(r), request_path(r, "approval"), on_one,
                         r);
}

void handle_decide_approval(struct request *r)
{
    const json_t *body = request_json(r);

    service_approval_decide(request_service(r), request_caller(r), request_path(r, "approval"),
                            str_is(json_view(json_object_get(body, "decision")), "approve"),
                            json_view(json_object_get(body, "reason")), on_one, r);
}
