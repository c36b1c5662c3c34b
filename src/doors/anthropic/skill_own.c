/*
 * The skills that come with the program, for the tools of this door. Requests name them with the
 * type "anthropic", which SDKs have for skills of the server's own. Each has one version, the
 * program's, and cannot be changed.
 *
 * Their rows have the form of those that the store has, so that both kinds are shown alike.
 */
#include "doors/anthropic/skills_int.h"
#include "doors/mcp/tool.h"

#include <stdio.h>
#include <stdlib.h>

#define SKILL_URI "skill://"

/* Scripts may be shared with the skills of other tool sets. */
static const struct {
    const char *skill, *path, *uri;
} files[] = {
    {"code-execution", SKILL_FILE,                 SKILL_URI "code-execution/" SKILL_FILE},
    {"code-execution", "scripts/profile_table.py",
     SKILL_URI "code-interpreter/scripts/profile_table.py"                               },
};

static const struct embedded *file_at(size_t i)
{
    const struct embedded *f = embedded_find(str_of(files[i].uri));

    assert(f);
    return f;
}

const char *own_skill_at(size_t i)
{
    size_t at = 0;

    for (size_t f = 0; f < COUNT(files); f++)
        if (strcmp(files[f].path, SKILL_FILE) == 0 && at++ == i)
            return files[f].skill;
    return NULL;
}

bool own_skill_is(struct str id)
{
    const char *name;

    for (size_t i = 0; (name = own_skill_at(i)); i++)
        if (str_is(id, name))
            return true;
    return false;
}

/* What stands at the top of its SKILL.md; new. */
static json_t *matter_of(const char *name)
{
    for (size_t i = 0; i < COUNT(files); i++)
        if (strcmp(files[i].skill, name) == 0 && strcmp(files[i].path, SKILL_FILE) == 0)
            return json_loads(file_at(i)->matter, 0, NULL);
    return NULL;
}

static void row_fill(struct item_row *ret, const char *id, const char *parent, json_t *body)
{
    *ret = (struct item_row){
        .id = mem_strdup(id), .parent = mem_strdup(parent), .body = json_dumps(body, JSON_COMPACT)};
    json_decref(body);
}

void own_skill_row(const char *name, struct item_row *ret)
{
    row_fill(ret, name, "", json_pack("{s:s, s:s}", "title", name, "latest", RETORT_VERSION));
}

bool own_version_row(const char *name, struct str version, struct item_row *ret)
{
    if (version.n && !str_is(version, "latest") && !str_is(version, RETORT_VERSION))
        return false;
    row_fill(ret, RETORT_VERSION, name, matter_of(name));
    return true;
}

void own_skill_mount(const char *name, json_t *ret)
{
    for (size_t i = 0; i < COUNT(files); i++) {
        if (strcmp(files[i].skill, name) != 0)
            continue;
        json_array_append_new(ret, json_pack("{s:o, s:s, s:s}", "path",
                                             json_sprintf(SKILL_DIR "/%s/%s", name, files[i].path),
                                             "hash", file_at(i)->digest + strlen("sha256:"), "uri",
                                             files[i].uri));
    }
}

struct str own_skill_bytes(struct str uri)
{
    return embedded_find(uri)->bytes;
}
