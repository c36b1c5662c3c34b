/*
 * The Functions service for Python: a client puts all functions of a workspace at once, and runs
 * them by name. A workspace is one item in the store, so it outlives a crash once it is answered.
 *
 * POST   /prisme/v2/functions/{ws}            {"functions": {name: {"code", "parameters"}}}
 * GET    /prisme/v2/functions/{ws}            the same
 * DELETE /prisme/v2/functions/{ws}
 * POST   /prisme/v2/functions/{ws}/run/{name} {"parameters": {...}}
 */
#include "doors/prisme/prisme_int.h"

#include <stdlib.h>

#define KIND "prisme-functions"

/* --- what is put --- */

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

static void on_put(void *arg, const struct err *failed)
{
    struct request *r = arg;

    if (failed)
        answer_error(r, failed, "workspace");
    else
        answer_json(r, 200, json_incref(request_json(r)));
}

void handle_functions_put(struct request *r)
{
    json_t *functions = json_object_get(request_json(r), "functions"), *f;
    struct str name = request_path(r, "workspace");
    char id[NAME_BYTES + 1], kind[] = KIND;
    AUTO_FREE char *body = NULL;
    const char *key;

    if (!str_to_cstr(name, id, sizeof(id))) {
        answer_fail(r, 400, "VALIDATION_ERROR", "workspace",
                    "the name of a workspace has %d bytes at most", NAME_BYTES);
        return;
    }
    if (json_object_size(functions) > FUNCTIONS_MAX) {
        answer_fail(r, 400, "VALIDATION_ERROR", "functions", "a workspace has %d functions at most",
                    FUNCTIONS_MAX);
        return;
    }
    json_object_foreach(functions, key, f)
        if (!function_is_good(r, key, f))
            return;
    body = record_dump(functions, false, NULL);
    if (!body) {
        answer_fail(r, 413, "too_large", "functions", "there is too much in it");
        return;
    }
    const struct item_row row = {.id = id, .kind = kind, .body = body};
    service_item_put_up_to(request_service(r), request_caller(r), &row, SPACES_MAX, on_put, r);
}

/* --- what is there --- */

/* The functions of an item: owned, or NULL and answered. */
static json_t *functions_of(struct request *r, const struct item_row *item,
                            const struct err *failed)
{
    json_t *functions = NULL;
    struct err e;

    if (failed && failed->kind == ERR_MISSING)
        answer_fail(r, 404, "NOT_FOUND", "workspace", "there are no functions of this workspace");
    else if (failed)
        answer_error(r, failed, "workspace");
    else if (json_read_any(str_of(item->body), &functions, &e) < 0)
        answer_error(r, &e, "workspace");
    return functions;
}

static void on_shown(void *arg, const struct item_row *item, const struct err *failed)
{
    struct request *r = arg;
    json_t *functions = functions_of(r, item, failed);

    if (functions)
        answer_json(r, 200, json_pack("{s:o}", "functions", functions));
}

void handle_functions_get(struct request *r)
{
    service_item_get(request_service(r), request_caller(r), KIND, request_path(r, "workspace"),
                     on_shown, r);
}

static void on_deleted(void *arg, const struct err *failed)
{
    struct request *r = arg;

    if (failed && failed->kind == ERR_MISSING)
        answer_fail(r, 404, "NOT_FOUND", "workspace", "there are no functions of this workspace");
    else if (failed)
        answer_error(r, failed, "workspace");
    else
        answer_empty(r, 204);
}

void handle_functions_delete(struct request *r)
{
    service_item_delete(request_service(r), request_caller(r), KIND, request_path(r, "workspace"),
                        on_deleted, r);
}

/* --- running --- */

static void on_found(void *arg, const struct item_row *item, const struct err *failed)
{
    struct request *r = arg;
    json_t *functions = functions_of(r, item, failed), *f;
    AUTO_FREE char *name = mem_strndup(request_path(r, "function"));

    if (!functions)
        return;
    f = json_object_get(functions, name);
    if (f)
        prisme_call(r, json_object_get(f, "code"), NULL);
    else
        answer_fail(r, 404, "NOT_FOUND", "function", "there is no such function");
    json_decref(functions);
}

void handle_function_run(struct request *r)
{
    service_item_get(request_service(r), request_caller(r), KIND, request_path(r, "workspace"),
                     on_found, r);
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
    prisme_call(r, json_object_get(body, "code"), json_object_get(body, "files"));
}
