/* An approver approves or rejects a task. Prisme's task is an approval of the service. */
#include "doors/prisme/prisme_int.h"

#include <stdio.h>
#include <stdlib.h>

static void on_decided(void *arg, const struct approval_info *info, const struct err *failed)
{
    struct request *r = arg;
    const struct approval_row *row = failed ? NULL : info->row;

    if (failed && failed->kind == ERR_CONFLICT)
        answer_fail(r, 409, "TASK_NOT_PENDING", "task", "%s", failed->text);
    else if (failed)
        answer_error(r, failed, "task");
    else
        answer_json(r, 200,
                    json_pack("{s:s, s:s, s:s, s:s}", "task_id", row->id, "status",
                              row->state == APPROVAL_DECLINED ? "failed" : "working", "resolution",
                              row->state == APPROVAL_DECLINED ? "rejected" : "approved",
                              "resolved_by", row->decided_by ? row->decided_by : ""));
}

void handle_resolve(struct request *r)
{
    json_t *body = request_json(r), *approved = json_object_get(body, "approved");

    service_approval_decide(request_service(r), request_caller(r), request_path(r, "task"),
                            json_is_true(approved), json_view(json_object_get(body, "reason")),
                            on_decided, r);
}
