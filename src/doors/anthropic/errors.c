/* Errors in the format of Anthropic's API. */
#include "doors/anthropic/anthropic_int.h"

/* error.type follows from the status alone, which an SDK looks at first. */
static const struct {
    int status;
    const char *type;
} types[] = {
    {400, "invalid_request_error"},
    {401, "authentication_error" },
    {402, "billing_error"        },
    {403, "permission_error"     },
    {404, "not_found_error"      },
    {409, "conflict_error"       },
    {413, "request_too_large"    },
    {429, "rate_limit_error"     },
    {504, "timeout_error"        },
    {529, "overloaded_error"     },
};

static const char *type_of(int status)
{
    for (size_t i = 0; i < COUNT(types); i++)
        if (types[i].status == status)
            return types[i].type;
    return status < 500 ? "invalid_request_error" : "api_error";
}

/* Codes that stand in details, and a further member that clients expect to be null. */
static const struct {
    const char *code, *null_member;
} codes[] = {
    {CODE_NOT_DOWNLOADABLE,   NULL         },
    {CODE_STORAGE_QUOTA,      NULL         },
    {CODE_FILE_EXPIRED,       NULL         },
    {CODE_CONTAINER_EXPIRED,  NULL         },
    {CODE_THREAD_UNSUPPORTED, "unsupported"},
};

/* NULL: the code has no details. */
static json_t *details_of(const char *type)
{
    for (size_t i = 0; i < COUNT(codes); i++)
        if (strcmp(codes[i].code, type) == 0) {
            json_t *v = json_pack("{s:s}", "error_code", type);
            if (codes[i].null_member)
                json_object_set_new(v, codes[i].null_member, json_null());
            return v;
        }
    return NULL;
}

json_t *anthropic_error_of(const char *request, int status, const char *type, json_t *message)
{
    json_t *error = json_pack("{s:s, s:o}", "type", type_of(status), "message", message);
    json_t *details = details_of(type);

    if (details)
        json_object_set_new(error, "details", details);
    return json_pack("{s:s, s:o, s:s}", "type", "error", "error", error, "request_id", request);
}

void anthropic_fail(struct request *r, const struct err *failed)
{
    if (failed->kind == ERR_LIMIT && failed->sys == FILE_QUOTA)
        answer_fail(r, 400, CODE_STORAGE_QUOTA, NULL, "%s", failed->text);
    else
        answer_error(r, failed, NULL);
}

json_t *anthropic_error(struct request *r, int status, const char *type, const char *param,
                        json_t *message)
{
    (void)param; /* the message names it */
    return anthropic_error_of(request_caller(r)->request, status, type, message);
}
