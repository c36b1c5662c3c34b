/*
 * The skills of a message: found before the model is asked, which is told of them, and brought into
 * the container by the first call. What the container has already is not brought again.
 */
#include "doors/anthropic/skills_int.h"

#include <stdio.h>
#include <stdlib.h>

struct skill_search {
    struct turn *turn; /* borrowed: it waits */
    size_t at;         /* of the skills of the request */
    char version[ID_MAX];
    char name[sizeof(((struct skill_front_matter *)0)->name)];
};

static void find_next(struct skill_search *g);

static const json_t *current(const struct skill_search *g)
{
    return json_array_get(g->turn->params.skills, g->at);
}

static void fail(struct skill_search *g, const struct err *failed)
{
    char skill[NAME_SHOWN], version[NAME_SHOWN];
    struct err e;

    if (failed->kind == ERR_MISSING) {
        err_set(&e, ERR_MISSING, "container.skills: there is no skill `%s` of version `%s`",
                name_show(skill, view_of(current(g), "skill_id")),
                name_show(version, view_of(current(g), "version").n ? view_of(current(g), "version")
                                                                    : STR("latest")));
        turn_fail(g->turn, &e, CODE_MISSING);
    } else {
        turn_fail(g->turn, failed, NULL);
    }
    free(g);
}

static void fail_too_many(struct skill_search *g)
{
    struct err e;

    err_set(&e, ERR_CALLER, "container.skills: they have more than %d files together",
            SKILL_FILES_MAX);
    fail(g, &e);
}

static void on_files(void *arg, const struct item_row *items, size_t count, uint64_t total,
                     const struct err *failed)
{
    struct skill_search *g = arg;
    json_t *files = g->turn->skill_files;

    (void)total;
    if (turn_is_gone(g->turn))
        return free(g);
    if (failed)
        return fail(g, failed);
    if (json_array_size(files) + count > SKILL_FILES_MAX)
        return fail_too_many(g);
    for (size_t i = 0; i < count; i++) {
        json_t *body = json_loads(items[i].body, 0, NULL);
        json_array_append_new(
            files, json_pack("{s:o, s:s, s:I}", "path",
                             json_sprintf(SKILL_DIR "/%s/%s", g->name, text_of(body, "path")),
                             "hash", items[i].hash, "size", (json_int_t)items[i].size));
        json_decref(body);
    }
    g->at++;
    find_next(g);
}

static void tell_model(struct turn *r, const char *name, const char *description)
{
    if (json_array_size(r->skills) == 1)
        buf_printf(&r->params.system,
                   "%sSkills are folders in the container, with instructions and scripts. When one "
                   "fits what is asked, read its SKILL.md first.\n",
                   r->params.system.n > 0 ? "\n\n" : "");
    buf_printf(&r->params.system, "- %s (/skills/%s/SKILL.md): %s\n", name, name, description);
}

/* The version goes into the answer and to the model. type: whose the skill is. */
static void take_version(struct skill_search *g, const struct item_row *version, const char *type)
{
    struct turn *r = g->turn;
    json_t *body = json_loads(version->body, 0, NULL);

    (void)!str_to_cstr(view_of(body, "name"), g->name, sizeof(g->name));
    json_array_append_new(r->skills, json_pack("{s:s, s:s, s:s}", "type", type, "skill_id",
                                               version->parent, "version", version->id));
    tell_model(r, g->name, text_of(body, "description"));
    json_decref(body);
}

static const struct err missing = {.kind = ERR_MISSING};

static void on_version(void *arg, const struct item_row *item, const struct err *failed)
{
    struct skill_search *g = arg;
    struct turn *r = g->turn;
    struct item_filter f = {.kind = SKILL_KIND_FILE, .owner = ""};

    if (turn_is_gone(r))
        return free(g);
    if (failed || !str_is(view_of(current(g), "skill_id"), item->parent))
        return fail(g, failed ? failed : &missing);
    take_version(g, item, SKILL_OF_CLIENT);
    f.parent = item->id;
    r->waits++;
    service_item_list(r->service, &r->caller, &f, on_files, g);
}

static void get_version(struct skill_search *g, struct str version)
{
    struct turn *r = g->turn;

    r->waits++;
    service_item_get(r->service, &r->caller, SKILL_KIND_V, version, on_version, g);
}

static void on_skill(void *arg, const struct item_row *item, const struct err *failed)
{
    struct skill_search *g = arg;
    json_t *body;

    if (turn_is_gone(g->turn))
        return free(g);
    if (failed)
        return fail(g, failed);
    body = json_loads(item->body, 0, NULL);
    get_version(g, view_of(body, "latest"));
    json_decref(body);
}

static void take_own(struct skill_search *g)
{
    AUTO(item_row_done) struct item_row version = {0};
    const char *id = text_of(current(g), "skill_id");

    if (!own_version_row(id, view_of(current(g), "version"), &version))
        return fail(g, &missing);
    take_version(g, &version, SKILL_OF_SERVER);
    own_skill_mount(id, g->turn->skill_files);
    if (json_array_size(g->turn->skill_files) > SKILL_FILES_MAX)
        return fail_too_many(g);
    g->at++;
    find_next(g);
}

static void find_next(struct skill_search *g)
{
    struct turn *r = g->turn;
    struct str version;

    if (!current(g)) {
        free(g);
        container_prepare(r);
        return;
    }
    if (str_is(view_of(current(g), "type"), SKILL_OF_SERVER))
        return take_own(g);
    version = view_of(current(g), "version");
    if (version.n && !str_is(version, "latest"))
        return get_version(g, version);
    r->waits++;
    service_item_get(r->service, &r->caller, SKILL_KIND, view_of(current(g), "skill_id"), on_skill,
                     g);
}

void skills_prepare(struct turn *r)
{
    struct skill_search *g = mem_zalloc(sizeof(*g));

    g->turn = r;
    find_next(g);
}

/* --- what the container has already --- */

static bool is_in(const struct space_file *files, size_t count, const json_t *file)
{
    for (size_t i = 0; i < count; i++)
        if (str_eq(files[i].path, view_of(file, "path")))
            return str_is(view_of(file, "hash"), files[i].hash);
    return false;
}

static void on_space(void *arg, const struct space_file *files, size_t count,
                     const struct err *failed)
{
    struct turn *r = arg;

    if (turn_is_gone(r))
        return;
    if (failed)
        return turn_fail(r, failed, NULL);
    for (size_t i = json_array_size(r->skill_files); i > 0; i--)
        if (is_in(files, count, json_array_get(r->skill_files, i - 1)))
            json_array_remove(r->skill_files, i - 1);
    turn_work(r);
}

void skills_mount(struct turn *r)
{
    r->waits++;
    service_space_list(r->service, &r->caller, str_of(r->session), on_space, r);
}

/* --- the request --- */

int skills_check(const json_t *skills, struct err *e)
{
    const json_t *one;
    size_t i;

    if (skills && !json_is_null(skills) && !json_is_array(skills))
        return err_set(e, ERR_CALLER, "container.skills: Input should be an array");
    if (json_array_size(skills) > SKILLS_MOUNTED)
        return err_set(e, ERR_CALLER, "container.skills: at most %d", SKILLS_MOUNTED);
    json_array_foreach((json_t *)skills, i, one) {
        const char *type = text_of(one, "type"), *id = text_of(one, "skill_id");
        const json_t *version = json_object_get(one, "version");

        if (!id)
            return err_set(e, ERR_CALLER, "container.skills.%zu.skill_id: Field required", i);
        if (type && strcmp(type, SKILL_OF_SERVER) == 0 && !own_skill_is(str_of(id)))
            return err_set(
                e, ERR_CALLER,
                "container.skills.%zu: `%.64s` is no skill of this server, which has `%s`. "
                "Upload one of yours with POST /v1/skills, and name it with the type "
                "custom",
                i, id, own_skill_at(0));
        if (!type || (strcmp(type, SKILL_OF_SERVER) != 0 && strcmp(type, SKILL_OF_CLIENT) != 0))
            return err_set(e, ERR_CALLER,
                           "container.skills.%zu.type: Input should be 'custom' or 'anthropic'", i);
        if (version && !json_is_null(version) && !json_is_string(version))
            return err_set(e, ERR_CALLER,
                           "container.skills.%zu.version: Input should be a valid string", i);
        for (size_t k = 0; k < i; k++)
            if (str_is(view_of(json_array_get(skills, k), "skill_id"), id))
                return err_set(e, ERR_CALLER, "container.skills.%zu: `%.64s` is there twice", i,
                               id);
    }
    return 0;
}
