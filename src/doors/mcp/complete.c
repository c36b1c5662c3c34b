/*
 * Completion: values for the arguments of prompts and for the variables of resource templates, as
 * the user types. A caller is offered only its own sessions, executions and files.
 */
#include "doors/mcp/resource.h"

#include <stdlib.h>

#define VALUES_MAX 100 /* in one answer, as the protocol has it */
#define TYPED_MAX  SPACE_PATH_MAX

struct completing {
    struct call *c;     /* borrowed: answered at the end */
    struct service *sv; /* borrowed */
    struct str typed;   /* borrowed from the call */
    json_t *values;     /* owned: array */
    size_t total;       /* of what fits, shown or not */
    bool failures;      /* only executions that failed */
};

/* --- the answer --- */

static void completing_free(void *p)
{
    struct completing *g = p;

    json_decref(g->values);
    free(g);
}

/* more: there may be others that were not looked at. */
static void answer(struct completing *g, bool more, const struct err *failed)
{
    bool left_out = g->total > json_array_size(g->values);
    json_t *v;

    if (failed) {
        call_fail(g->c, failed);
        return;
    }
    v = json_pack("{s:O, s:b}", "values", g->values, "hasMore", more || left_out);
    if (!more)
        json_object_set_new(v, "total", json_integer((json_int_t)g->total));
    call_result(g->c, json_pack("{s:o}", "completion", v));
}

static bool has(const struct completing *g, struct str value)
{
    for (size_t i = 0; i < json_array_size(g->values); i++)
        if (str_eq(json_view(json_array_get(g->values, i)), value))
            return true;
    return false;
}

/* A name that is not UTF-8 cannot be handed back as it is, so it is not offered. */
static void offer(struct completing *g, struct str value)
{
    if (value.n < g->typed.n || memcmp(value.p, g->typed.p, g->typed.n) != 0 ||
        str_utf8_len(value) != value.n || has(g, value))
        return;
    g->total++;
    if (json_array_size(g->values) < VALUES_MAX)
        json_array_append_new(g->values, record_text(value));
}

/* --- where values come from --- */

static void from_list(struct completing *g, const char *values)
{
    struct str list = str_of(values), value;

    while (str_next(&list, '|', &value))
        offer(g, value);
    answer(g, false, NULL);
}

static bool on_session_files(void *arg, const struct session_files *files)
{
    struct completing *g = arg;

    for (size_t i = 0; i < files->count; i++)
        offer(g, files->list[i].path);
    return g->total < VALUES_MAX;
}

static void on_files_end(void *arg, const struct session_files_cursor *end,
                         const struct err *failed)
{
    answer(arg, *end->session != '\0', failed);
}

static void on_execs(void *arg, const struct exec_info *infos, size_t count, bool more,
                     const struct err *failed)
{
    struct completing *g = arg;

    for (size_t i = 0; i < count; i++)
        if (!g->failures || (infos[i].row->ended_ms && strcmp(infos[i].row->status, "ok") != 0))
            offer(g, str_of(infos[i].row->id));
    answer(g, more, failed);
}

static void on_sessions(void *arg, const struct session_info *infos, size_t count, bool more,
                        const struct err *failed)
{
    struct completing *g = arg;

    for (size_t i = 0; i < count; i++)
        offer(g, str_of(infos[i].row->id));
    answer(g, more, failed);
}

/* A session that is not the caller's has no files to offer, which is no error. */
static void on_files(void *arg, const struct space_file *files, size_t count,
                     const struct err *failed)
{
    struct completing *g = arg;

    for (size_t i = 0; !failed && i < count && g->total < VALUES_MAX; i++)
        offer(g, files[i].path);
    answer(g, g->total == VALUES_MAX, failed && failed->kind == ERR_HOST ? failed : NULL);
}

/* --- what is to be completed --- */

static void for_files(struct completing *g)
{
    session_files_each(g->c, g->sv, NULL, on_session_files, on_files_end, g);
}

static void for_execution(struct completing *g)
{
    const struct exec_filter filter = {.tenant = g->c->caller.tenant};

    service_exec_list(g->sv, &g->c->caller, &filter, (struct page){.limit = VALUES_MAX}, false,
                      on_execs, g);
}

static void for_failures(struct completing *g)
{
    g->failures = true;
    for_execution(g);
}

static void for_session(struct completing *g)
{
    service_session_list(g->sv, &g->c->caller, (struct page){.limit = VALUES_MAX}, on_sessions, g);
}

/* Paths of the session that has been chosen already. */
static void for_path(struct completing *g)
{
    const json_t *context = json_object_get(g->c->params, "context");
    struct str session =
        json_view(json_object_get(json_object_get(context, "arguments"), "session_id"));

    if (session.p)
        service_space_list(g->sv, &g->c->caller, session, on_files, g);
    else
        for_files(g);
}

static const struct {
    const char *ref, *argument; /* ref: what the template begins with, or a prompt's values */
    void (*start)(struct completing *g);
} sources[] = {
    {"files",                "",             for_files    },
    {"failures",             "",             for_failures },
    {"retort://sessions/",   "session_id",   for_session  },
    {"retort://sessions/",   "path",         for_path     },
    {"retort://executions/", "execution_id", for_execution},
};

/* The program need not be started for what it does not have yet. */
static void start(struct completing *g, const char *ref, struct str argument)
{
    for (size_t i = 0; i < COUNT(sources) && g->sv; i++)
        if (strncmp(ref, sources[i].ref, strlen(sources[i].ref)) == 0 &&
            str_is(argument, sources[i].argument)) {
            sources[i].start(g);
            return;
        }
    answer(g, false, NULL);
}

/* What a prompt says of the values of its argument: NULL when there is no such prompt. */
static const char *values_of(const struct prompt *p, struct str argument)
{
    for (size_t i = 0; p && i < PROMPT_ARGS && p->args[i].name; i++)
        if (str_is(argument, p->args[i].name))
            return p->args[i].values ? p->args[i].values : "";
    return p ? "" : NULL;
}

/* What is to be completed: the values of a prompt's argument, or a template. NULL: neither. */
static const char *subject_of(const json_t *ref, struct str argument, bool is_prompt)
{
    if (is_prompt)
        return values_of(prompt_find(json_view(json_object_get(ref, "name"))), argument);
    if (!str_is(json_view(json_object_get(ref, "type")), "ref/resource"))
        return NULL;
    return json_string_value(json_object_get(ref, "uri"));
}

void handle_complete(struct call *c)
{
    const json_t *ref = json_object_get(c->params, "ref");
    const json_t *given = json_object_get(c->params, "argument");
    struct str argument = json_view(json_object_get(given, "name"));
    struct str typed = json_view(json_object_get(given, "value"));
    bool is_prompt = str_is(json_view(json_object_get(ref, "type")), "ref/prompt");
    const char *subject = subject_of(ref, argument, is_prompt);
    struct completing *g;

    if (c->tool_set->more && c->tool_set->more->complete(c, ref))
        return;
    if (!argument.p || !typed.p || typed.n > TYPED_MAX) {
        call_error(c, RPC_PARAMS, NULL,
                   "argument needs a name and a value, of at most %zu bytes, to be completed",
                   (size_t)TYPED_MAX);
        return;
    }
    if (!subject) {
        call_error(c, RPC_PARAMS, NULL,
                   "ref names a prompt that there is, or the uri of a resource template");
        return;
    }
    g = mem_zalloc(sizeof(*g));
    *g =
        (struct completing){.c = c, .sv = c->mcp->followed, .typed = typed, .values = json_array()};
    call_keep(c, completing_free, g);
    if (is_prompt && strchr(subject, '|'))
        from_list(g, subject);
    else
        start(g, subject, is_prompt ? STR("") : argument);
}
