/* Approvals: list, get, approve or decline. */
#include "doors/rest/rest_int.h"

ON_LIST(on_list, approval_row, render_approval)

void handle_list_approvals(struct request *r)
{
    struct str state = request_query(r, "state");

    service_approval_list(request_service(r), request_caller(r),
                          state.p ? approval_state_find(state) : -1, request_page(r), on_list, r);
}

static void on_one(void *arg, const struct approval_info *info, const struct err *failed)
{
    answer_value(arg, 200, failed ? NULL : render_approval(info->row), failed);
}

HANDLE_ID(handle_get_approval, service_approval_get, "approval", on_one)

void handle_decide_approval(struct request *r)
{
    const json_t *body = request_json(r);

    service_approval_decide(request_service(r), request_caller(r), request_path(r, "approval"),
                            str_is(json_view(json_object_get(body, "decision")), "approve"),
                            json_view(json_object_get(body, "reason")), on_one, r);
}
