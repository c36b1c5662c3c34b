/* Pools of the engine as the service knows them: settings, limits, sessions in each. */
#include "service/service_int.h"

#include <stdlib.h>

#define PACKAGES_MAX MiB

static char *copy(const char *s)
{
    return s ? mem_strdup(s) : NULL;
}

/* --- packages --- */

/* Names are normalised, as two spellings of one name are one package. Almost every package has its
 * name and version in the name of a folder. importlib.metadata reads a file of each instead, which
 * takes four times as long: 0.18 s for 130 packages, at the start of each pool. */
static const char question[] =
    "import json, os, re, sys\n"
    "found = {}\n"
    "def field(text, name):\n"
    "    line = re.search('^' + name + ': *(.*?) *$', text, re.M)\n"
    "    return line and line[1]\n"
    "def inside(path):\n"
    "    for file in ('METADATA', 'PKG-INFO', ''):\n"
    "        try:\n"
    "            text = open(os.path.join(path, file), errors='replace').read()\n"
    "        except OSError:\n"
    "            continue\n"
    "        return field(text, 'Name'), field(text, 'Version')\n"
    "    return None, None\n"
    "for place in sys.path:\n"
    "    try:\n"
    "        entries = sorted(os.listdir(place))\n"
    "    except OSError:\n"
    "        continue\n"
    "    for entry in entries:\n"
    "        if entry.endswith(('.dist-info', '.egg-info')):\n"
    "            parts = re.fullmatch(r'([^-]+)-([^-]+)(-.*)?\\.(dist|egg)-info', entry)\n"
    "            name, version = parts.group(1, 2) if parts else inside(os.path.join(place, "
    "entry))\n"
    "            if name:\n"
    "                found.setdefault(re.sub(r'[-_.]+', '-', name).lower(), version)\n"
    "print(json.dumps(found, sort_keys=True))\n";

struct asking {
    struct task task;
    struct pool_entry *env; /* borrowed */
    json_t *packages;       /* owned */
};

static int ask(struct task *t, struct err *e)
{
    struct asking *a = OWNER(t, struct asking, task);
    AUTO_FREE char *text = mem_zalloc(PACKAGES_MAX);

    if (python_ask(a->env->config.python, question, NULL, text, PACKAGES_MAX, e) < 0)
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

static void ask_packages(struct pool_entry *env)
{
    static const struct step steps[] = {{.work = ask}, {0}};
    struct asking *a = mem_zalloc(sizeof(*a));

    a->env = env;
    task_start(&a->task, env->sv, NULL, steps, on_answer);
}

/* --- starting --- */

static void on_ready(void *arg, const struct err *failed)
{
    struct pool_entry *env = arg;

    if (failed)
        log_error("pool %s: %s", env->config.name, failed->text);
    else
        log_debug("pool %s: up", env->config.name);
}

/* Everything that could be refused. */
static int make_rules(struct pool_entry *env, struct err *e)
{
    struct service_pool *c = &env->config;

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
    env->vars = c->vars ? json_loads(c->vars, 0, NULL) : NULL;
    return 0;
}

static void start(struct pool_entry *env)
{
    const struct service_pool *c = &env->config;
    const struct pool_config config = {
        .name = c->name,
        .environment = {c->python, c->preload},
        .limits = c->limits,
        .ready = (unsigned)c->ready,
        .ready_max = (unsigned)c->ready_max,
        .recycle_ms = c->recycle_ms,
        .learn_ms = c->learn_ms,
        .proxy = env->policy != NULL,
    };

    env->sv->asks |= c->approval != POLICY_AUTO;
    env->pool = pool_start(env->sv->engine, &config, on_ready, env);
    ask_packages(env);
}

static void pool_entry_free(struct pool_entry *env)
{
    service_pool_done(&env->config);
    when_free(env->when);
    egress_policy_free(env->policy);
    timer_free(env->stop);
    json_decref(env->packages);
    json_decref(env->vars);
    json_decref(env->document);
    free(env);
}

static void take_config(struct service_pool *to, const struct service_pool *from)
{
    char *const *in[] = {&from->name,         &from->python,        &from->preload, &from->text,
                         &from->egress_hosts, &from->approval_when, &from->images,  &from->vars};
    char **out[] = {&to->name,         &to->python,        &to->preload, &to->text,
                    &to->egress_hosts, &to->approval_when, &to->images,  &to->vars};

    *to = *from;
    for (size_t i = 0; i < COUNT(in); i++)
        *out[i] = copy(*in[i]);
}

void service_pool_done(struct service_pool *p)
{
    char *texts[] = {p->name,         p->python,        p->preload, p->text,
                     p->egress_hosts, p->approval_when, p->images,  p->vars};

    for (size_t i = 0; i < COUNT(texts); i++)
        free(texts[i]);
    *p = (struct service_pool){0};
}

struct pool_entry *pool_entry_add(struct service *sv, const struct service_pool *p, struct err *e)
{
    struct pool_entry *env = mem_zalloc(sizeof(*env)), *last = sv->pools;
    struct pool_entry *before = last ? pool_entry_find(sv, str_of(p->name)) : NULL;

    env->sv = sv;
    env->created_ms = env->updated_ms = time_now_ms();
    take_config(&env->config, p);
    if (make_rules(env, e) < 0) {
        pool_entry_free(env);
        return NULL;
    }
    start(env);
    if (before)
        env->created_ms = before->created_ms;
    while (last && last->next)
        last = last->next;
    if (last)
        last->next = env;
    else
        sv->pools = env;
    if (before)
        pool_entry_retire(before);
    return env;
}

static bool is_made(const struct service *sv, const char *name)
{
    for (size_t i = 0; i < sv->make_count; i++)
        if (strcmp(sv->makes[i].name, name) == 0)
            return true;
    return false;
}

static void take_make(struct service *sv, const struct service_pool *from, const char *name)
{
    struct service_pool make = {.name = (char *)name,
                                .python = from->python,
                                .preload = from->preload,
                                .text = from->text,
                                .images = from->images};

    if (!is_made(sv, name))
        take_config(&sv->makes[sv->make_count++], &make);
}

/* What pools can be made of: the environments of the settings, and what their pools have. */
static int take_makes(struct service *sv, const struct service_config *config, struct err *e)
{
    size_t most = config->environment_count + config->pool_count + 1;

    sv->makes = mem_zalloc(most * sizeof(*sv->makes));
    for (size_t i = 0; i < config->environment_count; i++) {
        const struct service_pool *from = &config->environments[i];
        const struct engine_environment env = {from->python, from->preload};
        take_make(sv, from, from->name);
        if (engine_check_environment(sv->engine, &env, e) < 0)
            return err_wrap(e, "environment '%s'", from->name);
    }
    take_make(sv, &config->pools[0], DEFAULT_ENVIRONMENT);
    for (size_t i = 0; i < config->pool_count; i++)
        take_make(sv, &config->pools[i], config->pools[i].name);
    return 0;
}

int pool_entries_start(struct service *sv, const struct service_config *config, struct err *e)
{
    assert(config->pool_count > 0);
    if (take_makes(sv, config, e) < 0)
        return -1;
    for (size_t i = 0; i < config->pool_count; i++) {
        struct pool_entry *env = pool_entry_add(sv, &config->pools[i], e);
        if (!env)
            return -1;
        env->fixed = true;
    }
    return 0;
}

void pool_entries_free(struct service *sv)
{
    for (struct pool_entry *env = sv->pools, *next; env; env = next) {
        next = env->next;
        pool_entry_free(env);
    }
    for (size_t i = 0; i < sv->make_count; i++)
        service_pool_done(&sv->makes[i]);
    free(sv->makes);
}

struct pool_entry *pool_entry_find(struct service *sv, struct str name)
{
    struct pool_entry *env = sv->pools;

    if (name.n == 0)
        return env;
    while (env && (env->gone || !str_is(name, env->config.name)))
        env = env->next;
    return env;
}

/* --- ending --- */

#define STOP_MS 1000 /* what was closed in the engine has been let go by then */

static void on_stop(void *arg)
{
    struct pool_entry *env = arg;

    if (env->held == 0)
        pool_stop(take_ptr(&env->pool));
}

static void stop_if_unused(struct pool_entry *env)
{
    if (!env->gone || env->held > 0 || !env->pool || env->sv->closing)
        return;
    if (!env->stop)
        env->stop = timer_new(env->sv->loop, on_stop, env);
    timer_set(env->stop, STOP_MS);
}

void pool_entry_retire(struct pool_entry *env)
{
    assert(env != env->sv->pools);
    env->gone = true;
    pool_retire(env->pool);
    stop_if_unused(env);
}

void pool_entry_hold(struct pool_entry *env)
{
    env->held++;
}

void pool_entry_drop(struct pool_entry *env)
{
    assert(env->held > 0);
    env->held--;
    stop_if_unused(env);
}

unsigned pool_entry_live(const struct pool_entry *env)
{
    unsigned n = 0;

    for (const struct pool_entry *at = env->sv->pools; at; at = at->next)
        if (strcmp(at->config.name, env->config.name) == 0)
            n += at->awake - at->away + at->lent;
    return n;
}

/* --- what is there --- */

size_t service_pool_count(struct service *sv)
{
    size_t n = 0;

    for (const struct pool_entry *env = sv->pools; env; env = env->next)
        n += !env->gone;
    return n;
}

struct pool_info pool_entry_info(const struct pool_entry *env)
{
    struct pool_info info = {
        .pool = &env->config,
        .python = pool_python_version(env->pool),
        .packages = env->packages,
        .parked = pool_parked(env->pool),
        .live = pool_entry_live(env),
        .fixed = env->fixed,
        .document = env->document,
        .created_ms = env->created_ms,
        .updated_ms = env->updated_ms,
    };

    info.up = pool_is_up(env->pool, &info.why);
    info.learned_count = pool_learned(env->pool, info.learned);
    return info;
}

void service_pool_get(struct service *sv, size_t i, struct pool_info *ret)
{
    const struct pool_entry *env = sv->pools;

    while (env->gone || i-- > 0)
        env = env->next;
    *ret = pool_entry_info(env);
}

size_t service_environment_count(struct service *sv)
{
    return sv->make_count;
}

const struct service_pool *service_environment_get(struct service *sv, size_t i)
{
    assert(i < sv->make_count);
    return &sv->makes[i];
}
