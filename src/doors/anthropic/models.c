/* The routes that list models and their capabilities. */
#include "doors/anthropic/anthropic_int.h"

#include "model/model.h"
#include "record/record.h"

/* --- capabilities --- */

enum can { CANNOT, CAN, CAN_SEE, CAN_PDF, CAN_THINK, CAN_CONFIG };

/* In the order of the SDK's types; a group stands above its members. */
static const struct {
    const char *group, *name; /* group NULL: a member of capabilities itself */
    enum can can;
} capabilities[] = {
    {NULL,                 "batch",                    CAN       },
    {NULL,                 "citations",                CANNOT    },
    {NULL,                 "code_execution",           CAN       },
    {NULL,                 "context_management",       CANNOT    },
    {"context_management", "clear_thinking_20251015",  CANNOT    },
    {"context_management", "clear_tool_uses_20250919", CANNOT    },
    {"context_management", "compact_20260112",         CANNOT    },
    {NULL,                 "effort",                   CAN_CONFIG},
    {"effort",             "low",                      CAN_CONFIG},
    {"effort",             "medium",                   CAN_CONFIG},
    {"effort",             "high",                     CAN_CONFIG},
    {"effort",             "xhigh",                    CAN_CONFIG},
    {"effort",             "max",                      CAN_CONFIG},
    {NULL,                 "image_input",              CAN_SEE   },
    {NULL,                 "pdf_input",                CAN_PDF   },
    {NULL,                 "server_tools",             CAN       },
    {"server_tools",       "code_execution",           CAN       },
    {"server_tools",       "web_search",               CANNOT    },
    {NULL,                 "structured_outputs",       CAN_CONFIG},
    {NULL,                 "thinking",                 CAN_THINK },
};

/* Members of thinking.types. */
static const char *const thinking_types[] = {"adaptive", "between_tools", "disabled", "enabled"};

static json_t *support(bool supported)
{
    return json_pack("{s:b}", "supported", (int)supported);
}

static bool has_option(const struct model *m, const char *name)
{
    for (const char *const *at = m->options; at && *at; at++)
        if (strcmp(*at, name) == 0)
            return true;
    return false;
}

/* What the model's wire format and settings let through; whether the model itself knows it is the
 * endpoint's to say. */
static bool is_able(const struct model *m, enum can can)
{
    switch (can) {
    case CANNOT:
        return false;
    case CAN:
        return true;
    case CAN_SEE:
        return m->sees_images;
    case CAN_PDF:
        return m->takes_pdf;
    case CAN_THINK:
        return has_option(m, "thinking");
    case CAN_CONFIG:
        return has_option(m, "output_config");
    }
    return false;
}

static json_t *capabilities_of(const struct model *m)
{
    json_t *v = json_object(), *types = json_object();

    for (size_t i = 0; i < COUNT(capabilities); i++) {
        const char *group = capabilities[i].group;
        json_object_set_new(group ? json_object_get(v, group) : v, capabilities[i].name,
                            support(is_able(m, capabilities[i].can)));
    }
    for (size_t i = 0; i < COUNT(thinking_types); i++)
        json_object_set_new(types, thinking_types[i], support(is_able(m, CAN_THINK)));
    json_object_set_new(json_object_get(v, "thinking"), "types", types);
    return v;
}

/* When a model was made is not known: the API gives the epoch for that. */
static json_t *model_value(const struct model *m)
{
    json_t *name = record_text(str_of(m->label));

    return json_pack("{s:O, s:s, s:o, s:s, s:s, s:n, s:n, s:n, s:n, s:n, s:o}", "id", name, "type",
                     "model", "display_name", name, "created_at", "1970-01-01T00:00:00Z",
                     "lifecycle", "active", "line", "max_input_tokens", "max_tokens",
                     "deprecated_at", "retires_at", "capabilities", capabilities_of(m));
}

/* --- routes --- */

/* The models that the caller may use; the default one comes first. */
static struct model *model_at(struct request *r, size_t i)
{
    const struct anthropic *a = request_ctx(r);

    return models_at(a->config.models, request_caller(r)->tenant, i);
}

void handle_models(struct request *r)
{
    json_t *data = json_array();
    const struct model *m, *first = model_at(r, 0), *last = first;

    for (size_t i = 0; (m = model_at(r, i)); i++) {
        json_array_append_new(data, model_value(m));
        last = m;
    }
    answer_json(r, 200,
                json_pack("{s:o, s:b, s:o, s:o}", "data", data, "has_more", 0, "first_id",
                          first ? record_text(str_of(first->label)) : json_null(), "last_id",
                          last ? record_text(str_of(last->label)) : json_null()));
}

void handle_model(struct request *r)
{
    struct str id = request_path(r, "model");
    const struct model *m;
    char shown[NAME_SHOWN];

    for (size_t i = 0; (m = model_at(r, i)); i++)
        if (str_is(id, m->label))
            return answer_json(r, 200, model_value(m));
    answer_fail(r, 404, CODE_MISSING, NULL, "model: %s", name_show(shown, id));
}
