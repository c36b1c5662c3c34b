/*
 * The JSON types of a session pool's document. A member of another type is refused by its name,
 * whether it has an effect here or not: Azure refuses it too. Members that are not in the table are
 * accepted, and listed by ignored.c. null stands for a member that is left out.
 */
#include "doors/azure/azure_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#define PATH_BYTES 256
#define DEPTH_MOST 12
#define DIGITS_MAX 18

#define P  "properties."
#define D  P "dynamicPoolConfiguration"
#define C  P "customContainerTemplate"
#define N  C ".containers[]"
#define PR N ".probes[]"
#define M  P "mcpServerSettings"

enum shape { SHAPE_TEXT, SHAPE_WHOLE, SHAPE_NUMBER, SHAPE_TRUTH, SHAPE_OBJECT, SHAPE_LIST };

static const char *const shape_names[] = {
    [SHAPE_TEXT] = "a text",         [SHAPE_WHOLE] = "a whole number", [SHAPE_NUMBER] = "a number",
    [SHAPE_TRUTH] = "true or false", [SHAPE_OBJECT] = "an object",     [SHAPE_LIST] = "a list",
};

/* "[]" stands for each item of a list, "*" for each member of an object. */
static const struct shape_row {
    const char *path;
    enum shape shape;
} rows[] = {
    {"location",                                          SHAPE_TEXT  },
    {"tags",                                              SHAPE_OBJECT},
    {"tags.*",                                            SHAPE_TEXT  },
    {"identity",                                          SHAPE_OBJECT},
    {"identity.type",                                     SHAPE_TEXT  },
    {"identity.userAssignedIdentities",                   SHAPE_OBJECT},
    {"identity.userAssignedIdentities.*",                 SHAPE_OBJECT},
    {"properties",                                        SHAPE_OBJECT},
    {P "environmentId",                                   SHAPE_TEXT  },
    {P "containerType",                                   SHAPE_TEXT  },
    {P "poolManagementType",                              SHAPE_TEXT  },
    {P "scaleConfiguration",                              SHAPE_OBJECT},
    {P "scaleConfiguration.maxConcurrentSessions",        SHAPE_WHOLE },
    {P "scaleConfiguration.readySessionInstances",        SHAPE_WHOLE },
    {D,                                                   SHAPE_OBJECT},
    {D ".executionType",                                  SHAPE_TEXT  },
    {D ".cooldownPeriodInSeconds",                        SHAPE_WHOLE },
    {D ".lifecycleConfiguration",                         SHAPE_OBJECT},
    {D ".lifecycleConfiguration.lifecycleType",           SHAPE_TEXT  },
    {D ".lifecycleConfiguration.cooldownPeriodInSeconds", SHAPE_WHOLE },
    {D ".lifecycleConfiguration.maxAlivePeriodInSeconds", SHAPE_WHOLE },
    {P "secrets",                                         SHAPE_LIST  },
    {P "secrets[]",                                       SHAPE_OBJECT},
    {P "secrets[].name",                                  SHAPE_TEXT  },
    {P "secrets[].value",                                 SHAPE_TEXT  },
    {P "sessionNetworkConfiguration",                     SHAPE_OBJECT},
    {P "sessionNetworkConfiguration.status",              SHAPE_TEXT  },
    {P "managedIdentitySettings",                         SHAPE_LIST  },
    {P "managedIdentitySettings[]",                       SHAPE_OBJECT},
    {P "managedIdentitySettings[].identity",              SHAPE_TEXT  },
    {P "managedIdentitySettings[].lifecycle",             SHAPE_TEXT  },
    {M,                                                   SHAPE_OBJECT},
    {M ".isMcpServerEnabled",                             SHAPE_TRUTH },
    {M ".isMcpServerApiKeyDisabled",                      SHAPE_TRUTH },
    {M ".mcpServerEndpoint",                              SHAPE_TEXT  },
    {C,                                                   SHAPE_OBJECT},
    {C ".registryCredentials",                            SHAPE_OBJECT},
    {C ".registryCredentials.*",                          SHAPE_TEXT  },
    {C ".ingress",                                        SHAPE_OBJECT},
    {C ".ingress.targetPort",                             SHAPE_WHOLE },
    {C ".containers",                                     SHAPE_LIST  },
    {N,                                                   SHAPE_OBJECT},
    {N ".name",                                           SHAPE_TEXT  },
    {N ".image",                                          SHAPE_TEXT  },
    {N ".command",                                        SHAPE_LIST  },
    {N ".command[]",                                      SHAPE_TEXT  },
    {N ".args",                                           SHAPE_LIST  },
    {N ".args[]",                                         SHAPE_TEXT  },
    {N ".env",                                            SHAPE_LIST  },
    {N ".env[]",                                          SHAPE_OBJECT},
    {N ".env[].name",                                     SHAPE_TEXT  },
    {N ".env[].value",                                    SHAPE_TEXT  },
    {N ".env[].secretRef",                                SHAPE_TEXT  },
    {N ".resources",                                      SHAPE_OBJECT},
    {N ".resources.cpu",                                  SHAPE_NUMBER},
    {N ".resources.memory",                               SHAPE_TEXT  },
    {N ".probes",                                         SHAPE_LIST  },
    {PR,                                                  SHAPE_OBJECT},
    {PR ".type",                                          SHAPE_TEXT  },
    {PR ".failureThreshold",                              SHAPE_WHOLE },
    {PR ".initialDelaySeconds",                           SHAPE_WHOLE },
    {PR ".periodSeconds",                                 SHAPE_WHOLE },
    {PR ".successThreshold",                              SHAPE_WHOLE },
    {PR ".terminationGracePeriodSeconds",                 SHAPE_WHOLE },
    {PR ".timeoutSeconds",                                SHAPE_WHOLE },
    {PR ".httpGet",                                       SHAPE_OBJECT},
    {PR ".httpGet.host",                                  SHAPE_TEXT  },
    {PR ".httpGet.path",                                  SHAPE_TEXT  },
    {PR ".httpGet.port",                                  SHAPE_WHOLE },
    {PR ".httpGet.scheme",                                SHAPE_TEXT  },
    {PR ".httpGet.httpHeaders",                           SHAPE_LIST  },
    {PR ".httpGet.httpHeaders[]",                         SHAPE_OBJECT},
    {PR ".httpGet.httpHeaders[].name",                    SHAPE_TEXT  },
    {PR ".httpGet.httpHeaders[].value",                   SHAPE_TEXT  },
    {PR ".tcpSocket",                                     SHAPE_OBJECT},
    {PR ".tcpSocket.host",                                SHAPE_TEXT  },
    {PR ".tcpSocket.port",                                SHAPE_WHOLE },
};

/* --- one value --- */

/* The number that a text is, as az sends it: "7", "-1", "0.5". Owned; NULL: it is none. */
static json_t *number_of(enum shape shape, const char *text)
{
    size_t sign = text[0] == '-', n = strspn(text + sign, "0123456789");
    const char *rest = text + sign + n;

    if (n == 0 || n > DIGITS_MAX)
        return NULL;
    if (*rest == '\0')
        return json_integer(strtoll(text, NULL, 10));
    n = strspn(rest + (*rest == '.'), "0123456789");
    if (shape != SHAPE_NUMBER || *rest != '.' || n == 0 || n > DIGITS_MAX || rest[1 + n])
        return NULL;
    return json_real(strtod(text, NULL));
}

static bool has_shape(enum shape shape, const json_t *v)
{
    switch (shape) {
    case SHAPE_TEXT:
        return json_is_string(v);
    case SHAPE_WHOLE:
        return json_is_integer(v);
    case SHAPE_NUMBER:
        return json_is_number(v);
    case SHAPE_TRUTH:
        return json_is_boolean(v);
    case SHAPE_OBJECT:
        return json_is_object(v);
    case SHAPE_LIST:
        return json_is_array(v);
    }
    return false;
}

/* --- the way through the document --- */

/* Where a value is: as the table has it, and as its author finds it. */
struct member_path {
    char row[PATH_BYTES], any[PATH_BYTES], shown[PATH_BYTES];
};

static bool path_add(struct member_path *ret, const struct member_path *above, const char *key)
{
    const char *dot = *above->row ? "." : "";
    char shown[NAME_SHOWN];

    name_show(shown, str_of(key));
    return snprintf(ret->row, PATH_BYTES, "%s%s%s", above->row, dot, key) < PATH_BYTES &&
           snprintf(ret->any, PATH_BYTES, "%s%s*", above->row, dot) < PATH_BYTES &&
           snprintf(ret->shown, PATH_BYTES, "%s%s%s", above->shown, dot, shown) < PATH_BYTES;
}

static bool path_add_item(struct member_path *ret, const struct member_path *above, size_t i)
{
    ret->any[0] = '\0';
    return snprintf(ret->row, PATH_BYTES, "%s[]", above->row) < PATH_BYTES &&
           snprintf(ret->shown, PATH_BYTES, "%s[%zu]", above->shown, i) < PATH_BYTES;
}

static const struct shape_row *row_of(const struct member_path *p)
{
    for (size_t i = 0; i < COUNT(rows); i++)
        if (strcasecmp(rows[i].path, p->row) == 0 || strcmp(rows[i].path, p->any) == 0)
            return &rows[i];
    return NULL;
}

static int walk(json_t *v, const struct member_path *at, int depth, struct err *e);

/* *ret_number: owned, what the text v stands for; or NULL. */
static int check(json_t *v, const struct member_path *at, int depth, json_t **ret_number,
                 struct err *e)
{
    const struct shape_row *row = row_of(at);
    const char *text = json_string_value(v);

    *ret_number = NULL;
    if (!row || json_is_null(v))
        return 0;
    if (text && (row->shape == SHAPE_WHOLE || row->shape == SHAPE_NUMBER))
        *ret_number = number_of(row->shape, text);
    if (!*ret_number && !has_shape(row->shape, v))
        return err_set(e, ERR_CALLER, "%s is %s", at->shown, shape_names[row->shape]);
    return walk(v, at, depth + 1, e);
}

static int walk(json_t *v, const struct member_path *at, int depth, struct err *e)
{
    struct member_path below;
    json_t *member, *number;
    const char *key;
    size_t i;

    if (depth > DEPTH_MOST)
        return 0;
    json_object_foreach(v, key, member) {
        if (!path_add(&below, at, key))
            continue; /* longer than any row: it is not in the table */
        if (check(member, &below, depth, &number, e) < 0)
            return -1;
        if (number)
            json_object_set_new(v, key, number);
    }
    json_array_foreach(v, i, member) {
        if (path_add_item(&below, at, i) && check(member, &below, depth, &number, e) < 0)
            return -1;
    }
    return 0;
}

json_t *pool_shape(const json_t *doc, struct err *e)
{
    struct member_path top = {0};
    json_t *tidy = json_deep_copy(doc);

    if (walk(tidy, &top, 0, e) == 0)
        return tidy;
    json_decref(tidy);
    return NULL;
}
