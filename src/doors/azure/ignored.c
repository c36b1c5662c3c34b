/*
 * Settings of a document that have no effect here. They are accepted, because the same document is
 * sent to Azure, and listed under "ignored", because its author may rely on them.
 */
#include "doors/azure/azure_int.h"

#include <stdio.h>

#define PATH_MAX_BYTES 256
#define DEPTH_MAX_     12
#define TOLD_MAX       100

#define P "properties."
#define C P "customContainerTemplate."
#define N C "containers[]."
#define M P "mcpServerSettings."

static const char read_only[] = "it is only read";
static const char served[] = "the interface of the image is served by this server";
static const char probed[] = "a probe asks this server itself, which answers at once";

/* A path that ends with '*' stands for all below it, too. why NULL: it counts, or is kept. */
static const struct {
    const char *path, *why;
} rows[] = {
    {"id",                                                                        NULL                                           },
    {"name",                                                                      NULL                                           },
    {"type",                                                                      NULL                                           },
    {"apiVersion",                                                                NULL                                           },
    {"tags*",                                                                     NULL                                           },
    {"location",                                                                  "all pools are on this server"                 },
    {"identity*",                                                                 "there are no managed identities here"         },
    {"systemData*",                                                               read_only                                      },
    {P "environmentId",                                                           "there are no Container Apps environments here"},
    {P "poolManagementType",                                                      NULL                                           },
    {P "containerType",                                                           NULL                                           },
    {P "scaleConfiguration.maxConcurrentSessions",                                NULL                                           },
    {P "scaleConfiguration.readySessionInstances",                                NULL                                           },
    {P "dynamicPoolConfiguration.executionType",                                  NULL                                           },
    {P "dynamicPoolConfiguration.cooldownPeriodInSeconds",                        NULL                                           },
    {P "dynamicPoolConfiguration.lifecycleConfiguration.lifecycleType",           NULL                                           },
    {P "dynamicPoolConfiguration.lifecycleConfiguration.cooldownPeriodInSeconds", NULL                                           },
    {P "dynamicPoolConfiguration.lifecycleConfiguration.maxAlivePeriodInSeconds", NULL                                           },
    {P "secrets*",                                                                NULL                                           },
    {C "registryCredentials*",                                                    "no image is fetched: it names an environment" },
    {N "name",                                                                    NULL                                           },
    {N "image",                                                                   NULL                                           },
    {N "env*",                                                                    NULL                                           },
    {N "resources.cpu",                                                           NULL                                           },
    {N "resources.memory",                                                        NULL                                           },
    {N "command*",                                                                "the environment says what runs"               },
    {N "args*",                                                                   "the environment says what runs"               },
    {N "probes[].type",                                                           NULL                                           },
    {N "probes[].failureThreshold",                                               NULL                                           },
    {N "probes[].initialDelaySeconds",                                            NULL                                           },
    {N "probes[].periodSeconds",                                                  NULL                                           },
    {N "probes[].successThreshold",                                               NULL                                           },
    {N "probes[].httpGet.path",                                                   NULL                                           },
    {N "probes[].httpGet.port",                                                   NULL                                           },
    {N "probes[].timeoutSeconds",                                                 probed                                         },
    {N "probes[].terminationGracePeriodSeconds",                                  probed                                         },
    {N "probes[].httpGet.host",                                                   probed                                         },
    {N "probes[].httpGet.scheme",                                                 probed                                         },
    {N "probes[].httpGet.httpHeaders*",                                           probed                                         },
    {N "probes[].tcpSocket*",                                                     NULL                                           },
    {C "ingress*",                                                                served                                         },
    {P "sessionNetworkConfiguration.status",                                      NULL                                           },
    {P "managedIdentitySettings*",                                                "there are no managed identities here"         },
    {M "isMcpServerEnabled",                                                      NULL                                           },
    {M "isMcpServerApiKeyDisabled",                                               NULL                                           },
    {M "mcpServerEndpoint",                                                       read_only                                      },
    {P "poolManagementEndpoint",                                                  read_only                                      },
    {P "nodeCount",                                                               read_only                                      },
    {P "templateUpdateStatus*",                                                   read_only                                      },
    {P "provisioningState",                                                       read_only                                      },
    {P "retort*",                                                                 read_only                                      },
};

static bool row_fits(const char *row, const char *path)
{
    size_t n = strlen(row);

    if (n == 0 || row[n - 1] != '*')
        return str_nocase(str_of(row), str_of(path));
    n--;
    return strlen(path) >= n && str_nocase((struct str){row, n}, (struct str){path, n}) &&
           (path[n] == '\0' || path[n] == '.' || path[n] == '[');
}

/* One line for all below a row: each is told once. */
static void tell(json_t *list, const char *path, const char *why)
{
    size_t i;
    json_t *told;

    json_array_foreach(list, i, told)
        if (strcmp(json_string_value(json_object_get(told, "property")), path) == 0)
            return;
    if (json_array_size(list) < TOLD_MAX)
        json_array_append_new(
            list, json_pack("{s:o, s:s}", "property", record_text(str_of(path)), "reason", why));
}

static void look(json_t *list, const json_t *v, const char *path, int depth);

static void look_below(json_t *list, const json_t *v, const char *path, int depth)
{
    char below[PATH_MAX_BYTES];
    const char *key;
    json_t *member;
    size_t i;

    json_object_foreach((json_t *)v, key, member) {
        if (snprintf(below, sizeof(below), "%s%s%s", path, *path ? "." : "", key) <
            (int)sizeof(below))
            look(list, member, below, depth + 1);
    }
    json_array_foreach(v, i, member) {
        if (snprintf(below, sizeof(below), "%s[]", path) < (int)sizeof(below))
            look(list, member, below, depth + 1);
    }
}

static void look(json_t *list, const json_t *v, const char *path, int depth)
{
    for (size_t i = 0; i < COUNT(rows); i++) {
        char told[PATH_MAX_BYTES];
        if (!row_fits(rows[i].path, path))
            continue;
        snprintf(told, sizeof(told), "%.*s", (int)strcspn(rows[i].path, "*"), rows[i].path);
        if (rows[i].why && !json_is_null(v) && rows[i].why != read_only)
            tell(list, told, rows[i].why);
        return;
    }
    if (depth < DEPTH_MAX_ && (json_is_object(v) || json_is_array(v)))
        look_below(list, v, path, depth);
    else
        tell(list, path, "it is not known here");
}

json_t *ignored_of(const json_t *document)
{
    json_t *list = json_array();
    struct str life = json_view(
        json_at(document, P "dynamicPoolConfiguration.lifecycleConfiguration.lifecycleType"));

    look_below(list, document, "", 0);
    if (json_array_size(json_at(document, C "containers")) > 1)
        tell(list, C "containers[]", "a session has one sandbox: of several the first counts");
    if (str_nocase(life, STR("OnContainerExit")))
        tell(list, P "dynamicPoolConfiguration.lifecycleConfiguration.lifecycleType",
             "a session ends at its greatest age; an interpreter that exits before is replaced, "
             "and its files are kept");
    return list;
}
