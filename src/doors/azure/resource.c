/*
 * The resource of a session pool: a document that is put, changed, read and deleted. The
 * pool is made of it (pool_spec.c); what the document says is kept and given back, secrets
 * left out, with what is known of the pool.
 */
#include "doors/azure/azure_int.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#define POOL_STARTS "it is still starting" /* as the service says it */

/* --- as it is shown --- */

static void set_at(json_t *object, const char *name, json_t *value)
{
    json_t *before = json_nocase(object, name);
    const char *key;
    json_t *member;
    void *next;

    json_object_foreach_safe(object, next, key, member)
        if (before && member == before)
            json_object_del(object, key);
    json_object_set_new(object, name, value);
}

/* Names alone. */
static void hide_secrets(json_t *props)
{
    json_t *secrets = json_nocase(props, "secrets"), *secret;
    json_t *names = json_array();
    size_t i;

    json_array_foreach(secrets, i, secret)
        json_array_append_new(names, json_pack("{s:O?}", "name", json_nocase(secret, "name")));
    if (secrets)
        set_at(props, "secrets", names);
    else
        json_decref(names);
}

/* A pool of the settings, as a document would have it. */
static json_t *document_of(const struct pool_info *info)
{
    const struct service_pool *p = info->pool;

    return json_pack("{s:{s:s, s:s, s:{s:I, s:I}, s:{s:{s:s, s:I}}, s:{s:s}}}", "properties",
                     "poolManagementType", "Dynamic", "containerType", "PythonLTS",
                     "scaleConfiguration", "maxConcurrentSessions", (json_int_t)p->max_sessions,
                     "readySessionInstances", (json_int_t)p->ready, "dynamicPoolConfiguration",
                     "lifecycleConfiguration", "lifecycleType", "Timed", "cooldownPeriodInSeconds",
                     (json_int_t)(p->idle_ms / 1000), "sessionNetworkConfiguration", "status",
                     p->egress == EGRESS_NONE ? "EgressDisabled" : "EgressEnabled");
}

const char *pool_state(const struct pool_info *info)
{
    if (info->up)
        return "Succeeded";
    return info->why && strcmp(info->why, POOL_STARTS) == 0 ? "InProgress" : "Failed";
}

bool pool_has_mcp(const struct pool_info *info)
{
    return info->fixed ||
           json_is_true(
               json_at(info->document, "document.properties.mcpServerSettings.isMcpServerEnabled"));
}

bool pool_takes_keys(const struct pool_info *info)
{
    return !json_is_true(
        json_at(info->document, "document.properties.mcpServerSettings.isMcpServerApiKeyDisabled"));
}

/* The version at the beginning of text: 3 or 3.12.4. "312" is none, as nobody knows where its point
 * is. */
static struct str version_at(struct str text)
{
    size_t n = 0;

    while (n < text.n && (isdigit((unsigned char)text.p[n]) || text.p[n] == '.'))
        n++;
    while (n && text.p[n - 1] == '.')
        n--;
    return (struct str){text.p, n > 1 && text.p[1] != '.' ? 0 : n};
}

/* "3.12" of "codeinterpreter:0.9.18-python3.12" and of "torch:2.4-py3.12"; empty: its name does not
 * tell. */
static struct str python_of(struct str image)
{
    static const char word[] = "py", rest[] = "thon";
    const char *at;

    while (image.n && (at = memmem(image.p, image.n, word, strlen(word)))) {
        struct str version;

        image = str_from(image, (size_t)(at - image.p) + strlen(word));
        version = image;
        if (version.n > strlen(rest) && memcmp(version.p, rest, strlen(rest)) == 0)
            version = str_from(version, strlen(rest));
        if (version.n && strchr(":-_", version.p[0]))
            version = str_from(version, 1);
        version = version_at(version);
        if (version.n > 0)
            return version;
    }
    return STR("");
}

/* Whether one version is the other, or the beginning of it: 3.12 is 3.12.4, and 3.1 is not. */
static bool version_fits(struct str wanted, struct str have)
{
    return have.n >= wanted.n && memcmp(have.p, wanted.p, wanted.n) == 0 &&
           (have.n == wanted.n || have.p[wanted.n] == '.');
}

/* An image stands for an environment, whose Python may be another: then its version is not had. */
static void tell_python(json_t *ignored, const struct pool_info *info, const json_t *props)
{
    const json_t *containers = json_at(props, "customContainerTemplate.containers");
    struct str wanted = python_of(json_view(json_at(json_array_get(containers, 0), "image")));

    if (wanted.n == 0 || !*info->python || version_fits(wanted, str_of(info->python)))
        return;
    json_array_append_new(
        ignored,
        json_pack("{s:s, s:o}", "property", "properties.customContainerTemplate.containers[].image",
                  "reason",
                  json_sprintf("the image has Python %.*s, and the environment that stands "
                               "for it has %s",
                               (int)wanted.n, wanted.p, info->python)));
}

static void put_live(struct azure_request *v, json_t *props, const struct pool_info *info,
                     const char *url)
{
    json_t *mcp = json_pack("{s:b, s:b}", "isMcpServerEnabled", pool_has_mcp(info),
                            "isMcpServerApiKeyDisabled", !pool_takes_keys(info));
    json_t *ours = json_pack("{s:s, s:b}", "python", info->python, "fixed", info->fixed);
    json_t *ignored = json_at(info->document, "retort.ignored"), *probes;

    if (pool_has_mcp(info))
        json_object_set_new(mcp, "mcpServerEndpoint", json_sprintf("%s/mcp", url));
    set_at(props, "mcpServerSettings", mcp);
    set_at(props, "poolManagementEndpoint", json_string(url));
    set_at(props, "nodeCount", json_integer(1));
    set_at(props, "provisioningState", json_string(pool_state(info)));
    set_at(props, "templateUpdateStatus",
           json_pack("{s:{s:{s:I, s:I, s:i, s:i}}}", "activeTemplate", "status", "readyCount",
                     (json_int_t)info->parked, "allocatedCount", (json_int_t)info->live,
                     "pendingCount", 0, "crashCount", 0));
    ignored = ignored ? json_deep_copy(ignored) : json_array();
    tell_python(ignored, info, props);
    json_object_set_new(ours, "ignored", ignored);
    json_object_set(ours, "environment", json_at(info->document, "retort.environment"));
    probes_wake(v->azure->probes, azure_service(v));
    probes = probes_show(v->azure->probes, info);
    if (json_array_size(probes) > 0)
        json_object_set(ours, "probes", probes);
    json_decref(probes);
    if (!info->up)
        json_object_set_new(ours, "problem", record_text(str_of(info->why)));
    set_at(props, "retort", ours);
}

/* --- its group --- */

/* Where a pool was made, and under which name: only what was made in a group is told apart by it.
 */
struct place {
    struct str subscription, group, name; /* p NULL: in every group */
};

static struct place place_of(const struct pool_info *info)
{
    return (struct place){
        .subscription = json_view(json_at(info->document, "retort.subscription")),
        .group = json_view(json_at(info->document, "retort.group")),
        .name = json_view(json_at(info->document, "retort.name")),
    };
}

static bool is_here(const struct place *p, const struct azure_target *t)
{
    return !p->group.p || !t->subscription.p ||
           (str_nocase(p->subscription, t->subscription) &&
            (t->group.n == 0 || str_nocase(p->group, t->group)));
}

/* In any case, as Azure has it; ours have small letters. One of the group goes before one of all
 * groups. Below /azure each has the name it is kept under. */
bool pool_find(struct azure_request *v, struct str name, struct pool_info *ret)
{
    struct service *sv = azure_service(v);
    bool found = false;

    for (size_t i = 0; i < service_pool_count(sv); i++) {
        struct pool_info info;
        struct place p;
        bool own;
        service_pool_get(sv, i, &info);
        p = place_of(&info);
        own = p.group.p && v->target.subscription.p;
        if (!str_nocase(name, own ? p.name : str_of(info.pool->name)) || !is_here(&p, &v->target) ||
            (found && !own) || !service_sees_pool(sv, azure_caller(v), info.pool->name))
            continue;
        *ret = info;
        found = true;
    }
    return found;
}

static bool is_taken(struct azure_request *v, const char *name)
{
    struct service *sv = azure_service(v);

    for (size_t i = 0; i < service_pool_count(sv); i++) {
        struct pool_info info;
        service_pool_get(sv, i, &info);
        if (strcmp(info.pool->name, name) == 0)
            return true;
    }
    return false;
}

/* The name it is kept under: its own, or, where a pool of another group has that, one with a
 * number. */
static void name_to_keep(struct azure_request *v, struct str name, char ret[POOL_NAME_MAX + 2])
{
    struct pool_info there;
    size_t n = 0;

    for (; n < name.n && n < POOL_NAME_MAX + 1; n++)
        ret[n] = (char)tolower((unsigned char)name.p[n]);
    ret[n] = '\0';
    if (pool_find(v, name, &there))
        snprintf(ret, POOL_NAME_MAX + 2, "%s", there.pool->name);
    else
        for (unsigned i = 2; is_taken(v, ret) && i < 1000; i++)
            snprintf(ret, POOL_NAME_MAX + 2, "%.*s-%u", (int)(n < 28 ? n : 28), name.p, i);
    for (size_t i = 0; ret[i]; i++)
        ret[i] = (char)tolower((unsigned char)ret[i]);
}

static void put_id(json_t *v, struct azure_request *w, const struct pool_info *info)
{
    const struct azure_target *p = &w->target;
    struct place at = place_of(info);
    AUTO_FREE char *name =
        at.name.n && p->subscription.p ? mem_strndup(at.name) : mem_strdup(info->pool->name);
    struct str group = p->group.n ? p->group : at.group;
    json_t *id =
        p->subscription.p && group.n
            ? json_sprintf("/subscriptions/%.*s/resourceGroups/%.*s/providers/"
                           "Microsoft.App/sessionPools/%s",
                           (int)p->subscription.n, p->subscription.p, (int)group.n, group.p, name)
            : json_sprintf("/azure/pools/%s", info->pool->name);

    set_at(v, "id", id);
    set_at(v, "name", json_string(name));
    set_at(v, "type", json_string("Microsoft.App/sessionPools"));
    if (!json_nocase(v, "location"))
        json_object_set_new(v, "location", json_string("local"));
}

json_t *pool_show(struct azure_request *v, const struct pool_info *info)
{
    json_t *shown =
        info->document ? json_deep_copy(json_at(info->document, "document")) : document_of(info);
    json_t *props = json_nocase(shown, "properties");
    char url[URL_TEXT_MAX];

    snprintf(v->pool_name, sizeof(v->pool_name), "%s", info->pool->name);
    hide_secrets(props);
    put_live(v, props, info, azure_url(v, url));
    put_id(shown, v, info);
    set_at(shown, "systemData",
           json_pack("{s:o, s:o}", "createdAt", time_json(info->created_ms), "lastModifiedAt",
                     time_json(info->updated_ms)));
    return shown;
}

void op_pool_get(struct azure_request *v)
{
    azure_answer(v, 200, pool_show(v, &v->pool));
}

void op_pool_list(struct azure_request *v)
{
    struct service *sv = azure_service(v);
    json_t *value = json_array();

    for (size_t i = 0; i < service_pool_count(sv); i++) {
        struct pool_info info;
        service_pool_get(sv, i, &info);
        struct place p = place_of(&info);
        if (is_here(&p, &v->target) && service_sees_pool(sv, azure_caller(v), info.pool->name))
            json_array_append_new(value, pool_show(v, &info));
    }
    azure_answer(v, 200, json_pack("{s:o, s:n}", "value", value, "nextLink"));
}

/* --- put and changed --- */

/* Where a client of Resource Manager asks how it goes (arm.c). The id names the pool, so that any
 * server that knows the pool can tell. */
static void put_operation(struct azure_request *v, const struct pool_info *info)
{
    char text[URL_TEXT_MAX];
    struct str version = azure_version(v), s = v->target.subscription;

    if (!s.p)
        return;
    snprintf(text, sizeof(text),
             "%.300s/subscriptions/%.*s/providers/Microsoft.App/locations/local/"
             "sessionPoolOperationStatuses/%s.%s?api-version=%.*s",
             request_base_url(v->r), (int)s.n, s.p, azure_caller(v)->request, info->pool->name,
             (int)version.n, version.p);
    answer_header(v->r, "azure-asyncoperation", text);
    answer_header(v->r, "retry-after", info->up ? "0" : "1");
}

static void on_put(void *arg, const struct pool_info *info, const struct err *failed)
{
    struct azure_request *v = arg;

    if (failed)
        azure_fail_err(v, failed, "SessionPoolNotFound");
    else if (v->pool.pool)
        azure_answer(v, 200, pool_show(v, info));
    else {
        put_operation(v, info);
        azure_answer(v, 201, pool_show(v, info));
    }
}

/* What is kept with the pool: the document, what came of it, and where it was made. Owned. */
static json_t *kept_of(struct azure_request *v, struct str name, const json_t *doc,
                       const struct azure_pool_spec *r)
{
    json_t *ours = json_pack("{s:o, s:o}", "ignored", ignored_of(doc), "environment",
                             record_text(r->spec.environment));
    struct pool_info before;
    struct place at = {0};

    if (pool_find(v, name, &before))
        at = place_of(&before);
    else if (v->target.group.n)
        at = (struct place){v->target.subscription, v->target.group, name};
    if (at.group.p) {
        json_object_set_new(ours, "subscription", record_text(at.subscription));
        json_object_set_new(ours, "group", record_text(at.group));
        json_object_set_new(ours, "name", record_text(at.name));
    }
    return json_pack("{s:O, s:o}", "document", doc, "retort", ours);
}

/* A pool that is to be made of a document. */
struct pool_plan {
    struct azure_pool_spec is;
    char name[POOL_NAME_MAX + 2]; /* it is kept under */
    json_t *kept;                 /* owned: with the texts of is */
};

static void plan_done(struct pool_plan *p)
{
    json_decref(p->kept);
}

static int plan_make(struct pool_plan *p, struct azure_request *v, struct str name,
                     const json_t *doc, struct err *e)
{
    json_t *tidy = pool_shape(doc, e);
    int rc = tidy ? azure_pool_spec_read(&p->is, azure_service(v), tidy, e) : -1;

    if (rc == 0) {
        name_to_keep(v, name, p->name);
        p->kept = kept_of(v, name, tidy, &p->is);
        p->is.spec.name = str_of(p->name);
        p->is.spec.document = p->kept;
    }
    json_decref(tidy);
    return rc;
}

bool pool_put(struct azure_request *v, struct str name, const json_t *doc, pool_fn *fn, void *arg)
{
    AUTO(plan_done) struct pool_plan p = {.is.code = "InvalidSessionPool"};
    struct err e = {0};

    if (plan_make(&p, v, name, doc, &e) < 0) {
        azure_fail(v, 400, p.is.code, "%s", e.text);
        return false;
    }
    service_pool_put(azure_service(v), azure_caller(v), &p.is.spec, fn, arg);
    return true;
}

json_t *pool_foresee(struct azure_request *v, struct str name, const json_t *doc, struct err *e)
{
    AUTO(plan_done) struct pool_plan p = {0};
    struct service_pool pool = {.name = p.name};
    struct pool_info info = {.pool = &pool, .python = "", .why = POOL_STARTS};

    if (plan_make(&p, v, name, doc, e) < 0 ||
        service_pool_check(azure_service(v), azure_caller(v), &p.is.spec, e) < 0)
        return NULL;
    info.document = p.kept;
    info.created_ms = info.updated_ms = time_now_ms();
    return pool_show(v, &info);
}

void op_pool_put(struct azure_request *v)
{
    pool_put(v, v->target.pool, v->body, on_put, v);
}

/* As RFC 7396 has it, with names in any case. */
static void merge(json_t *into, const json_t *from, int depth)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)from, key, value) {
        json_t *before = json_nocase(into, key);
        if (json_is_object(value) && json_is_object(before) && depth < DEPLOYMENT_DEPTH)
            merge(before, value, depth + 1);
        else
            set_at(into, key, json_deep_copy(value));
    }
}

void op_pool_patch(struct azure_request *v)
{
    json_t *doc;

    if (v->pool.fixed) {
        azure_fail(v, 409, "Conflict",
                   "this pool is one of the server's settings, and is changed there");
        return;
    }
    doc = json_deep_copy(json_at(v->pool.document, "document"));
    merge(doc, v->body, 0);
    pool_put(v, v->target.pool, doc, on_put, v);
    json_decref(doc);
}

static void on_deleted(void *arg, const struct err *failed)
{
    struct azure_request *v = arg;

    if (failed && failed->kind != ERR_MISSING)
        azure_fail_err(v, failed, "SessionPoolNotFound");
    else
        answer_empty(v->r, 204);
}

void op_pool_delete(struct azure_request *v)
{
    if (!v->pool.pool)
        answer_empty(v->r, 204);
    else
        service_pool_delete(azure_service(v), azure_caller(v), str_of(v->pool_name), on_deleted, v);
}

/* --- credentials of its MCP server --- */

static void on_key(void *arg, const char *secret, const struct err *failed)
{
    struct azure_request *v = arg;

    if (failed && failed->kind == ERR_CONFLICT) /* nobody has a key: none is asked for */
        azure_answer(v, 200,
                     json_pack("{s:s, s:{s:s}}", "apiKey", "none-needed", "retort", "note",
                               "no key has been made on this server, so none is asked for"));
    else if (failed)
        azure_fail_err(v, failed, "SessionPoolNotFound");
    else
        azure_answer(v, 200, json_pack("{s:s}", "apiKey", secret));
}

static void credentials(struct azure_request *v, bool anew)
{
    if (!pool_has_mcp(&v->pool))
        azure_fail(v, 400, "SessionMCPServerNotEnabled",
                   "the MCP server of this pool is not enabled: see mcpServerSettings");
    else if (!pool_takes_keys(&v->pool))
        azure_fail(v, 400, "SessionMCPServerApiKeyDisabled",
                   "the MCP server of this pool takes no such keys: see mcpServerSettings");
    else
        service_pool_key(azure_service(v), azure_caller(v), str_of(v->pool_name), "azure/mcp", anew,
                         on_key, v);
}

void op_credentials_fetch(struct azure_request *v)
{
    credentials(v, false);
}

void op_credentials_rotate(struct azure_request *v)
{
    credentials(v, true);
}
