/*
 * What clients of Resource Manager read before and after they make a session pool: the provider,
 * the group, the environment, and the state of an operation. Groups and environments are only names
 * here: every name is accepted, and every group exists. An operation is over when its pool is up.
 */
#include "doors/azure/azure_int.h"

#include <stdio.h>

#define NAMED(s) (int)(s).n, (s).p

void op_provider(struct azure_request *v)
{
    struct str s = v->target.subscription;
    json_t *places = json_pack("[s]", "local");

    azure_answer(
        v, 200,
        json_pack("{s:o, s:s, s:s, s:s, s:[{s:s, s:O, s:[s,s,s]}, {s:s, s:o, s:[s,s,s]}]}", "id",
                  json_sprintf("/subscriptions/%.*s/providers/Microsoft.App", NAMED(s)),
                  "namespace", "Microsoft.App", "registrationState", "Registered",
                  "registrationPolicy", "RegistrationRequired", "resourceTypes", "resourceType",
                  "sessionPools", "locations", places, "apiVersions", "2025-10-02-preview",
                  "2025-02-02-preview", "2024-10-02-preview", "resourceType", "managedEnvironments",
                  "locations", places, "apiVersions", "2025-10-02-preview", "2025-02-02-preview",
                  "2024-10-02-preview"));
}

void op_group(struct azure_request *v)
{
    struct str s = v->target.subscription, g = v->target.group;
    json_t *location = json_nocase(v->body, "location");

    if (request_is_head(v->r)) {
        answer_empty(v->r, 204);
        return;
    }
    azure_answer(
        v, 200,
        json_pack("{s:o, s:o, s:s, s:o, s:{s:s}}", "id",
                  json_sprintf("/subscriptions/%.*s/resourceGroups/%.*s", NAMED(s), NAMED(g)),
                  "name", record_text(g), "type", "Microsoft.Resources/resourceGroups", "location",
                  location ? json_incref(location) : json_string("local"), "properties",
                  "provisioningState", "Succeeded"));
}

void op_environment(struct azure_request *v)
{
    struct str s = v->target.subscription, g = v->target.group, name = v->target.pool;

    azure_answer(
        v, 200,
        json_pack("{s:o, s:o, s:s, s:s, s:{s:s, s:[{s:s, s:s}]}}", "id",
                  json_sprintf("/subscriptions/%.*s/resourceGroups/%.*s/providers/Microsoft.App/"
                               "managedEnvironments/%.*s",
                               NAMED(s), NAMED(g), NAMED(name)),
                  "name", record_text(name), "type", "Microsoft.App/managedEnvironments",
                  "location", "local", "properties", "provisioningState", "Succeeded",
                  "workloadProfiles", "name", "Consumption", "workloadProfileType", "Consumption"));
}

/* The pool of an operation's id, "req_....NAME". */
static bool find_operation(struct azure_request *v, struct pool_info *ret)
{
    struct str id = v->target.pool;
    const char *dot = id.n ? memchr(id.p, '.', id.n) : NULL;
    struct str name = dot ? str_from(id, (size_t)(dot - id.p) + 1) : (struct str){0};
    struct service *sv = azure_service(v);

    for (size_t i = 0; i < service_pool_count(sv); i++) {
        service_pool_get(sv, i, ret);
        if (str_is(name, ret->pool->name) &&
            service_sees_pool(sv, azure_caller(v), ret->pool->name))
            return true;
    }
    return false;
}

void op_operation_status(struct azure_request *v)
{
    struct str s = v->target.subscription, id = v->target.pool;
    struct pool_info info;
    json_t *shown;

    if (!find_operation(v, &info))
        return azure_fail(v, 404, "OperationNotFound",
                          "there is no such operation, or its pool was deleted");
    shown = json_pack("{s:o, s:o, s:s, s:o}", "id",
                      json_sprintf("/subscriptions/%.*s/providers/Microsoft.App/locations/local/"
                                   "sessionPoolOperationStatuses/%.*s",
                                   NAMED(s), NAMED(id)),
                      "name", record_text(id), "status", pool_state(&info), "startTime",
                      time_json(info.updated_ms));
    if (strcmp(pool_state(&info), "Failed") == 0)
        json_object_set_new(shown, "error",
                            json_pack("{s:s, s:o}", "code", "SessionPoolFailed", "message",
                                      record_text(str_of(info.why))));
    if (!info.up)
        answer_header(v->r, "retry-after", "1");
    azure_answer(v, 200, shown);
}
