/* The models of the settings, and which of them a tenant asks. */
#include "model/model_int.h"

#include <stdlib.h>

#define URL_MAX 1024
#define KEY_MAX (4 * KiB)

/* The default model of a tenant. */
struct tenant_model {
    char *tenant; /* owned */
    size_t model;
};

struct models {
    struct web *web;      /* owned */
    struct model **model; /* owned, as is each model; the scripted one is last */
    size_t count;
    size_t standard;
    struct tenant_model *tenants; /* owned */
    size_t tenant_count;
};

/* --- asking --- */

struct model_call *model_ask(struct model *m, const struct model_ask *ask,
                             const struct model_watcher *w, void *arg)
{
    return m->ops->ask(m, ask, w, arg);
}

void model_call_cancel(struct model_call *c)
{
    c->model->ops->cancel(c);
}

/* --- the settings --- */

static bool is_word(const char *text, size_t max)
{
    size_t n = strlen(text);

    for (size_t i = 0; i < n; i++)
        if (text[i] <= ' ' || text[i] > '~')
            return false;
    return n > 0 && n <= max;
}

/* No user and no query, which may hold secrets: URLs are shown. */
static bool is_base_url(const char *url)
{
    size_t scheme = strncmp(url, "http://", 7) == 0 ? 7 : strncmp(url, "https://", 8) == 0 ? 8 : 0;

    return scheme > 0 && is_word(url, URL_MAX) && !strpbrk(url, "?#@\"\\<>") && url[scheme] &&
           url[scheme] != '/';
}

static size_t find(const struct models_config *c, struct str label)
{
    size_t at = 0;

    while (at < c->count && !str_is(label, c->models[at].label))
        at++;
    if (at == c->count && (!c->script || !str_is(label, "scripted")))
        at++;
    return at; /* count: the scripted one; more: no such model */
}

static int check_model(const struct models_config *c, size_t at, struct err *e)
{
    const struct model_config *m = &c->models[at];

    if (find(c, str_of(m->label)) != at || strcmp(m->label, "scripted") == 0)
        return err_set(e, ERR_CALLER, "model %s: there is one of this name already", m->label);
    if (!m->url || !is_base_url(m->url))
        return err_set(e, ERR_CALLER,
                       "model %s: url must be one such as http://127.0.0.1:8080/v1, without a user "
                       "or a query",
                       m->label);
    if (m->key && *m->key && !is_word(m->key, KEY_MAX))
        return err_set(e, ERR_CALLER, "model %s: the key has blanks or other strange characters",
                       m->label);
    if (m->name && *m->name && !is_word(m->name, URL_MAX))
        return err_set(e, ERR_CALLER, "model %s: name has blanks or other strange characters",
                       m->label);
    if (m->proxy && *m->proxy && !is_base_url(m->proxy))
        return err_set(e, ERR_CALLER, "model %s: proxy must be a URL such as http://127.0.0.1:3128",
                       m->label);
    return 0;
}

/* Reads "acme=fast, beta=local" into ms; ms NULL: only checks it. */
static int read_tenants(const struct models_config *c, struct models *ms, struct err *e)
{
    char shown[NAME_SHOWN];

    for (const char *p = c->tenants; p && *p; p += *p == ',') {
        struct str pair = {p, strcspn(p, ",")}, who, whom;
        const char *equals = memchr(pair.p, '=', pair.n);
        size_t at;

        p += pair.n;
        who = str_trim((struct str){pair.p, equals ? (size_t)(equals - pair.p) : 0});
        whom =
            str_trim((struct str){equals ? equals + 1 : p, equals ? (size_t)(p - equals) - 1 : 0});
        at = find(c, whom);
        if (who.n == 0 || whom.n == 0)
            return err_set(e, ERR_CALLER, "model-tenants: '%s' is not TENANT=MODEL",
                           name_show(shown, str_trim(pair)));
        if (at > c->count)
            return err_set(e, ERR_CALLER, "model-tenants: there is no model %s",
                           name_show(shown, whom));
        if (!ms)
            continue;
        ms->tenants = mem_realloc(ms->tenants, (ms->tenant_count + 1) * sizeof(*ms->tenants));
        ms->tenants[ms->tenant_count++] = (struct tenant_model){mem_strndup(who), at};
    }
    return 0;
}

int models_check(const struct models_config *c, struct err *e)
{
    char shown[NAME_SHOWN];

    for (size_t i = 0; i < c->count; i++)
        if (check_model(c, i, e) < 0)
            return -1;
    if (c->standard && find(c, str_of(c->standard)) > c->count)
        return err_set(e, ERR_CALLER, "model: there is no model %s",
                       name_show(shown, str_of(c->standard)));
    return read_tenants(c, NULL, e);
}

/* --- the models --- */

static int add_all(struct models *ms, const struct models_config *c, struct err *e)
{
    ms->model = mem_zalloc((c->count + 1) * sizeof(struct model *));
    ms->web = web_new(c->loop);
    for (; ms->count < c->count; ms->count++)
        ms->model[ms->count] = endpoint_new(c->loop, ms->web, &c->models[ms->count]);
    if (c->script) {
        ms->model[ms->count] =
            scripted_new(c->loop, strcmp(c->script, "-") == 0 ? NULL : c->script, e);
        if (!ms->model[ms->count])
            return -1;
        ms->count++;
    }
    ms->standard = c->standard ? find(c, str_of(c->standard)) : 0;
    return read_tenants(c, ms, e);
}

struct models *models_new(const struct models_config *c, struct err *e)
{
    struct models *ms;

    if (models_check(c, e) < 0)
        return NULL;
    ms = mem_zalloc(sizeof(*ms));
    if (add_all(ms, c, e) < 0) {
        models_free(ms);
        return NULL;
    }
    return ms;
}

void models_free(struct models *ms)
{
    if (!ms)
        return;
    for (size_t i = 0; i < ms->count; i++)
        ms->model[i]->ops->free(ms->model[i]);
    web_free(ms->web);
    for (size_t i = 0; i < ms->tenant_count; i++)
        free(ms->tenants[i].tenant);
    free(ms->tenants);
    free(ms->model);
    free(ms);
}

/* Index of the tenant's default model. */
static size_t standard_of(const struct models *ms, const char *tenant)
{
    for (size_t i = 0; tenant && i < ms->tenant_count; i++)
        if (strcmp(ms->tenants[i].tenant, tenant) == 0)
            return ms->tenants[i].model;
    return ms->standard;
}

struct model *models_find(struct models *ms, const char *tenant, struct str wanted)
{
    for (size_t i = 0; wanted.n > 0 && i < ms->count; i++)
        if (str_is(wanted, ms->model[i]->label))
            return ms->model[i];
    return ms->count > 0 ? ms->model[standard_of(ms, tenant)] : NULL;
}

void model_about(struct model *m, struct str name, model_about_fn *fn, void *arg)
{
    json_t *nothing;

    if (m->ops->about)
        return m->ops->about(m, name, fn, arg);
    nothing = json_object();
    fn(arg, nothing);
    json_decref(nothing);
}

struct model *models_at(struct models *ms, const char *tenant, size_t i)
{
    size_t first = standard_of(ms, tenant);

    if (i >= ms->count)
        return NULL;
    if (i == 0)
        return ms->model[first];
    return ms->model[i <= first ? i - 1 : i];
}
