/*
 * Settings from four places: the defaults, the file, the environment, the
 * arguments. Each replaces what the one before said; all of them go through the
 * rows of options.c. What [pool NAME] says comes last, because it is about that
 * pool alone.
 */
#include "cli/cli_int.h"

#include "cli/environment.h"
#include "cli/listen.h"
#include "cli/state.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define ORIGIN_MAX 700
#define POOLS_MAX  64
#define MODELS_MAX 64

extern char **environ;

void option_env_name(const struct option *o, char ret[ENV_NAME_MAX])
{
    int n = snprintf(ret, ENV_NAME_MAX, "RETORT_%s", o->name);

    assert(n < ENV_NAME_MAX);
    for (char *p = ret; *p; p++) {
        if (*p == '-')
            *p = '_';
        else
            *p = (char)toupper((unsigned char)*p);
    }
}

void config_path(const struct settings *s, char *ret, size_t size)
{
    const char *path = s->config                           ? s->config
                       : access(CONFIG_DEFAULT, F_OK) == 0 ? CONFIG_DEFAULT
                                                           : "";

    snprintf(ret, size, "%s", path);
}

/* --- the environment --- */

static int load_variable(struct settings *s, const struct option *o, const char *name,
                         const char *after, struct err *e)
{
    const char *value = name ? getenv(name) : NULL;
    AUTO_FREE char *text = NULL;

    if (!value || !*value)
        return 0;
    if (asprintf(&text, "%s%s", value, after ? after : "") < 0)
        abort();
    return setting_set(o, s, SOURCE_ENV, name, text, e);
}

/* Variables that another system has for the same thing: ours has the last word. */
static int load_also(struct settings *s, const struct option *o, struct err *e)
{
    if (o->also_root && load_variable(s, o, o->also_root, o->also_unit, e) < 0)
        return -1;
    return load_variable(s, o, o->also, o->also_root ? NULL : o->also_unit, e);
}

static int load_env(struct settings *s, const struct command *c, struct err *e)
{
    enum command_id whose = c->id == COMMAND_MCP ? COMMAND_MCP : COMMAND_SERVE;

    for (size_t i = 0; i < options_count; i++) {
        const struct option *o = &options[i];
        char name[ENV_NAME_MAX];
        const char *value;
        if (!(o->commands & IN(whose)) || (o->not_from & IN(SOURCE_ENV)))
            continue;
        if (load_also(s, o, e) < 0)
            return -1;
        option_env_name(o, name);
        value = getenv(name);
        if (value && setting_set(o, s, SOURCE_ENV, name, value, e) < 0)
            return -1;
    }
    return 0;
}

/* Not an error: the variable may be somebody else's. A slip is told. */
static void warn_of_slips(void)
{
    for (char **v = environ; *v; v++) {
        struct str name = {*v, (size_t)(strchrnul(*v, '=') - *v)};
        char best[ENV_NAME_MAX] = "", own[ENV_NAME_MAX];
        unsigned least = 3;
        if (strncmp(*v, "RETORT_", 7) != 0 || name.n >= ENV_NAME_MAX)
            continue;
        for (size_t i = 0; i < options_count && least > 0; i++) {
            if (!(options[i].commands & IN(COMMAND_SERVE)))
                continue;
            option_env_name(&options[i], own);
            unsigned d = edit_distance((struct str){name.p + 7, name.n - 7}, str_of(own + 7));
            if (d < least) {
                least = d;
                snprintf(best, sizeof(best), "%s", own);
            }
        }
        if (*best && least > 0)
            log_warn("%.*s is no setting; did you mean %s?", (int)name.n, name.p, best);
    }
}

/* --- the file --- */

static bool is_pool(const struct ini_entry *n)
{
    return strncmp(n->section, "pool ", 5) == 0;
}

static bool is_environment(const struct ini_entry *n)
{
    return strncmp(n->section, "environment ", 12) == 0;
}

static bool is_model(const struct ini_entry *n)
{
    return strncmp(n->section, "model ", 6) == 0;
}

/* What stands after the first word of [pool NAME] and its like. */
static const char *own_name(const struct ini_entry *n)
{
    const char *blank = strchr(n->section, ' ');

    return blank + strspn(blank, " \t");
}

static bool is_pool_name(const char *name)
{
    size_t n = strlen(name);

    return n > 0 && n <= POOL_NAME_MAX &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-_.") == n &&
           strchr("-_.", name[0]) == NULL;
}

/* Before the first section, too, it is the server's. */
static const char *section_of(const struct ini_entry *n)
{
    return *n->section ? n->section : "server";
}

static int check_section(const struct ini_entry *n, const char *path, struct err *e)
{
    char shown[NAME_SHOWN];

    if (strcmp(n->section, "server") == 0)
        return 0;
    if (!is_pool(n) && !is_environment(n) && !is_model(n))
        return err_set(e, ERR_CALLER,
                       "%s:%u: there is no section [%s]; there are [server], [pool NAME], "
                       "[environment NAME] and [model NAME]",
                       path, n->line, name_show(shown, str_of(n->section)));
    if (!is_pool_name(own_name(n)))
        return err_set(e, ERR_CALLER,
                       "%s:%u: '%s' is no name for %s: up to %d of a-z, 0-9, '-', '_', '.'", path,
                       n->line, name_show(shown, str_of(own_name(n))),
                       is_pool(n)    ? "a pool"
                       : is_model(n) ? "a model"
                                     : "an environment",
                       POOL_NAME_MAX);
    return 0;
}

static int check_twice(const struct ini *ini, size_t at, const char *path, struct err *e)
{
    const struct ini_entry *n = &ini->item[at];

    for (size_t i = 0; i < at; i++) {
        const struct ini_entry *had = &ini->item[i];
        if (strcmp(section_of(had), section_of(n)) == 0 && strcmp(had->name, n->name) == 0)
            return err_set(e, ERR_CALLER, "%s:%u: %s%s%s is there already, in line %u", path,
                           n->line, *n->name ? n->name : "[", *n->name ? "" : n->section,
                           *n->name ? "" : "]", had->line);
    }
    return 0;
}

/* Whether an environment has it: a Python, and not how it is used. */
static bool is_made_of(const struct option *o)
{
    static const char *const names[] = {"python", "preload", "images", "description"};

    for (size_t i = 0; i < COUNT(names); i++)
        if (strcmp(o->name, names[i]) == 0)
            return true;
    return false;
}

/* Below [model NAME] the rows of models, without what they begin with. */
static const struct option *model_row(const struct ini_entry *n, const char *path, struct err *e)
{
    char name[64], shown[NAME_SHOWN];
    const struct option *o;

    snprintf(name, sizeof(name), "model-%s", n->name);
    o = option_by_name(str_of(name), IN(COMMAND_SERVE));
    if (o && option_is_models(o))
        return o;
    err_set(e, ERR_CALLER, "%s:%u: %s is not a model's own; it has %s", path, n->line,
            name_show(shown, str_of(n->name)),
            "url, api, name, key-file, key, timeout, max-tokens, images, text-only, proxy and ca");
    return NULL;
}

static const struct option *row_of(const struct ini_entry *n, const char *path, struct err *e)
{
    if (is_model(n))
        return model_row(n, path, e);
    const struct option *o = option_by_name(str_of(n->name), IN(COMMAND_SERVE));
    const char *nearest = option_nearest(str_of(n->name), IN(COMMAND_SERVE));
    char shown[NAME_SHOWN];

    name_show(shown, str_of(n->name));
    if (!o) {
        err_set(e, ERR_CALLER, "%s:%u: there is no setting %s%s%s%s", path, n->line, shown,
                nearest ? "; did you mean " : "", nearest ? nearest : "", nearest ? "?" : "");
        return NULL;
    }
    if (o->not_from & IN(SOURCE_FILE)) {
        err_set(e, ERR_CALLER, "%s:%u: %s cannot be set in a file, only by --%s", path, n->line,
                shown, o->name);
        return NULL;
    }
    if (is_environment(n) && !is_made_of(o)) {
        err_set(e, ERR_CALLER, "%s:%u: %s is not an environment's own; it has %s", path, n->line,
                shown, "python, preload, images and description");
        return NULL;
    }
    if (is_pool(n) && !option_is_pools(o)) {
        err_set(e, ERR_CALLER, "%s:%u: %s is not a pool's own; it belongs to [server]", path,
                n->line, shown);
        return NULL;
    }
    return o;
}

static int check_file(const struct ini *ini, const char *path, struct err *e)
{
    for (size_t i = 0; i < ini->count; i++) {
        const struct ini_entry *n = &ini->item[i];
        if (n->name[0] == '\0' && check_section(n, path, e) < 0)
            return -1;
        if (check_twice(ini, i, path, e) < 0 || (n->name[0] && !row_of(n, path, e)))
            return -1;
    }
    return 0;
}

static void origin_of(const struct ini_entry *n, const char *path, char ret[ORIGIN_MAX])
{
    snprintf(ret, ORIGIN_MAX, "%.500s:%u: %s", path, n->line, n->name);
}

static int load_server(struct settings *s, const struct ini *ini, const char *path, struct err *e)
{
    for (size_t i = 0; i < ini->count; i++) {
        const struct ini_entry *n = &ini->item[i];
        char origin[ORIGIN_MAX];
        if (is_pool(n) || is_environment(n) || is_model(n) || n->name[0] == '\0')
            continue;
        origin_of(n, path, origin);
        if (setting_set(row_of(n, path, e), s, SOURCE_FILE, origin, n->value, e) < 0)
            return -1;
    }
    return 0;
}

static int add_pool(struct settings *s, const char *name, struct err *e)
{
    if (s->pool_count == POOLS_MAX)
        return err_set(e, ERR_CALLER, "there are more than %d pools", POOLS_MAX);
    s->pools = mem_realloc(s->pools, (s->pool_count + 1) * sizeof(*s->pools));
    pool_copy(&s->pools[s->pool_count], &s->pool);
    s->pools[s->pool_count++].name = mem_strdup(name);
    return 0;
}

static int load_pools(struct settings *s, const struct ini *ini, const char *path, struct err *e)
{
    for (size_t i = 0; i < ini->count; i++) {
        const struct ini_entry *n = &ini->item[i];
        char origin[ORIGIN_MAX];
        if (!is_pool(n))
            continue;
        if (n->name[0] == '\0') {
            if (add_pool(s, own_name(n), e) < 0)
                return -1;
            continue;
        }
        origin_of(n, path, origin);
        if (pool_set(row_of(n, path, e), &s->pools[s->pool_count - 1], origin, n->value, e) < 0)
            return -1;
    }
    if (s->pool_count == 0)
        return add_pool(s, "default", e);
    return 0;
}

static int add_environment(struct settings *s, const char *name, struct err *e)
{
    if (s->environment_count == POOLS_MAX)
        return err_set(e, ERR_CALLER, "there are more than %d environments", POOLS_MAX);
    s->environments =
        mem_realloc(s->environments, (s->environment_count + 1) * sizeof(*s->environments));
    pool_copy(&s->environments[s->environment_count], &s->pool);
    s->environments[s->environment_count++].name = mem_strdup(name);
    return 0;
}

static int load_environments(struct settings *s, const struct ini *ini, const char *path,
                             struct err *e)
{
    for (size_t i = 0; i < ini->count; i++) {
        const struct ini_entry *n = &ini->item[i];
        char origin[ORIGIN_MAX];
        if (!is_environment(n))
            continue;
        if (n->name[0] == '\0') {
            if (add_environment(s, own_name(n), e) < 0)
                return -1;
            continue;
        }
        origin_of(n, path, origin);
        if (pool_set(row_of(n, path, e), &s->environments[s->environment_count - 1], origin,
                     n->value, e) < 0)
            return -1;
    }
    return 0;
}

static int add_model(struct settings *s, const char *name, struct err *e)
{
    struct model_settings *m = &s->model;

    if (m->count == MODELS_MAX)
        return err_set(e, ERR_CALLER, "there are more than %d models", MODELS_MAX);
    m->all = mem_realloc(m->all, (m->count + 1) * sizeof(*m->all));
    endpoint_copy(&m->all[m->count], &m->one);
    m->all[m->count++].label = mem_strdup(name);
    return 0;
}

/* A key and a file with one are the same setting: what was said last counts. */
static void settle_key(struct settings *s)
{
    const struct option *key = option_by_name(STR("model-key"), IN(COMMAND_SERVE));
    const struct option *file = option_by_name(STR("model-key-file"), IN(COMMAND_SERVE));

    if (s->from[option_index(key)] > s->from[option_index(file)])
        mem_freep(&s->model.one.key_file);
    else
        mem_freep(&s->model.one.key);
}

static int set_model(struct endpoint_settings *m, const struct ini_entry *n, const char *path,
                     struct err *e)
{
    char origin[ORIGIN_MAX];

    if (strcmp(n->name, "key") == 0)
        mem_freep(&m->key_file);
    if (strcmp(n->name, "key-file") == 0)
        mem_freep(&m->key);
    origin_of(n, path, origin);
    return endpoint_set(row_of(n, path, e), m, origin, n->value, e);
}

static int load_models(struct settings *s, const struct ini *ini, const char *path, struct err *e)
{
    settle_key(s);
    for (size_t i = 0; i < ini->count; i++) {
        const struct ini_entry *n = &ini->item[i];
        int rc = 0;

        if (is_model(n) && n->name[0] == '\0')
            rc = add_model(s, own_name(n), e);
        else if (is_model(n))
            rc = set_model(&s->model.all[s->model.count - 1], n, path, e);
        if (rc < 0)
            return -1;
    }
    /* Else a key would be told to endpoints that it is not for. */
    if (s->model.count > 1 && (s->model.one.key || s->model.one.key_file))
        return err_set(e, ERR_CALLER,
                       "model-key and model-key-file are for the only model; where there are "
                       "several, each [model NAME] says its own key or key-file");
    return s->model.count == 0 && s->model.one.url ? add_model(s, "default", e) : 0;
}

static int choose_pool(struct settings *s, struct err *e)
{
    size_t at = 0;
    char shown[NAME_SHOWN];

    if (!s->pool_name)
        return 0;
    while (at < s->pool_count && strcmp(s->pools[at].name, s->pool_name) != 0)
        at++;
    if (at == s->pool_count)
        return err_set(e, ERR_CALLER, "--pool: there is no pool %s; the first is %s",
                       name_show(shown, str_of(s->pool_name)), s->pools[0].name);
    for (size_t i = 0; i < s->pool_count; i++)
        if (i != at)
            pool_done(&s->pools[i]);
    s->pools[0] = s->pools[at];
    s->pool_count = 1;
    return 0;
}

/* --- what no single row can tell --- */

static int check_pool(const struct service_pool *p, struct err *e)
{
    if (p->egress == EGRESS_ALLOW_LIST && (!p->egress_hosts || !*p->egress_hosts))
        return err_set(e, ERR_CALLER,
                       "pool %s: egress = allow-list needs egress-hosts; say which hosts its code "
                       "may reach",
                       p->name);
    if (p->ready > p->max_sessions)
        return err_set(e, ERR_CALLER, "pool %s: ready is %llu, but max-sessions allows only %llu",
                       p->name, (unsigned long long)p->ready, (unsigned long long)p->max_sessions);
    return 0;
}

/* They stand in a header, between quotes. */
static bool is_url(struct str s)
{
    bool has_scheme =
        (s.n > 8 && memcmp(s.p, "https://", 8) == 0) || (s.n > 7 && memcmp(s.p, "http://", 7) == 0);

    for (size_t i = 0; i < s.n; i++)
        if ((unsigned char)s.p[i] <= ' ' || (unsigned char)s.p[i] >= 0x7f ||
            strchr("\"\\<>?#", s.p[i]))
            return false;
    return has_scheme && s.n < 512;
}

static int check_urls(const char *name, const char *list, struct err *e)
{
    struct str rest = str_of(list), one;
    char shown[NAME_SHOWN];

    while (str_next(&rest, ',', &one))
        if (one.n && !is_url(one))
            return err_set(e, ERR_CALLER, "%s: '%s' is not a URL such as https://code.example",
                           name, name_show(shown, one));
    return 0;
}

static int check_oauth(const struct serve_settings *s, struct err *e)
{
    if (check_urls("public-url", s->public_url, e) < 0 ||
        check_urls("oauth-servers", s->oauth_servers, e) < 0)
        return -1;
    if (s->public_url && strchr(s->public_url, ','))
        return err_set(e, ERR_CALLER, "public-url: there is one only");
    if (s->oauth_servers && !s->public_url)
        return err_set(e, ERR_CALLER,
                       "oauth-servers needs public-url: say how clients reach this server");
    return 0;
}

static int check_node(const struct serve_settings *s, bool has_store, struct err *e)
{
    const char *url = s->node_url;
    size_t n = url ? strlen(url) : 0;

    if (!url && (s->node_name || s->node_secret_file || s->node_ca || s->node_cert))
        return err_set(e, ERR_CALLER, "%s does nothing without node-url",
                       s->node_name          ? "node-name"
                       : s->node_secret_file ? "node-secret-file"
                       : s->node_ca          ? "node-ca"
                                             : "node-cert");
    if (!s->node_cert != !s->node_key)
        return err_set(e, ERR_CALLER, "node-cert and node-key belong together; %s is missing",
                       s->node_cert ? "node-key" : "node-cert");
    if (!url)
        return 0;
    if ((strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0) || n > 500 ||
        strchr(url + 8, '/') || strpbrk(url, " ?#@"))
        return err_set(e, ERR_CALLER,
                       "node-url is http:// or https://, a host and a port: '%.200s'", url);
    if (!has_store || !s->blobs)
        return err_set(e, ERR_CALLER,
                       "node-url needs store = postgresql://... and blobs = s3://...: nodes share "
                       "both");
    if (!s->node_secret_file)
        return err_set(e, ERR_CALLER,
                       "node-url needs node-secret-file: nodes know each other by it");
    if (s->node_cert && (!s->node_ca || !s->tls_cert || strncmp(url, "https://", 8) != 0))
        return err_set(e, ERR_CALLER,
                       "node-cert needs node-ca, tls-cert and a node-url with https://: nodes show "
                       "certificates to each other, and to nothing in between");
    return 0;
}

static int check_serve(const struct settings *s, struct err *e)
{
    struct address a;

    if (!s->serve.tls_cert != !s->serve.tls_key)
        return err_set(e, ERR_CALLER, "tls-cert and tls-key belong together; %s is missing",
                       s->serve.tls_cert ? "tls-key" : "tls-cert");
    if (s->store && store_url_check(s->store, e) < 0)
        return err_wrap(e, "store");
    if (s->store_password_file && !s->store)
        return err_set(e, ERR_CALLER, "store-password-file needs store");
    if (check_node(&s->serve, s->store != NULL, e) < 0)
        return -1;
    if (s->serve.tls_client_ca && !s->serve.tls_cert)
        return err_set(e, ERR_CALLER, "tls-client-ca needs tls-cert and tls-key");
    if (check_oauth(&s->serve, e) < 0)
        return -1;
    for (size_t i = 0; i < s->serve.listen.count; i++)
        if (address_parse(s->serve.listen.item[i], &a, e) < 0)
            return err_wrap(e, "listen");
    for (size_t i = 0; i < s->pool_count; i++)
        if (check_pool(&s->pools[i], e) < 0)
            return -1;
    return 0;
}

/* --- all of it --- */

/* The arguments are read twice: first for the name of the file, which they override. */
static int find_config(struct settings *s, const struct command *c, int argc,
                       const char *const *argv, struct err *e)
{
    struct settings first;
    const char *env = getenv("RETORT_CONFIG");
    int rc;

    settings_init(&first);
    rc = settings_parse(&first, c, argc, argv, e);
    if (rc == 0) {
        s->help = first.help;
        s->config = take_ptr(&first.config);
        if (!s->config && env)
            s->config = mem_strdup(env);
    }
    settings_done(&first);
    return rc;
}

/* Defaults that a constant cannot say. */
static int complete(struct settings *s, const struct command *c, struct err *e)
{
    char path[STATE_PATH_MAX];

    if (c->id == COMMAND_ENVIRONMENT || (c->id == COMMAND_MCP && !s->state))
        return 0; /* none is needed, or one is made for the time being */
    if (s->serve.listen.count == 0)
        list_add(&s->serve.listen, LISTEN_DEFAULT);
    if (state_find(s, path, e) < 0)
        return -1;
    free(s->state);
    s->state = mem_strdup(path);
    return 0;
}

static int load(struct settings *s, const struct command *c, const char *path, struct ini *ini,
                struct err *e)
{
    if (*path && (ini_load(ini, path, e) < 0 || check_file(ini, path, e) < 0 ||
                  load_server(s, ini, path, e) < 0))
        return -1;
    if (load_env(s, c, e) < 0 || settings_parse(s, c, s->argc, s->argv, e) < 0 ||
        load_pools(s, ini, path, e) < 0 || load_environments(s, ini, path, e) < 0 ||
        load_models(s, ini, path, e) < 0 || choose_pool(s, e) < 0 || complete(s, c, e) < 0)
        return -1;
    /* The other commands may come before the environments that pools name. */
    if ((c->id == COMMAND_SERVE || c->id == COMMAND_MCP) && environments_resolve(s, e) < 0)
        return -1;
    return check_serve(s, e);
}

int settings_load(struct settings *s, const struct command *c, int argc, const char *const *argv,
                  struct err *e)
{
    struct ini ini = {0};
    char path[512];
    int rc;

    s->argc = argc;
    s->argv = argv;
    if (!c->configured)
        return settings_parse(s, c, argc, argv, e) < 0 || environments_resolve(s, e) < 0 ? -1 : 0;
    if (find_config(s, c, argc, argv, e) < 0)
        return -1;
    if (s->help)
        return 0;
    if (c->id == COMMAND_MCP) { /* for one user, whose session would keep the first interpreter */
        s->pool.ready = s->pool.ready_max = 1;
        s->pool.learn_ms = 0;
    }
    if (c->id == COMMAND_MCP && !s->config)
        path[0] = '\0'; /* the server's is its operator's, and may not be readable */
    else
        config_path(s, path, sizeof(path));
    rc = load(s, c, path, &ini, e);
    ini_done(&ini);
    if (rc == 0)
        warn_of_slips();
    return rc;
}
