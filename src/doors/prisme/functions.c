/*
 * The Functions service, as far as it is Python: a workspace's functions are put, and run
 * by their names. They are kept in memory: the platform puts them again when it starts.
 *
 * POST /prisme/v2/functions/{ws}            {"functions": {name: {"code", "parameters"}}}
 * POST /prisme/v2/functions/{ws}/run/{name} {"parameters": {...}}
 */
#include "doors/prisme/prisme_int.h"

#include <stdio.h>
#include <stdlib.h>

/* --- what was put --- */

struct space_entry {
    struct space_entry *next;
    char tenant[sizeof(((struct caller *)0)->tenant)];
    char *name;        /* owned */
    json_t *functions; /* owned: object */
};

struct spaces {
    struct space_entry *first; /* the last that was put */
    size_t count;
};

static void entry_free(struct space_entry *s)
{
    json_decref(s->functions);
    free(s->name);
    free(s);
}

struct spaces *spaces_new(void)
{
    return mem_zalloc(sizeof(struct spaces));
}

void spaces_free(struct spaces *s)
{
    struct space_entry *next;

    for (struct space_entry *one = s ? s->first : NULL; one; one = next) {
        next = one->next;
        entry_free(one);
    }
    free(s);
}

static struct space_entry **find(struct prisme *p, const char *tenant, struct str name)
{
    struct space_entry **at = &p->spaces->first;

    while (*at && !(strcmp((*at)->tenant, tenant) == 0 && str_is(name, (*at)->name)))
        at = &(*at)->next;
    return at;
}

static void drop(struct prisme *p, struct space_entry **at)
{
    struct space_entry *old = *at;

    *at = old->next;
    entry_free(old);
    p->spaces->count--;
}

/* The one that was put longest ago makes room. */
static void put_space(struct prisme *p, const char *tenant, struct str name, json_t *functions)
{
    struct space_entry **at = find(p, tenant, name), *s = mem_zalloc(sizeof(*s));

    if (*at)
        drop(p, at);
    for (at = &p->spaces->first; p->spaces->count >= SPACES_MAX && *at;)
        if ((*at)->next)
            at = &(*at)->next;
        else
            drop(p, at);
    snprintf(s->tenant, sizeof(s->tenant), "%s", tenant);
    s->name = mem_strndup(name);
    s->functions = json_incref(functions);
    s->next = p->spaces->first;
    p->spaces->first = s;
    p->spaces->count++;
}

/* --- routes --- */

static bool function_is_good(struct request *r, const char *name, const json_t *f)
{
    struct str language = json_view(json_object_get(f, "language"));
    char shown[NAME_SHOWN];

    name_show(shown, str_of(name));
    if (!json_is_object(f) || !json_is_string(json_object_get(f, "code"))) {
        answer_fail(r, 400, "VALIDATION_ERROR", name, "the function %s has no code", shown);
        return false;
    }
    if (language.p && !str_is(language, "python")) {
        answer_fail(r, 400, "UNSUPPORTED_LANGUAGE", name,
                    "the function %s is not in Python, and nothing else is run here", shown);
        return false;
    }
    return true;
}

void handle_functions_put(struct request *r)
{
    struct prisme *p = request_ctx(r);
    json_t *functions = json_object_get(request_json(r), "functions"), *f;
    const char *name;

    json_object_foreach(functions, name, f) if (!function_is_good(r, name, f)) return;
    put_space(p, request_caller(r)->tenant, request_path(r, "workspace"), functions);
    answer_json(r, 200, json_incref(request_json(r)));
}

void handle_functions_get(struct request *r)
{
    struct space_entry *s =
        *find(request_ctx(r), request_caller(r)->tenant, request_path(r, "workspace"));

    if (s)
        answer_json(r, 200, json_pack("{s:O}", "functions", s->functions));
    else
        answer_fail(r, 404, "NOT_FOUND", "workspace", "there are no functions of this workspace");
}

/* --- running --- */

struct running {
    struct request *r;     /* borrowed; NULL once it is answered or dropped */
    struct script *script; /* borrowed */
};

static void on_gone(void *arg)
{
    struct running *u = arg;
    struct request *r = take_ptr(&u->r);

    if (!r)
        return;
    script_leave(take_ptr(&u->script));
    request_drop(r);
}

static void on_value(void *arg, json_t *value, const char *task)
{
    struct running *u = arg;
    struct request *r = take_ptr(&u->r);

    u->script = NULL;
    if (*task)
        json_object_set_new(value, "task_id", json_string(task));
    answer_json(r, *task ? 202 : 200, json_incref(value));
}

static void run(struct request *r, json_t *code, json_t *files, json_t *parameters)
{
    struct running *u = mem_zalloc(sizeof(*u));
    const struct script_spec spec = {.prisme = request_ctx(r),
                                     .service = request_service(r),
                                     .caller = request_caller(r),
                                     .code = json_view(code),
                                     .files = files,
                                     .parameters = parameters,
                                     .conversation = request_header(r, "x-correlation-id")};

    u->r = r;
    request_keep(r, free, u);
    request_on_gone(r, on_gone, u);
    u->script = script_start(&spec, on_value, u);
}

/* The function's own parameters are what a call that leaves them out has. */
void handle_function_run(struct request *r)
{
    struct space_entry *s =
        *find(request_ctx(r), request_caller(r)->tenant, request_path(r, "workspace"));
    struct str name = request_path(r, "function");
    AUTO_FREE char *key = mem_strndup(name);
    json_t *f = s ? json_object_get(s->functions, key) : NULL;
    json_t *parameters = json_object_get(request_json(r), "parameters");

    if (!f) {
        answer_fail(r, 404, "NOT_FOUND", "function", "there is no such function");
        return;
    }
    run(r, json_object_get(f, "code"), NULL, parameters);
}

void handle_execute_python(struct request *r)
{
    struct prisme *p = request_ctx(r);
    json_t *body = request_json(r), *metadata = json_object_get(body, "metadata");

    if (p->config.user_first &&
        !tool_is_chosen(&tool_execute_python, json_object_get(metadata, "tool_choice"))) {
        answer_json(r, 200, value_of_blocked());
        return;
    }
    run(r, json_object_get(body, "code"), json_object_get(body, "files"),
        json_object_get(body, "parameters"));
}
