/* Prints settings in the format of the configuration file, and the differences of two. */
#include "cli/cli_int.h"

#include <stdio.h>

#define SHOWN_MAX (17 * KiB)
#define COLUMN    18

static bool is_shown(const struct option *o)
{
    return (o->commands & IN(COMMAND_SERVE)) && !(o->not_from & IN(SOURCE_FILE));
}

/* Who said so, where that is not the default. */
static void show_source(const struct option *o, const struct settings *s, char *ret, size_t size)
{
    char env[ENV_NAME_MAX];

    *ret = '\0';
    if (s->from[option_index(o)] == SOURCE_FLAG)
        snprintf(ret, size, "   ; --%s", o->name);
    if (s->from[option_index(o)] == SOURCE_ENV) {
        option_env_name(o, env);
        snprintf(ret, size, "   ; %s", env);
    }
}

static const char *secret_of(const struct option *o, const struct settings *s)
{
    const char *text = o->secret ? *(char *const *)((const char *)s + o->at) : NULL;

    return text ? text : "";
}

static void show_row(const struct option *o, const char *name, const struct settings *s,
                     const char *from, struct buf *ret)
{
    char value[SHOWN_MAX];

    option_show(o, s, value, sizeof(value));
    if (*value)
        buf_printf(ret, "%-*s = %s%s\n", COLUMN, name, value, from);
    else
        buf_printf(ret, "; %-*s = %s%s\n", COLUMN - 2, name,
                   *secret_of(o, s) ? "set, and not shown"
                   : o->unset       ? o->unset
                                    : "",
                   *secret_of(o, s) ? from : "");
}

static void show_rows(const struct settings *s, bool pools, bool source, struct buf *ret)
{
    for (size_t i = 0; i < options_count; i++) {
        const struct option *o = &options[i];
        char from[ENV_NAME_MAX + 8] = "";
        if (!is_shown(o) || option_is_pools(o) != pools)
            continue;
        if (source)
            show_source(o, s, from, sizeof(from));
        show_row(o, o->name, s, from, ret);
    }
}

/* Below [model NAME] without what they begin with. */
static void show_model(const struct endpoint_settings *m, struct buf *ret)
{
    struct settings s = {.model.one = *m}; /* borrowed */

    buf_printf(ret, "\n[model %s]\n", m->label);
    for (size_t i = 0; i < options_count; i++)
        if (is_shown(&options[i]) && option_is_models(&options[i]))
            show_row(&options[i], options[i].name + strlen("model-"), &s, "", ret);
}

/* NULL: as it is without. */
static void show_environment(const struct service_pool *env, struct buf *ret)
{
    const struct {
        const char *name, *value;
    } rows[] = {
        {"description", env->text   },
        {"python",      env->python },
        {"preload",     env->preload},
        {"images",      env->images },
    };

    buf_printf(ret, "\n[environment %s]\n", env->name);
    for (size_t i = 0; i < COUNT(rows); i++)
        if (rows[i].value)
            buf_printf(ret, "%-*s = %s\n", COLUMN, rows[i].name, rows[i].value);
}

void config_show(const struct settings *s, struct buf *ret)
{
    char path[512];

    config_path(s, path, sizeof(path));
    buf_printf(ret, "; %s%s\n[server]\n", *path ? "with what is set in " : "without a file", path);
    show_rows(s, false, true, ret);
    for (size_t i = 0; i < s->pool_count; i++) {
        struct settings of = {.pool = s->pools[i]}; /* borrowed */
        buf_printf(ret, "\n[pool %s]\n", s->pools[i].name);
        show_rows(&of, true, false, ret);
    }
    for (size_t i = 0; i < s->environment_count; i++)
        show_environment(&s->environments[i], ret);
    for (size_t i = 0; i < s->model.count; i++)
        show_model(&s->model.all[i], ret);
}

/* --- differences --- */

static bool is_in(const char *name, const char *const *list)
{
    for (; *list; list++)
        if (strcmp(*list, name) == 0)
            return true;
    return false;
}

static bool is_same(const struct option *o, const struct settings *a, const struct settings *b)
{
    char x[SHOWN_MAX], y[SHOWN_MAX];

    option_show(o, a, x, sizeof(x));
    option_show(o, b, y, sizeof(y));
    return strcmp(x, y) == 0 && strcmp(secret_of(o, a), secret_of(o, b)) == 0;
}

static bool is_same_model(const struct endpoint_settings *a, const struct endpoint_settings *b)
{
    struct settings x = {.model.one = *a}, y = {.model.one = *b}; /* borrowed */

    for (size_t i = 0; i < options_count; i++)
        if (option_is_models(&options[i]) && !is_same(&options[i], &x, &y))
            return false;
    return strcmp(a->label, b->label) == 0;
}

static bool is_same_pool(const struct service_pool *a, const struct service_pool *b)
{
    struct settings x = {.pool = *a}, y = {.pool = *b}; /* borrowed */

    for (size_t i = 0; i < options_count; i++)
        if (is_shown(&options[i]) && option_is_pools(&options[i]) && !is_same(&options[i], &x, &y))
            return false;
    return strcmp(a->name, b->name) == 0;
}

void config_differences(const struct settings *a, const struct settings *b, const char *const *but,
                        struct buf *ret)
{
    size_t most = a->pool_count > b->pool_count ? a->pool_count : b->pool_count;

    for (size_t i = 0; i < options_count; i++) {
        const struct option *o = &options[i];
        if (is_shown(o) && !option_is_pools(o) && !is_in(o->name, but) && !is_same(o, a, b))
            buf_printf(ret, "%s%s", ret->n ? ", " : "", o->name);
    }
    for (size_t i = 0; i < most; i++) {
        const struct service_pool *of = i < b->pool_count ? &b->pools[i] : &a->pools[i];
        if (i >= a->pool_count || i >= b->pool_count || !is_same_pool(&a->pools[i], of))
            buf_printf(ret, "%spool %s", ret->n ? ", " : "", of->name);
    }
    most =
        a->environment_count > b->environment_count ? a->environment_count : b->environment_count;
    for (size_t i = 0; i < most; i++) {
        const struct service_pool *of =
            i < b->environment_count ? &b->environments[i] : &a->environments[i];
        if (i >= a->environment_count || i >= b->environment_count ||
            !is_same_pool(&a->environments[i], of))
            buf_printf(ret, "%senvironment %s", ret->n ? ", " : "", of->name);
    }
    most = a->model.count > b->model.count ? a->model.count : b->model.count;
    for (size_t i = 0; i < most; i++) {
        const struct endpoint_settings *of =
            i < b->model.count ? &b->model.all[i] : &a->model.all[i];
        if (i >= a->model.count || i >= b->model.count || !is_same_model(&a->model.all[i], of))
            buf_printf(ret, "%smodel %s", ret->n ? ", " : "", of->label);
    }
}
