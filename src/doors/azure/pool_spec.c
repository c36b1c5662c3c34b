/* Translates the document of a session pool into a pool of the service. */
#include "doors/azure/azure_int.h"

#include <stdio.h>
#include <stdlib.h>

#define PULLED   "mcr.microsoft.com/k8se/services/codeinterpreter:" /* stands for the default */
#define WALL_MS  220000 /* of one execution, as Azure has it */
#define SECONDS  1000ull
#define COOLDOWN (3650ull * 86400) /* the most that is taken for a number of seconds */

/* --- which environment --- */

/* One of a comma-separated list; the last character of an item may be '*'. */
static bool is_listed(const char *list, struct str name)
{
    struct str rest = str_of(list), item;

    while (str_next(&rest, ',', &item)) {
        bool open = item.n && item.p[item.n - 1] == '*';
        item.n -= open;
        if (item.n + open > 0 && (open ? name.n >= item.n : name.n == item.n) &&
            memcmp(name.p, item.p, item.n) == 0)
            return true;
    }
    return false;
}

static const char *environment_of(struct service *sv, struct str image)
{
    for (size_t i = 0; i < service_environment_count(sv); i++) {
        const struct service_pool *env = service_environment_get(sv, i);
        if (str_is(image, env->name) || is_listed(env->images, image))
            return env->name;
    }
    return is_listed(PULLED "*", image) ? DEFAULT_ENVIRONMENT : NULL;
}

/* Names those there are. */
static int refuse_image(struct service *sv, struct str image, struct err *e)
{
    char shown[NAME_SHOWN], list[256] = "";
    size_t n = 0;

    for (size_t i = 0; i < service_environment_count(sv) && n < sizeof(list); i++) {
        const struct service_pool *env = service_environment_get(sv, i);
        n += (size_t)snprintf(list + n, sizeof(list) - n, "%s%s", i ? ", " : "", env->name);
    }
    return err_set(e, ERR_CALLER,
                   "there is no environment for the image %s; there are: %s. An [environment NAME] "
                   "of the settings stands for those it lists as images",
                   name_show(shown, image), list);
}

/* Each type, and why a pool of it is not made; or NULL. */
static int check_type(struct str type, struct err *e)
{
    static const struct {
        struct str name;
        const char *refused;
    } types[] = {
        {STR("CustomContainer"), NULL                                                                                  },
        {STR("PythonLTS"),       NULL                                                                                  },
        {STR("Shell"),           NULL                                                                                  },
        {STR("NodeLTS"),         "sessions run Python and shell, and keep no JavaScript between "
                         "calls; a Shell pool runs node as a command where this machine has it"},
        {STR("GpuBase"),         "sessions have no GPU"                                                                },
    };

    for (size_t i = 0; i < COUNT(types); i++)
        if (str_nocase(type, types[i].name))
            return types[i].refused
                       ? err_set(e, ERR_CALLER, "no pool of containerType %s is made here: %s",
                                 types[i].name.p, types[i].refused)
                       : 0;
    return type.n == 0
               ? 0
               : err_set(e, ERR_CALLER, "containerType is CustomContainer, PythonLTS or Shell");
}

static int take_environment(struct azure_pool_spec *ret, struct service *sv, const json_t *doc,
                            struct err *e)
{
    struct str type = json_view(json_at(doc, "properties.containerType"));
    const json_t *containers = json_at(doc, "properties.customContainerTemplate.containers");
    struct str image = json_view(json_at(json_array_get(containers, 0), "image"));
    const char *name = DEFAULT_ENVIRONMENT;

    if (check_type(type, e) < 0)
        return -1;
    if (str_nocase(type, STR("CustomContainer")) && !image.n)
        return err_set(e, ERR_CALLER, "customContainerTemplate.containers needs one with an image");
    if (image.n)
        name = environment_of(sv, image);
    if (!name)
        return refuse_image(sv, image, e);
    ret->spec.environment = str_of(name);
    return 0;
}

/* --- numbers --- */

/* "2Gi", "512Mi", "1.5G" or bytes. */
static bool read_memory(const json_t *v, uint64_t *ret)
{
    static const struct {
        const char *unit;
        double bytes;
    } units[] = {
        {"",   1                   },
        {"Ki", 1024.0              },
        {"Mi", 1024.0 * 1024       },
        {"Gi", 1024.0 * 1024 * 1024},
        {"K",  1e3                 },
        {"M",  1e6                 },
        {"G",  1e9                 },
    };
    const char *text = json_string_value(v);
    char *end = NULL;
    double n = text ? strtod(text, &end) : 0;

    for (size_t i = 0; text && i < COUNT(units); i++)
        if (strcmp(end, units[i].unit) == 0 && n > 0 && n * units[i].bytes < 1e15) {
            *ret = (uint64_t)(n * units[i].bytes);
            return true;
        }
    return false;
}

/* Left out is 0. */
static int take_count(const json_t *doc, const char *path, uint64_t least, uint64_t most,
                      uint64_t *ret, struct err *e)
{
    const json_t *v = json_at(doc, path);
    json_int_t n = json_integer_value(v);

    *ret = 0;
    if (!v || json_is_null(v))
        return 0;
    if (n < (json_int_t)least || n > (json_int_t)most)
        return err_set(e, ERR_CALLER, "%s is a whole number from %llu to %llu", path,
                       (unsigned long long)least, (unsigned long long)most);
    *ret = (uint64_t)n;
    return 0;
}

static int take_size(struct azure_pool_spec *ret, const json_t *doc, struct err *e)
{
    const json_t *first =
        json_array_get(json_at(doc, "properties.customContainerTemplate.containers"), 0);
    const json_t *cpu = json_at(first, "resources.cpu"),
                 *memory = json_at(first, "resources.memory");
    double cores = json_number_value(cpu);

    if (json_is_number(cpu) && !(cores > 0 && cores <= 1024))
        return err_set(e, ERR_CALLER, "resources.cpu is a number of cores, such as 1 or 0.5");
    if (json_is_string(memory) && !read_memory(memory, &ret->spec.memory_bytes))
        return err_set(e, ERR_CALLER, "resources.memory is a size such as 2Gi or 512Mi");
    ret->spec.cpu_percent = (uint64_t)(cores * 100 + 0.5);
    return 0;
}

static int take_scale(struct azure_pool_spec *ret, const json_t *doc, struct err *e)
{
    struct pool_spec *s = &ret->spec;

    if (take_count(doc, "properties.scaleConfiguration.maxConcurrentSessions", 1, 30000,
                   &s->max_sessions, e) < 0 ||
        take_count(doc, "properties.scaleConfiguration.readySessionInstances", 0, 30000, &s->ready,
                   e) < 0)
        return -1;
    if (s->max_sessions && s->ready > s->max_sessions) {
        ret->code = "SessionPoolInvalidReadySessionInstances";
        return err_set(e, ERR_CALLER,
                       "readySessionInstances is more than maxConcurrentSessions allows");
    }
    return 0;
}

/* --- its life --- */

#define LIFE    "properties.dynamicPoolConfiguration.lifecycleConfiguration."
#define DYNAMIC "properties.dynamicPoolConfiguration."

static int take_life(struct azure_pool_spec *ret, const json_t *doc, struct err *e)
{
    struct str type = json_view(json_at(doc, LIFE "lifecycleType"));
    uint64_t cooldown, older, alive;

    if (!type.p)
        type = json_view(json_at(doc, DYNAMIC "executionType"));
    if (take_count(doc, LIFE "cooldownPeriodInSeconds", 1, COOLDOWN, &cooldown, e) < 0 ||
        take_count(doc, DYNAMIC "cooldownPeriodInSeconds", 1, COOLDOWN, &older, e) < 0 ||
        take_count(doc, LIFE "maxAlivePeriodInSeconds", 1, COOLDOWN, &alive, e) < 0)
        return -1;
    if (!cooldown)
        cooldown = older;
    if (!type.p || str_nocase(type, STR("Timed"))) {
        if (alive)
            return err_set(e, ERR_CALLER, "maxAlivePeriodInSeconds goes with OnContainerExit");
        ret->spec.idle_ms = cooldown * SECONDS;
        return 0;
    }
    if (!str_nocase(type, STR("OnContainerExit")))
        return err_set(e, ERR_CALLER, "lifecycleType is Timed or OnContainerExit");
    if (cooldown)
        return err_set(e, ERR_CALLER, "cooldownPeriodInSeconds goes with Timed");
    ret->spec.lifetime_ms = ret->spec.idle_ms = alive * SECONDS;
    return 0;
}

static int take_network(struct azure_pool_spec *ret, const json_t *doc, struct err *e)
{
    struct str status = json_view(json_at(doc, "properties.sessionNetworkConfiguration.status"));

    ret->spec.egress = str_nocase(status, STR("EgressEnabled"));
    ret->spec.egress_hosts = ret->spec.egress ? STR("*") : STR("");
    if (status.n && !ret->spec.egress && !str_nocase(status, STR("EgressDisabled")))
        return err_set(e, ERR_CALLER,
                       "sessionNetworkConfiguration.status is EgressEnabled or EgressDisabled");
    return 0;
}

static int check_probes(const json_t *doc, struct err *e)
{
    const json_t *containers = json_at(doc, "properties.customContainerTemplate.containers");
    const json_t *probes = json_at(json_array_get(containers, 0), "probes");
    json_t *probe;
    size_t i;

    json_array_foreach(probes, i, probe) {
        struct str type = json_view(json_nocase(probe, "type"));
        if (!str_nocase(type, STR("Liveness")) && !str_nocase(type, STR("Startup")))
            return err_set(e, ERR_CALLER, "a probe's type is Liveness or Startup");
    }
    return 0;
}

/* --- variables --- */

/* Each of a list needs one. */
static int check_names(const json_t *list, const char *path, struct err *e)
{
    json_t *one;
    size_t i;

    json_array_foreach(list, i, one)
        if (json_view(json_nocase(one, "name")).n == 0)
            return err_set(e, ERR_CALLER, "%s[%zu].name is needed", path, i);
    return 0;
}

static struct str secret_of(const json_t *doc, struct str name)
{
    const json_t *secrets = json_at(doc, "properties.secrets");
    json_t *secret;
    size_t i;

    json_array_foreach(secrets, i, secret)
        if (str_eq(json_view(json_nocase(secret, "name")), name))
            return json_view(json_nocase(secret, "value"));
    return (struct str){0};
}

static int take_env(struct azure_pool_spec *ret, const json_t *doc, struct err *e)
{
    const json_t *containers = json_at(doc, "properties.customContainerTemplate.containers");
    const json_t *env = json_at(json_array_get(containers, 0), "env");
    json_t *row;
    size_t i;

    if (json_array_size(env) > ENV_COUNT_MAX)
        return err_set(e, ERR_CALLER, "a container has at most %d variables", ENV_COUNT_MAX);
    if (check_names(json_at(doc, "properties.secrets"), "properties.secrets", e) < 0 ||
        check_names(env, "properties.customContainerTemplate.containers[0].env", e) < 0)
        return -1;
    json_array_foreach(env, i, row) {
        struct str ref = json_view(json_nocase(row, "secretRef"));
        struct str value = ref.n ? secret_of(doc, ref) : json_view(json_nocase(row, "value"));
        char shown[NAME_SHOWN];
        if (ref.n && !value.p)
            return err_set(e, ERR_CALLER, "there is no secret %s with a value",
                           name_show(shown, ref));
        ret->env[i] = (struct env_var){json_view(json_nocase(row, "name")), value};
    }
    ret->spec.env = ret->env;
    ret->spec.env_count = json_array_size(env);
    return 0;
}

/* --- all of it --- */

int azure_pool_spec_read(struct azure_pool_spec *ret, struct service *sv, const json_t *doc,
                         struct err *e)
{
    struct str type = json_view(json_at(doc, "properties.poolManagementType"));

    *ret = (struct azure_pool_spec){.code = "InvalidSessionPool", .spec = {.wall_ms = WALL_MS}};
    if (!json_is_object(json_nocase(doc, "properties")))
        return err_set(e, ERR_CALLER, "a session pool has properties, which are an object");
    if (type.n && !str_nocase(type, STR("Dynamic")))
        return err_set(e, ERR_CALLER, "poolManagementType is Dynamic");
    if (json_array_size(json_at(doc, "properties.secrets")) > SECRETS_MAX)
        return err_set(e, ERR_CALLER, "a pool has at most %d secrets", SECRETS_MAX);
    if (take_environment(ret, sv, doc, e) < 0 || take_size(ret, doc, e) < 0 ||
        take_scale(ret, doc, e) < 0 || take_life(ret, doc, e) < 0 ||
        take_network(ret, doc, e) < 0 || check_probes(doc, e) < 0 || take_env(ret, doc, e) < 0)
        return -1;
    return 0;
}
