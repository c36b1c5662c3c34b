/*
 * What clients of Resource Manager look at before and after they make a session pool: the provider,
 * the group, the environment, and how an operation goes. Groups and environments are names here:
 * any will do, and each is there. A pool is up or not at once, so an operation has always ended.
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

void op_operation_status(struct azure_request *v)
{
    struct str s = v->target.subscription, id = v->target.pool;

    azure_answer(
        v, 200,
        json_pack("{s:o, s:o, s:s, s:o}", "id",
                  json_sprintf("/subscriptions/%.*s/providers/Microsoft.App/locations/local/"
                               "sessionPoolOperationStatuses/%.*s",
                               NAMED(s), NAMED(id)),
                  "name", record_text(id), "status", "Succeeded", "startTime",
                  time_json(time_now_ms())));
}
