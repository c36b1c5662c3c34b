/* Tasks: a call that goes on after its client has been answered. */
#include "doors/mcp/mcp_int.h"

bool task_take_result(struct call *c, json_t *result)
{
    (void)c, (void)result;
    return false;
}

bool task_take_error(struct call *c, int code, const char *text)
{
    (void)c, (void)code, (void)text;
    return false;
}
