/* A call as its client made it: code, and what stands beside it by these names. */
#include "doors/qwen/qwen_int.h"

#include <stdlib.h>

#define SECONDS_MOST 86400

void order_init(struct order *o, const struct qwen *q)
{
    *o = (struct order){.traceback = q->config.traceback};
}

void order_done(struct order *o)
{
    free(o->code);
    free(o->work_dir);
    free(o->answer_symbol);
    free(o->answer_expr);
    json_decref(o->files);
    *o = (struct order){0};
}

void order_take_params(struct order *o, struct written *p)
{
    free(o->code);
    o->code = take_ptr(&p->code);
    o->code_n = p->code_n;
}

bool order_is_blank(const struct order *o)
{
    for (size_t i = 0; i < o->code_n; i++)
        if ((unsigned char)o->code[i] > ' ')
            return false;
    return true;
}

/* --- options --- */

int instance_check(struct str name, struct err *e)
{
    if (name.n == 0 || name.n > INSTANCE_MAX)
        return err_set(e, ERR_CALLER, "instance is a name of 1 to %d bytes", INSTANCE_MAX);
    for (size_t i = 0; i < name.n; i++)
        if ((unsigned char)name.p[i] <= ' ' || name.p[i] == 0x7f)
            return err_set(e, ERR_CALLER, "instance has blanks or control characters in it");
    return 0;
}

static int take_instance(struct order *o, const json_t *v, struct err *e)
{
    struct str name = json_view(v);

    if (instance_check(name, e) < 0)
        return -1;
    return str_to_cstr(name, o->instance, sizeof(o->instance))
               ? 0
               : err_set(e, ERR_CALLER, "instance has a NUL in it");
}

/* Seconds, whole or not; 0 and null are the most there may be. */
static int take_timeout(struct order *o, const json_t *v, struct err *e)
{
    double s = json_number_value(v);

    if (json_is_string(v)) {
        char *end;
        s = strtod(json_string_value(v), &end);
        if (end == json_string_value(v) || *end != '\0')
            return err_set(e, ERR_CALLER, "timeout is a number of seconds");
    } else if (!json_is_number(v) && !json_is_null(v)) {
        return err_set(e, ERR_CALLER, "timeout is a number of seconds");
    }
    if (!(s >= 0) || s > SECONDS_MOST)
        return err_set(e, ERR_CALLER, "timeout is a number of seconds, from 0 to %d", SECONDS_MOST);
    o->wall_ms = s > 0 ? (uint64_t)(s * 1000 + 0.999) : (uint64_t)SECONDS_MOST * 1000;
    return 0;
}

static int check_source(const json_t *v, struct err *e)
{
    struct str s = json_view(v);
    bool data = s.n > 5 && memcmp(s.p, "data:", 5) == 0;

    if (!s.p || s.n == 0 || strlen(s.p) != s.n)
        return err_set(e, ERR_CALLER, "files are URLs or paths, each a string");
    if (!data && s.n > SOURCE_MAX)
        return err_set(e, ERR_LIMIT, "a URL or path has more than %zu bytes", SOURCE_MAX);
    return 0;
}

/* A list, or the one file as a string. */
static int take_files(struct order *o, const json_t *v, struct err *e)
{
    json_t *list = json_is_string(v) ? json_pack("[O]", (json_t *)v) : json_incref((json_t *)v);
    const json_t *one;
    size_t i;

    json_decref(o->files);
    o->files = list;
    if (!json_is_array(list))
        return err_set(e, ERR_CALLER, "files is a list of URLs or paths");
    if (json_array_size(list) > SOURCES_MAX)
        return err_set(e, ERR_LIMIT, "more than %d files", SOURCES_MAX);
    json_array_foreach(list, i, one) if (check_source(one, e) < 0) return -1;
    return 0;
}

static int take_text(char **ret, const json_t *v, const char *what, struct err *e)
{
    struct str s = json_view(v);

    if (!s.p || s.n > SOURCE_MAX || strlen(s.p) != s.n)
        return err_set(e, ERR_CALLER, "%s is a string of at most %zu bytes", what, SOURCE_MAX);
    free(*ret);
    *ret = s.n ? mem_strndup(s) : NULL;
    return 0;
}

static int take_work_dir(struct order *o, const json_t *v, struct err *e)
{
    return take_text(&o->work_dir, v, "work_dir", e);
}

static int take_traceback(struct order *o, const json_t *v, struct err *e)
{
    struct str s = json_view(v);

    (void)e;
    o->traceback = json_is_true(v) || str_is(s, "1") || str_is(s, "true") || str_is(s, "full");
    return 0;
}

static int take_symbol(struct order *o, const json_t *v, struct err *e)
{
    return take_text(&o->answer_symbol, v, "get_answer_symbol", e);
}

static int take_expr(struct order *o, const json_t *v, struct err *e)
{
    return take_text(&o->answer_expr, v, "get_answer_expr", e);
}

static int take_from_stdout(struct order *o, const json_t *v, struct err *e)
{
    (void)e;
    o->last_value = json_is_false(v) || str_is(json_view(v), "false");
    return 0;
}

int order_take(struct order *o, const struct qwen *q, const json_t *more, struct err *e)
{
    static const struct {
        const char *name;
        int (*take)(struct order *o, const json_t *v, struct err *e);
    } options[] = {
        {"instance",               take_instance   },
        {"timeout",                take_timeout    },
        {"timeout_length",         take_timeout    },
        {"files",                  take_files      },
        {"work_dir",               take_work_dir   },
        {"traceback",              take_traceback  },
        {"get_answer_symbol",      take_symbol     },
        {"get_answer_expr",        take_expr       },
        {"get_answer_from_stdout", take_from_stdout},
    };

    for (size_t i = 0; i < COUNT(options); i++) {
        const json_t *v = json_object_get(more, options[i].name);
        if (v && options[i].take(o, v, e) < 0)
            return -1;
    }
    if (o->work_dir && !q->has_work_dir)
        return err_set(e, ERR_CALLER,
                       "this server has no work dir: its operator sets one with --qwen-work-dir");
    return 0;
}
