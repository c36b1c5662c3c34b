/* The routes that list models and their capabilities. */
#include "doors/anthropic/anthropic_int.h"

#include "model/model.h"
#include "record/record.h"

#include <stdlib.h>

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

/* Whether the endpoint denies it: what it does not mention, it may know. */
static bool is_denied(const json_t *said, const char *group, const char *name)
{
    const json_t *all = json_object_get(said, "capabilities");
    const json_t *one = json_object_get(group ? json_object_get(all, group) : all, name);

    return json_is_false(json_object_get(one, "supported"));
}

static json_t *capabilities_of(const struct model *m, const json_t *said)
{
    const json_t *thinking = json_object_get(json_object_get(said, "capabilities"), "thinking");
    json_t *v = json_object(), *types = json_object();

    for (size_t i = 0; i < COUNT(capabilities); i++) {
        const char *group = capabilities[i].group, *name = capabilities[i].name;
        bool own = capabilities[i].can == CAN; /* of this server, whatever the model is */
        json_object_set_new(
            group ? json_object_get(v, group) : v, name,
            support(is_able(m, capabilities[i].can) && (own || !is_denied(said, group, name))));
    }
    for (size_t i = 0; i < COUNT(thinking_types); i++) {
        const json_t *one = json_object_get(json_object_get(thinking, "types"), thinking_types[i]);
        json_object_set_new(types, thinking_types[i],
                            support(is_able(m, CAN_THINK) && !is_denied(said, NULL, "thinking") &&
                                    !json_is_false(json_object_get(one, "supported"))));
    }
    json_object_set_new(json_object_get(v, "thinking"), "types", types);
    return v;
}

/* When a model was made is what its endpoint says, or not known: the API gives the epoch for that.
 */
static json_t *model_value(const struct model *m, struct str id, const json_t *said)
{
    json_t *name = record_text(id), *created = json_object_get(said, "created_at");
    json_t *shown = json_object_get(said, "display_name");
    int64_t when_ms = 0;

    created = time_parse(json_view(created), &when_ms) && when_ms > 0
                  ? time_json(when_ms)
                  : json_string("1970-01-01T00:00:00Z");
    return json_pack("{s:o, s:s, s:O, s:o, s:s, s:n, s:O?, s:O?, s:n, s:n, s:o}", "id", name,
                     "type", "model", "display_name", shown ? shown : name, "created_at", created,
                     "lifecycle", "active", "line", "max_input_tokens",
                     json_object_get(said, "max_input_tokens"), "max_tokens",
                     json_object_get(said, "max_tokens"), "deprecated_at", "retires_at",
                     "capabilities", capabilities_of(m, said));
}

/* --- routes --- */

/* The models that the caller may use; the default one comes first. */
static struct model *model_at(struct request *r, size_t i)
{
    const struct anthropic *a = request_ctx(r);

    return models_at(a->config.models, request_caller(r)->tenant, i);
}

struct models_answer {
    struct request *r; /* borrowed: until it is answered */
    struct model *model;
    size_t at;
    json_t *data; /* owned: of a list; or NULL */
};

static void answer_free(void *arg)
{
    struct models_answer *a = arg;

    json_decref(a->data);
    free(a);
}

static struct models_answer *answer_new(struct request *r)
{
    struct models_answer *a = mem_zalloc(sizeof(*a));

    a->r = r;
    request_keep(r, answer_free, a);
    return a;
}

static json_t *id_at(const json_t *data, size_t i)
{
    json_t *id = json_object_get(json_array_get(data, i), "id");

    return id ? json_incref(id) : json_null();
}

static void on_about(void *arg, const json_t *said);

static void list_next(struct models_answer *a)
{
    size_t count = json_array_size(a->data);

    a->model = model_at(a->r, a->at++);
    if (a->model)
        model_about(a->model, (struct str){0}, on_about, a);
    else
        answer_json(a->r, 200,
                    json_pack("{s:O, s:b, s:o, s:o}", "data", a->data, "has_more", 0, "first_id",
                              id_at(a->data, 0), "last_id", id_at(a->data, count ? count - 1 : 0)));
}

static void on_about(void *arg, const json_t *said)
{
    struct models_answer *a = arg;

    json_array_append_new(a->data, model_value(a->model, str_of(a->model->label), said));
    list_next(a);
}

void handle_models(struct request *r)
{
    struct models_answer *a = answer_new(r);

    a->data = json_array();
    list_next(a);
}

/* A model that its endpoint does not tell of is there where the settings name it, and not where a
 * client does. */
static void on_one(void *arg, const json_t *said)
{
    struct models_answer *a = arg;
    struct str id = request_path(a->r, "model");
    char shown[NAME_SHOWN];

    if (str_is(id, a->model->label) || json_object_size(said) > 0)
        answer_json(a->r, 200, model_value(a->model, id, said));
    else
        answer_fail(a->r, 404, CODE_MISSING, NULL, "model: %s", name_show(shown, id));
}

void handle_model(struct request *r)
{
    const struct anthropic *door = request_ctx(r);
    struct str id = request_path(r, "model");
    struct model *m = models_find(door->config.models, request_caller(r)->tenant, id);
    struct models_answer *a;
    char shown[NAME_SHOWN];

    if (!m || (!str_is(id, m->label) && !m->many))
        return answer_fail(r, 404, CODE_MISSING, NULL, "model: %s", name_show(shown, id));
    a = answer_new(r);
    a->model = m;
    model_about(m, id, on_one, a);
}
