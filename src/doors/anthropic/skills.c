/* The routes of skills, in the shapes of old and of new clients. */
#include "doors/anthropic/skills_int.h"

#include <stdio.h>
#include <stdlib.h>

/* --- what clients see --- */

/* Clients of the beta have a word where newer ones have an object. */
static json_t *source_of(struct request *r, const struct item_row *row)
{
    static const char beta[] = "skills-2025-10-02";
    struct str named = request_header(r, "anthropic-beta");
    const char *source = own_skill_is(str_of(row->id)) ? SKILL_OF_SERVER : SKILL_OF_CLIENT;

    if (named.n && memmem(named.p, named.n, beta, sizeof(beta) - 1))
        return json_string(source);
    return json_pack("{s:s}", "type", source);
}

static json_t *skill_show(struct request *r, const struct item_row *row)
{
    json_t *body = json_loads(row->body, 0, NULL), *title = json_object_get(body, "title");
    json_t *latest = json_object_get(body, "latest");
    json_t *v =
        json_pack("{s:s, s:s, s:O?, s:O?, s:O?, s:O?, s:o, s:o, s:o}", "id", row->id, "type",
                  "skill", "display_title", title, "display_name", title, "latest_version", latest,
                  "latest_version_id", latest, "source", source_of(r, row), "created_at",
                  time_json(row->created_ms), "updated_at", time_json(row->updated_ms));

    json_decref(body);
    return v;
}

static json_t *version_show(struct request *r, const struct item_row *row)
{
    json_t *body = json_loads(row->body, 0, NULL), *name = json_object_get(body, "name");
    json_t *v = json_pack(
        "{s:s, s:s, s:s, s:s, s:O?, s:O?, s:O?, s:o}", "id", row->id, "type", "skill_version",
        "version", row->id, "skill_id", row->parent, "name", name, "directory", name, "description",
        json_object_get(body, "description"), "created_at", time_json(row->created_ms));

    (void)r;
    json_decref(body);
    return v;
}

void skill_fail(struct request *r, const struct err *failed)
{
    char skill[NAME_SHOWN], version[NAME_SHOWN];

    if (failed->kind == ERR_MISSING && request_path(r, "version").n)
        answer_fail(r, 404, CODE_MISSING, NULL, "Skill version `%s` of `%s` not found.",
                    name_show(version, request_path(r, "version")),
                    name_show(skill, request_path(r, "skill")));
    else if (failed->kind == ERR_MISSING)
        answer_fail(r, 404, CODE_MISSING, NULL, "Skill `%s` not found.",
                    name_show(skill, request_path(r, "skill")));
    else if (failed->kind == ERR_LIMIT && failed->sys == FILE_QUOTA)
        answer_fail(r, 400, CODE_STORAGE_QUOTA, NULL, "%s", failed->text);
    else
        anthropic_fail(r, failed);
}

bool skill_is_fixed(struct request *r)
{
    if (!own_skill_is(request_path(r, "skill")))
        return false;
    answer_fail(r, 400, CODE_INVALID, NULL, "The skill `%s` is part of the server.",
                request_path(r, "skill").p);
    return true;
}

/* --- one --- */

static const struct err no_version = {.kind = ERR_MISSING};

void skill_on_one(void *arg, const struct item_row *item, const struct err *failed)
{
    if (failed)
        skill_fail(arg, failed);
    else
        answer_json(arg, 200, skill_show(arg, item));
}

void handle_skill(struct request *r)
{
    AUTO(item_row_done) struct item_row own = {0};

    if (own_skill_is(request_path(r, "skill"))) {
        own_skill_row(request_path(r, "skill").p, &own);
        return skill_on_one(r, &own, NULL);
    }
    service_item_get(request_service(r), request_caller(r), SKILL_KIND, request_path(r, "skill"),
                     skill_on_one, r);
}

bool skill_is_version(struct request *r, const struct item_row *item, const struct err *failed)
{
    if (!failed && !str_is(request_path(r, "skill"), item->parent))
        failed = &no_version;
    if (failed)
        skill_fail(r, failed);
    return !failed;
}

void skill_on_version(void *arg, const struct item_row *item, const struct err *failed)
{
    struct request *r = arg;

    if (skill_is_version(r, item, failed))
        answer_json(r, 200, version_show(r, item));
}

void handle_skill_version(struct request *r)
{
    AUTO(item_row_done) struct item_row own = {0};
    struct str skill = request_path(r, "skill");

    if (own_skill_is(skill)) {
        bool found = own_version_row(skill.p, request_path(r, "version"), &own);
        return skill_on_version(r, &own, found ? NULL : &no_version);
    }
    service_item_get(request_service(r), request_caller(r), SKILL_KIND_V,
                     request_path(r, "version"), skill_on_version, r);
}

/* --- lists --- */

struct skill_list {
    struct request *r; /* borrowed: until it is answered */
    size_t limit;
    size_t own; /* how many of the program's follow those of the tenant */
    json_t *(*show)(struct request *r, const struct item_row *row);
};

static void add_own(const struct skill_list *l, json_t *data)
{
    for (size_t i = 0; i < l->own; i++) {
        AUTO(item_row_done) struct item_row row = {0};
        own_skill_row(own_skill_at(i), &row);
        json_array_append_new(data, l->show(l->r, &row));
    }
}

/* One more than the page has is asked for, to know whether there is more. The program's own stand
 * together on the last page, which has nothing else where the others have filled the one before. */
static void on_list(void *arg, const struct item_row *items, size_t count, uint64_t total,
                    const struct err *failed)
{
    struct skill_list *l = arg;
    json_t *data;
    bool more;

    (void)total;
    if (failed)
        return skill_fail(l->r, failed);
    data = json_array();
    for (size_t i = 0; i < count && i < l->limit; i++)
        json_array_append_new(data, l->show(l->r, &items[i]));
    more = count > l->limit || (count > 0 && count + l->own > l->limit);
    if (!more)
        add_own(l, data);
    answer_json(l->r, 200, list_value(data, more, false));
}

static struct skill_list *list_new(struct request *r)
{
    struct skill_list *l = mem_zalloc(sizeof(*l));

    l->r = r;
    request_keep(r, free, l);
    return l;
}

static void list(struct skill_list *l, const char *kind, const char *prefix, const char *parent)
{
    struct list_query want;
    struct item_filter f = {.kind = kind, .owner = "", .parent = parent};

    if (!list_query_read(l->r, prefix, &want))
        return;
    if (want.newer)
        return answer_fail(l->r, 400, CODE_INVALID, "before_id",
                           "before_id: this list is read from the newest on, by page");
    l->limit = want.limit;
    f.page = (struct page){.after = want.from.n ? want.from.p : NULL,
                           .after_ms = want.from.n ? id_ms(want.from) : 0,
                           .limit = want.limit + 1};
    service_item_list(request_service(l->r), request_caller(l->r), &f, on_list, l);
}

void handle_skills(struct request *r)
{
    struct skill_list *l = list_new(r);
    struct str source = request_query(r, "source");

    l->show = skill_show;
    while ((!source.n || str_is(source, SKILL_OF_SERVER)) && own_skill_at(l->own))
        l->own++;
    if (source.n && !str_is(source, SKILL_OF_CLIENT))
        return on_list(l, NULL, 0, 0, NULL);
    list(l, SKILL_KIND, SKILL_PREFIX, NULL);
}

static void on_skill_to_list(void *arg, const struct item_row *item, const struct err *failed)
{
    struct skill_list *l = arg;

    l->show = version_show;
    if (failed)
        skill_fail(l->r, failed);
    else
        list(l, SKILL_KIND_V, SKILL_VERSION, item->id);
}

static void answer_own_version(struct request *r)
{
    AUTO(item_row_done) struct item_row own = {0};

    (void)!own_version_row(request_path(r, "skill").p, STR("latest"), &own);
    answer_json(r, 200, list_value(json_pack("[o]", version_show(r, &own)), false, false));
}

void handle_skill_versions(struct request *r)
{
    if (own_skill_is(request_path(r, "skill")))
        return answer_own_version(r);
    service_item_get(request_service(r), request_caller(r), SKILL_KIND, request_path(r, "skill"),
                     on_skill_to_list, list_new(r));
}

/* --- deletion --- */

static const char *const tree[] = {SKILL_KIND, SKILL_KIND_V, SKILL_KIND_FILE, NULL};

static void on_skill_deleted(void *arg, const struct err *failed)
{
    struct request *r = arg;

    if (failed)
        return skill_fail(r, failed);
    answer_json(r, 200,
                json_pack("{s:s, s:s}", "id", request_path(r, "skill").p, "type", "skill_deleted"));
}

void handle_skill_delete(struct request *r)
{
    if (skill_is_fixed(r))
        return;
    service_items_delete(request_service(r), request_caller(r), tree, request_path(r, "skill"),
                         on_skill_deleted, r);
}

static void answer_version_deleted(struct request *r)
{
    answer_json(r, 200,
                json_pack("{s:s, s:s}", "id", request_path(r, "version").p, "type",
                          "skill_version_deleted"));
}

static void on_skill_changed(void *arg, const struct err *failed)
{
    if (failed)
        skill_fail(arg, failed);
    else
        answer_version_deleted(arg);
}

/* What is the newest now; NULL: there is no version left. */
struct latest_change {
    struct request *r; /* borrowed: until it is answered */
    char latest[ID_MAX];
};

static void on_skill_to_change(void *arg, const struct item_row *item, const struct err *failed)
{
    struct latest_change *l = arg;
    json_t *body = item ? json_loads(item->body, 0, NULL) : NULL;
    AUTO_FREE char *text = NULL;
    char kind[] = SKILL_KIND;

    if (failed)
        return skill_fail(l->r, failed);
    if (str_is(view_of(body, "latest"), l->latest)) {
        json_decref(body);
        return answer_version_deleted(l->r);
    }
    json_object_set_new(body, "latest", *l->latest ? json_string(l->latest) : json_null());
    text = json_dumps(body, JSON_COMPACT);
    json_decref(body);
    service_item_put(
        request_service(l->r), request_caller(l->r),
        &(struct item_row){
            .id = item->id, .kind = kind, .created_ms = item->created_ms, .body = text},
        on_skill_changed, l->r);
}

static void on_newest(void *arg, const struct item_row *items, size_t count, uint64_t total,
                      const struct err *failed)
{
    struct request *r = arg;
    struct latest_change *l = mem_zalloc(sizeof(*l));

    (void)total;
    l->r = r;
    request_keep(r, free, l);
    if (failed)
        return skill_fail(r, failed);
    if (count > 0)
        snprintf(l->latest, sizeof(l->latest), "%s", items[0].id);
    service_item_get(request_service(r), request_caller(r), SKILL_KIND, request_path(r, "skill"),
                     on_skill_to_change, l);
}

static void on_version_deleted(void *arg, const struct err *failed)
{
    struct request *r = arg;
    AUTO_FREE char *skill = mem_strndup(request_path(r, "skill"));
    const struct item_filter f = {
        .kind = SKILL_KIND_V, .owner = "", .parent = skill, .page.limit = 1};

    if (failed)
        return skill_fail(r, failed);
    service_item_list(request_service(r), request_caller(r), &f, on_newest, r);
}

static void on_version_to_delete(void *arg, const struct item_row *item, const struct err *failed)
{
    struct request *r = arg;

    if (skill_is_version(r, item, failed))
        service_items_delete(request_service(r), request_caller(r), tree + 1, str_of(item->id),
                             on_version_deleted, r);
}

void handle_skill_version_delete(struct request *r)
{
    if (skill_is_fixed(r))
        return;
    service_item_get(request_service(r), request_caller(r), SKILL_KIND_V,
                     request_path(r, "version"), on_version_to_delete, r);
}
