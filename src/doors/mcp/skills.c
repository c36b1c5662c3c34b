/*
 * Skills that are part of the program: each teaches a model to work with one tool set, whose
 * clients see no other. Their files come from skills/ in the source tree, are listed with their
 * digests, and read as resources.
 */
#include "doors/mcp/resource.h"

#include <stdio.h>
#include <stdlib.h>

#define TTL_MS 3600000

static bool is_skill(const struct embedded *f)
{
    return strncmp(f->uri, "skill://", 8) == 0;
}

bool embedded_is_shown(const struct embedded *f, const struct tool_set *set)
{
    size_t n = set->skill ? strlen(set->skill) : 0;

    return !is_skill(f) ||
           (n > 0 && strncmp(f->uri + 8, set->skill, n) == 0 && f->uri[8 + n] == '/');
}

const struct embedded *embedded_find(struct str uri)
{
    for (const struct embedded *f = embedded; f->uri; f++)
        if (str_is(uri, f->uri))
            return f;
    return NULL;
}

static const char *title_of(const struct embedded *f)
{
    if (f->matter)
        return "Skill: how to work with this code interpreter";
    if (strstr(f->uri, "/scripts/"))
        return "Skill: a script to be run";
    return is_skill(f) ? "Skill: recipes" : "Page that shows the result of a run";
}

/* A skill goes by its own name and description, as it does in skills/list. */
json_t *embedded_show(const struct embedded *f, const struct protocol_version *v)
{
    json_t *matter = f->matter ? json_loads(f->matter, 0, NULL) : NULL;
    json_t *shown = json_pack("{s:s, s:s, s:s, s:I}", "uri", f->uri, "name", f->name, "mimeType",
                              f->mime, "size", (json_int_t)f->bytes.n);

    if (matter)
        json_object_update(shown, matter);
    if (v->has & HAS_STRUCTURED)
        json_object_set_new(shown, "title", json_string(title_of(f)));
    json_decref(matter);
    return shown;
}

/* --- skills/list, skills/get --- */

/* The folder of a SKILL.md, with the slash. */
static struct str folder_of(const struct embedded *skill)
{
    return (struct str){skill->uri, strlen(skill->uri) - strlen(skill->name)};
}

static bool is_in(const struct embedded *f, struct str folder)
{
    return strncmp(f->uri, folder.p, folder.n) == 0;
}

static json_t *skill_show(const struct embedded *skill)
{
    json_t *files = json_array();

    for (const struct embedded *f = embedded; f->uri; f++)
        if (is_in(f, folder_of(skill)))
            json_array_append_new(files, json_pack("{s:s, s:s, s:I}", "uri", f->uri, "digest",
                                                   f->digest, "size", (json_int_t)f->bytes.n));
    return json_pack("{s:s, s:o, s:o}", "uri", skill->uri, "frontmatter",
                     json_loads(skill->matter, 0, NULL), "resources", files);
}

void handle_skills_list(struct call *c)
{
    json_t *list;

    if (!call_has_one_page(c))
        return;
    list = json_array();
    for (const struct embedded *f = embedded; f->uri; f++)
        if (f->matter && embedded_is_shown(f, c->tool_set))
            json_array_append_new(list, skill_show(f));
    call_result_cached(c, json_pack("{s:o}", "skills", list), TTL_MS, "public");
}

void handle_skills_get(struct call *c)
{
    struct str uri = json_view(json_object_get(c->params, "uri"));
    const struct embedded *f = uri.p ? embedded_find(uri) : NULL;

    if (!f || !f->matter || !embedded_is_shown(f, c->tool_set)) {
        call_error(c, RPC_PARAMS, json_pack("{s:o}", "uri", record_text(uri)),
                   "this is no skill: skills/list shows what there is");
        return;
    }
    call_result_cached(c, json_pack("{s:o}", "skill", skill_show(f)), TTL_MS, "public");
}

/* --- resources/directory/read --- */

/* A child is a file, or the first part of a deeper path; of those each once, as they follow one
 * another. */
static void add_child(json_t *list, const struct embedded *f, size_t folder_n,
                      const struct protocol_version *v)
{
    const char *name = f->uri + folder_n, *slash = strchr(name, '/');
    const json_t *last = json_array_get(list, json_array_size(list) - 1);
    char uri[URI_MAX];

    if (!slash) {
        json_array_append_new(list, embedded_show(f, v));
        return;
    }
    snprintf(uri, sizeof(uri), "%.*s", (int)(slash - f->uri), f->uri);
    if (!last || !str_is(json_view(json_object_get(last, "uri")), uri))
        json_array_append_new(list,
                              json_pack("{s:s, s:s%, s:s}", "uri", uri, "name", name,
                                        (size_t)(slash - name), "mimeType", "inode/directory"));
}

/* With or without a slash at its end; "skill:" and its slashes are no directory. */
static json_t *children(const struct call *c, struct str uri)
{
    json_t *list = json_array();

    if (uri.n > 8 && uri.p[uri.n - 1] == '/')
        uri.n--;
    for (const struct embedded *f = embedded; f->uri; f++)
        if (is_skill(f) && embedded_is_shown(f, c->tool_set) && uri.n > 8 && is_in(f, uri) &&
            f->uri[uri.n] == '/')
            add_child(list, f, uri.n + 1, c->client.version);
    return list;
}

void handle_directory_read(struct call *c)
{
    struct str uri = json_view(json_object_get(c->params, "uri"));
    json_t *list;

    if (!call_has_one_page(c))
        return;
    list = children(c, uri);
    if (json_array_size(list) > 0) {
        call_result_cached(c, json_pack("{s:o}", "resources", list), TTL_MS, "public");
        return;
    }
    json_decref(list);
    call_error(c, RPC_PARAMS, json_pack("{s:o}", "uri", record_text(uri)),
               "this is no directory: skills/list shows what there is");
}
