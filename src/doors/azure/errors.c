/* Error answers, in the shapes that clients of Azure read. */
#include "doors/azure/azure_int.h"

#include <stdio.h>
#include <stdlib.h>

/* What the HTTP room calls it, and what Azure does. */
static const struct {
    const char *type, *code;
} codes[] = {
    {"invalid_request",        "InvalidRequest"       },
    {"unauthorized",           "Unauthorized"         },
    {"forbidden",              "Forbidden"            },
    {"not_found",              "ResourceNotFound"     },
    {"method_not_allowed",     "MethodNotAllowed"     },
    {"conflict",               "Conflict"             },
    {"too_large",              "RequestEntityTooLarge"},
    {"unsupported_media_type", "UnsupportedMediaType" },
    {"range_not_satisfiable",  "InvalidRange"         },
    {"busy",                   "TooManyRequests"      },
    {"insufficient_storage",   "InsufficientStorage"  },
    {"damaged",                "FileDamaged"          },
    {"internal",               "InternalServerError"  },
};

static const char *code_of(const char *type)
{
    for (size_t i = 0; i < COUNT(codes); i++)
        if (strcmp(codes[i].type, type) == 0)
            return codes[i].code;
    return "InvalidRequest";
}

/* Takes message. */
static json_t *error_value(struct request *r, const char *code, const char *target, json_t *message)
{
    json_t *v = json_pack("{s:s, s:o}", "code", code, "message", message);

    if (target && *target)
        json_object_set_new(v, "target", record_text(str_of(target)));
    json_object_set_new(v, "traceId", json_string(request_caller(r)->request));
    return json_pack("{s:o}", "error", v);
}

json_t *azure_error(struct request *r, int status, const char *type, const char *param,
                    json_t *message)
{
    (void)status;
    answer_header(r, "x-ms-error-code", code_of(type));
    return error_value(r, code_of(type), param, message);
}

void azure_fail(struct azure_request *v, int status, const char *code, const char *fmt, ...)
{
    char text[1024];
    va_list args;
    json_t *body;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    body = error_value(v->r, code, NULL, record_text(str_of(text)));
    if (status == 429) { /* some clients look for it here */
        json_object_set_new(body, "code", json_string(code));
        json_object_set_new(body, "message", record_text(str_of(text)));
    }
    answer_header(v->r, "x-ms-error-code", code);
    answer_json(v->r, status, body);
}

void azure_fail_err(struct azure_request *v, const struct err *e, const char *missing)
{
    char seconds[16];

    switch (e->kind) {
    case ERR_MISSING:
        azure_fail(v, 404, missing, "%s", e->text);
        break;
    case ERR_BUSY:
        snprintf(seconds, sizeof(seconds), "%d", e->retry_s > 0 ? e->retry_s : 1);
        answer_header(v->r, "retry-after", seconds);
        azure_fail(v, 429, "SessionsCountExceedsLimit", "%s", e->text);
        break;
    default:
        answer_error(v->r, e, NULL);
    }
}

void azure_invalid(struct azure_request *v, const char *field, const char *fmt, ...)
{
    char text[1024];
    va_list args;
    json_t *body, *said;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    said = record_text(str_of(text));
    body = error_value(v->r, "InvalidRequest", field, json_incref(said));
    json_object_set_new(body, "type",
                        json_string("https://www.rfc-editor.org/rfc/rfc9110#section-15.5.1"));
    json_object_set_new(body, "title", json_string("One or more values are not valid."));
    json_object_set_new(body, "status", json_integer(400));
    json_object_set_new(body, "errors", json_pack("{s:[o]}", field, said));
    json_object_set_new(body, "traceId", json_string(azure_caller(v)->request));
    answer_header(v->r, "x-ms-error-code", "InvalidRequest");
    char *dump = json_dumps(body, JSON_COMPACT);
    json_decref(body);
    answer_text(v->r, 400, "application/problem+json", str_of(dump));
    free(dump);
}

void azure_answer(struct azure_request *v, int status, json_t *value)
{
    AUTO_FREE char *text = value ? record_dump(value, false, NULL) : NULL;

    json_decref(value);
    if (text)
        answer_text(v->r, status, "application/json", str_of(text));
    else
        azure_fail(v, 500, "InternalServerError", "the answer could not be written");
}
