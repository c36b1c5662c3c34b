/* Members of JSON objects. Clients spell the same name in several ways: isMCPServerEnabled. */
#include "doors/azure/azure_int.h"

#include <stdio.h>
#include <strings.h>

json_t *json_nocase(const json_t *object, const char *name)
{
    const char *key;
    json_t *value = json_object_get(object, name);

    if (value)
        return value;
    json_object_foreach((json_t *)object, key, value)
        if (strcasecmp(key, name) == 0)
            return value;
    return NULL;
}

json_t *json_at(const json_t *object, const char *path)
{
    json_t *at = (json_t *)object;
    char name[64];

    while (at && *path) {
        size_t n = strcspn(path, ".");
        snprintf(name, sizeof(name), "%.*s", (int)n, path);
        at = json_nocase(at, name);
        path += n + (path[n] == '.');
    }
    return at;
}
