/* The parameters of a call: the code, and options beside it. */
#include "doors/qwen/qwen_int.h"

#include <stdlib.h>

#define SECONDS_MOST 86400

void call_params_init(struct call_params *p, const struct qwen *q)
{
    *p = (struct call_params){.traceback = q->config.traceback};
}

void call_params_done(struct call_params *p)
{
    free(p->code);
    free(p->work_dir);
    free(p->answer_symbol);
    free(p->answer_expr);
    json_decref(p->files);
    *p = (struct call_params){0};
}

void call_params_set_code(struct call_params *p, struct parsed_code *parsed)
{
    free(p->code);
    p->code = take_ptr(&parsed->code);
    p->code_n = parsed->code_n;
}

/* --- options: each function checks a value and writes it to its member of struct call_params ---
 */

static int take_instance(const char *name, const json_t *v, void *to, struct err *e)
{
    struct str s = json_view(v);

    if (s.n == 0 || s.n > INSTANCE_MAX)
        return err_set(e, ERR_CALLER, "%s is a name of 1 to %d bytes", name, INSTANCE_MAX);
    for (size_t i = 0; i < s.n; i++)
        if ((unsigned char)s.p[i] <= ' ' || s.p[i] == 0x7f)
            return err_set(e, ERR_CALLER, "%s has blanks or control characters in it", name);
    memcpy(to, s.p, s.n + 1);
    return 0;
}

/* Seconds, also with a fraction. 0 and null: the most there may be. */
static int take_timeout(const char *name, const json_t *v, void *to, struct err *e)
{
    const char *text = json_string_value(v);
    char *end = NULL;
    double s = text ? strtod(text, &end) : json_number_value(v);

    if ((text ? end == text || *end : !json_is_number(v) && !json_is_null(v)) || !(s >= 0) ||
        s > SECONDS_MOST)
        return err_set(e, ERR_CALLER, "%s is a number of seconds, from 0 to %d", name,
                       SECONDS_MOST);
    *(uint64_t *)to = s > 0 ? (uint64_t)(s * 1000 + 0.999) : WALL_ALL_THERE_IS;
    return 0;
}

/* A list of files, or one of them. */
static int take_files(const char *name, const json_t *v, void *to, struct err *e)
{
    json_t *list = json_is_array(v) ? json_incref((json_t *)v) : json_pack("[O]", (json_t *)v);
    struct input_file ignored;
    const json_t *one;
    size_t i;

    json_decref(*(json_t **)to);
    *(json_t **)to = list;
    if (json_array_size(list) > SOURCES_MAX)
        return err_set(e, ERR_LIMIT, "%s: more than %d files", name, SOURCES_MAX);
    json_array_foreach(list, i, one)
        if (input_file_take(&ignored, one, e) < 0)
            return -1;
    return 0;
}

static int take_text(const char *name, const json_t *v, void *to, struct err *e)
{
    struct str s = json_view(v);

    if (!s.p || s.n > SOURCE_MAX || strlen(s.p) != s.n)
        return err_set(e, ERR_CALLER, "%s is a string of at most %zu bytes", name, SOURCE_MAX);
    free(*(char **)to);
    *(char **)to = s.n ? mem_strndup(s) : NULL;
    return 0;
}

static int take_traceback(const char *name, const json_t *v, void *to, struct err *e)
{
    struct str s = json_view(v);

    (void)name, (void)e;
    *(bool *)to = json_is_true(v) || str_is(s, "1") || str_is(s, "true") || str_is(s, "full");
    return 0;
}

static int take_from_stdout(const char *name, const json_t *v, void *to, struct err *e)
{
    (void)name, (void)e;
    *(bool *)to = json_is_false(v) || str_is(json_view(v), "false");
    return 0;
}

int call_params_take(struct call_params *p, const struct qwen *q, const json_t *more, struct err *e)
{
    static const struct {
        const char *name;
        int (*take)(const char *name, const json_t *v, void *to, struct err *e);
        size_t to;
    } options[] = {
        {"instance",               take_instance,    offsetof(struct call_params, instance)     },
        {"timeout",                take_timeout,     offsetof(struct call_params, wall_ms)      },
        {"timeout_length",         take_timeout,     offsetof(struct call_params, wall_ms)      },
        {"files",                  take_files,       offsetof(struct call_params, files)        },
        {"work_dir",               take_text,        offsetof(struct call_params, work_dir)     },
        {"traceback",              take_traceback,   offsetof(struct call_params, traceback)    },
        {"get_answer_symbol",      take_text,        offsetof(struct call_params, answer_symbol)},
        {"get_answer_expr",        take_text,        offsetof(struct call_params, answer_expr)  },
        {"get_answer_from_stdout", take_from_stdout, offsetof(struct call_params, last_value)   },
    };

    for (size_t i = 0; i < COUNT(options); i++) {
        const json_t *v = json_object_get(more, options[i].name);
        if (json_is_null(v) && options[i].take != take_timeout)
            continue; /* as if it were not there; only of a time null says something */
        if (v && options[i].take(options[i].name, v, (char *)p + options[i].to, e) < 0)
            return -1;
    }
    if (p->work_dir && !q->has_work_dir)
        return err_set(e, ERR_CALLER,
                       "this server has no work dir: its operator sets one with --qwen-work-dir");
    return 0;
}
