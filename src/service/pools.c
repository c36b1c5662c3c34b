/* The engine's pools, and what is in them. */
#include "service/service_int.h"

#include <stdlib.h>

#define PACKAGES_MAX MiB

static char *copy(const char *s)
{
    return s ? mem_strdup(s) : NULL;
}

/* --- packages --- */

/* Names are normalised, as two spellings of one name are one package. */
static const char question[] =
    "import importlib.metadata, json, re\n"
    "found = {}\n"
    "for d in importlib.metadata.distributions():\n"
    "    name = d.metadata['Name']\n"
    "    if name:\n"
    "        found.setdefault(re.sub(r'[-_.]+', '-', name).lower(), d.version)\n"
    "print(json.dumps(found, sort_keys=True))\n";

struct asking {
    struct task task;
    struct environment *env; /* borrowed */
    json_t *packages;        /* owned */
};

static int ask(struct task *t, struct err *e)
{
    struct asking *a = OWNER(t, struct asking, task);
    AUTO_FREE char *text = mem_zalloc(PACKAGES_MAX);

    if (python_ask(a->env->config.python, question, text, PACKAGES_MAX, e) < 0)
        return -1;
    a->packages = json_loads(text, 0, NULL);
    if (!json_is_object(a->packages))
        return err_set(e, ERR_HOST, "its answer is not a list of packages");
    return 0;
}

static void on_answer(struct task *t, const struct err *failed)
{
    struct asking *a = OWNER(t, struct asking, task);

    if (failed) {
        log_warn("pool %s: packages are not known: %s", a->env->config.name, failed->text);
        json_decref(a->packages);
    } else {
        a->env->packages = a->packages;
    }
    free(a);
}

static void ask_packages(struct environment *env)
{
    static const struct step steps[] = {{.work = ask}, {0}};
    struct asking *a = mem_zalloc(sizeof(*a));

    a->env = env;
    task_start(&a->task, env->sv, NULL, steps, on_answer);
}

/* --- starting --- */

static void on_ready(void *arg, const struct err *failed)
{
    struct environment *env = arg;

    if (failed)
        log_error("pool %s: %s", env->config.name, failed->text);
    else
        log_debug("pool %s: up", env->config.name);
}

static int start_one(struct environment *env, struct engine *en, const struct service_pool *p,
                     struct err *e)
{
    struct service_pool *c = &env->config;

    env->created_ms = env->updated_ms = time_now_ms();
    *c = *p;
    c->name = copy(p->name);
    c->python = copy(p->python);
    c->preload = copy(p->preload);
    c->text = copy(p->text);
    c->egress_hosts = copy(p->egress_hosts);
    c->approval_when = copy(p->approval_when);
    if (c->egress == EGRESS_ALLOW_LIST) {
        env->policy = egress_policy_new(c->egress_hosts ? c->egress_hosts : "", false, e);
        if (!env->policy)
            return err_wrap(e, "pool '%s': egress", c->name);
    }
    if (c->approval != POLICY_AUTO && c->approval_when && *c->approval_when) {
        env->when = when_new(c->approval_when, e);
        if (!env->when)
            return err_wrap(e, "pool '%s': approval-when", c->name);
    }
    env->sv->asks |= c->approval != POLICY_AUTO;
    struct pool_config config = {
        .name = c->name,
        .python = c->python,
        .preload = c->preload,
        .limits = c->limits,
        .ready = (unsigned)c->ready,
        .recycle_ms = c->recycle_ms,
        .proxy = env->policy != NULL,
    };
    env->pool = pool_start(en, &config, on_ready, env);
    ask_packages(env);
    return 0;
}

int environments_start(struct service *sv, struct engine *en, const struct service_config *config,
                       struct err *e)
{
    assert(config->pool_count > 0);
    sv->environments = mem_zalloc(config->pool_count * sizeof(*sv->environments));
    for (size_t i = 0; i < config->pool_count; i++) {
        sv->environments[i].sv = sv;
        sv->environment_count++;
        if (start_one(&sv->environments[i], en, &config->pools[i], e) < 0)
            return -1;
    }
    return 0;
}

void environments_free(struct service *sv)
{
    for (size_t i = 0; i < sv->environment_count; i++) {
        struct environment *env = &sv->environments[i];
        free(env->config.name);
        free(env->config.python);
        free(env->config.preload);
        free(env->config.text);
        free(env->config.egress_hosts);
        free(env->config.approval_when);
        when_free(env->when);
        egress_policy_free(env->policy);
        json_decref(env->packages);
    }
    free(sv->environments);
}

struct environment *environment_find(struct service *sv, struct str name)
{
    if (name.n == 0)
        return &sv->environments[0];
    for (size_t i = 0; i < sv->environment_count; i++)
        if (str_is(name, sv->environments[i].config.name))
            return &sv->environments[i];
    return NULL;
}

/* --- what is there --- */

size_t service_pool_count(struct service *sv)
{
    return sv->environment_count;
}

void service_pool_get(struct service *sv, size_t i, struct pool_info *ret)
{
    struct environment *env = &sv->environments[i];

    assert(i < sv->environment_count);
    *ret = (struct pool_info){
        .pool = &env->config,
        .python = pool_python_version(env->pool),
        .packages = env->packages,
        .parked = pool_parked(env->pool),
        .live = env->awake,
        .created_ms = env->created_ms,
        .updated_ms = env->updated_ms,
    };
    ret->up = pool_is_up(env->pool, &ret->why);
}
