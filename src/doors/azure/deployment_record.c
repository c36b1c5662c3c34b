/* The records of deployments, one for each group and name. The pools that a deployment made stay
 * when its record is deleted. */
#include "doors/azure/azure_int.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#define KIND "azure-deployment"
#define MOST 800 /* of one group, as Resource Manager has it */

/* Names of Azure's own are the same in any case; owned. */
static char *group_key(const struct azure_request *v)
{
    json_t *text =
        json_sprintf("%.*s/%.*s", (int)v->target.subscription.n, v->target.subscription.p,
                     (int)v->target.group.n, v->target.group.p);
    char *key = mem_strdup(json_string_value(text));

    json_decref(text);
    for (char *p = key; *p; p++)
        *p = (char)tolower((unsigned char)*p);
    return key;
}

static char *key_of(const struct azure_request *v)
{
    AUTO_FREE char *group = group_key(v);
    AUTO_FREE char *name = mem_strndup(v->target.pool);
    json_t *text;
    char *key;

    for (char *p = name; *p; p++)
        *p = (char)tolower((unsigned char)*p);
    text = json_sprintf("%s/%s", group, name);
    key = mem_strdup(json_string_value(text));
    json_decref(text);
    return key;
}

void deployment_keep(struct azure_request *v, json_t *record, done_fn *fn, void *arg)
{
    AUTO_FREE char *id = key_of(v), *parent = group_key(v);
    AUTO_FREE char *body = json_dumps(record, JSON_COMPACT);
    char kind[] = KIND, owner[] = "";
    const struct item_row row = {
        .id = id, .kind = kind, .owner = owner, .parent = parent, .body = body};

    json_decref(record);
    service_item_put_up_to(azure_service(v), azure_caller(v), &row, MOST, fn, arg);
}

static json_t *read_body(const struct item_row *item)
{
    json_t *v = json_loads(item->body, 0, NULL);

    return v ? v : json_object();
}

/* --- how it goes --- */

/* The worst of what has become of its pools; one that was deleted since was up once. */
static const char *state_now(struct azure_request *v, struct str id)
{
    struct pool_info info;

    if (!pool_find(v, str_base(id, "/"), &info))
        return "Succeeded";
    return strcmp(pool_state(&info), "InProgress") == 0 ? "Running" : pool_state(&info);
}

/* A record says how far its deployment came; its pools may still be starting. */
json_t *deployment_now(struct azure_request *v, const json_t *kept)
{
    json_t *shown = json_deep_copy(kept), *props = json_object_get(shown, "properties"), *one;
    const char *state = "Succeeded";
    size_t i;

    if (!str_is(json_view(json_object_get(props, "provisioningState")), state))
        return shown;
    json_array_foreach(json_object_get(props, "outputResources"), i, one) {
        const char *now = state_now(v, json_view(json_object_get(one, "id")));
        if (strcmp(state, "Failed") != 0 && strcmp(now, "Succeeded") != 0)
            state = now;
    }
    json_object_set_new(props, "provisioningState", json_string(state));
    return shown;
}

/* --- one --- */

/* All of them, or one by its number. */
static void show_operations(struct azure_request *v, const json_t *ops)
{
    json_t *one, *value = json_array();
    size_t i;

    json_array_foreach(ops, i, one) {
        json_t *row = json_deep_copy(one), *props = json_object_get(row, "properties");
        if (str_is(json_view(json_object_get(props, "provisioningState")), "Succeeded"))
            json_object_set_new(props, "provisioningState",
                                json_string(state_now(
                                    v, json_view(json_at(props, "targetResource.resourceName")))));
        json_object_set_new(row, "id",
                            json_sprintf("/subscriptions/%.*s/resourceGroups/%.*s/providers/"
                                         "Microsoft.Resources/deployments/%.*s/operations/%s",
                                         (int)v->target.subscription.n, v->target.subscription.p,
                                         (int)v->target.group.n, v->target.group.p,
                                         (int)v->target.pool.n, v->target.pool.p,
                                         json_string_value(json_object_get(one, "operationId"))));
        if (v->name.n == 0 || str_eq(v->name, json_view(json_object_get(one, "operationId"))))
            json_array_append(value, row);
        json_decref(row);
    }
    if (v->name.n == 0)
        azure_answer(v, 200, json_pack("{s:O}", "value", value));
    else if (json_array_size(value) > 0)
        azure_answer(v, 200, json_incref(json_array_get(value, 0)));
    else
        azure_fail(v, 404, "DeploymentOperationNotFound", "there is no such operation");
    json_decref(value);
}

static void show_one(struct azure_request *v, const struct item_row *item, const struct err *failed)
{
    json_t *record;
    struct str what = v->target.rest;

    if (failed && failed->kind == ERR_MISSING) {
        azure_fail(v, 404, "DeploymentNotFound", "there is no such deployment");
        return;
    }
    if (failed) {
        azure_fail_err(v, failed, "DeploymentNotFound");
        return;
    }
    if (request_is_head(v->r)) { /* a HEAD is answered with nothing else */
        answer_empty(v->r, 204);
        return;
    }
    record = read_body(item);
    if (str_nocase(what, STR("exportTemplate")))
        azure_answer(v, 200, json_pack("{s:O?}", "template", json_object_get(record, "template")));
    else if (what.n > 0)
        show_operations(v, json_object_get(record, "operations"));
    else
        azure_answer(v, 200, deployment_now(v, json_object_get(record, "deployment")));
    json_decref(record);
}

static void on_found(void *arg, const struct item_row *item, const struct err *failed)
{
    show_one(arg, item, failed);
}

static void look_up(struct azure_request *v)
{
    AUTO_FREE char *id = key_of(v);

    service_item_get(azure_service(v), azure_caller(v), KIND, str_of(id), on_found, v);
}

void op_deployment_get(struct azure_request *v)
{
    look_up(v);
}

void op_deployment_operations(struct azure_request *v)
{
    look_up(v);
}

void op_deployment_export(struct azure_request *v)
{
    look_up(v);
}

static void on_deleted(void *arg, const struct err *failed)
{
    struct azure_request *v = arg;

    if (failed && failed->kind != ERR_MISSING)
        azure_fail_err(v, failed, "DeploymentNotFound");
    else
        answer_empty(v->r, 204);
}

void op_deployment_delete(struct azure_request *v)
{
    AUTO_FREE char *id = key_of(v);

    service_item_delete(azure_service(v), azure_caller(v), KIND, str_of(id), on_deleted, v);
}

/* --- those of a group --- */

static void on_listed(void *arg, const struct item_row *items, size_t count, uint64_t total,
                      const struct err *failed)
{
    struct azure_request *v = arg;
    json_t *value = json_array();

    (void)total;
    for (size_t i = 0; !failed && i < count; i++) {
        json_t *record = read_body(&items[i]);
        json_array_append_new(value, deployment_now(v, json_object_get(record, "deployment")));
        json_decref(record);
    }
    if (!failed)
        return azure_answer(v, 200, json_pack("{s:o}", "value", value));
    json_decref(value);
    azure_fail_err(v, failed, "DeploymentNotFound");
}

void op_deployment_list(struct azure_request *v)
{
    AUTO_FREE char *group = group_key(v);
    const struct item_filter f = {.kind = KIND, .owner = "", .parent = group, .page.limit = MOST};

    service_item_list(azure_service(v), azure_caller(v), &f, on_listed, v);
}
