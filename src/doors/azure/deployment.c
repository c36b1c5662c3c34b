/*
 * Deployment templates: a document with parameters, the session pools that it makes, and its
 * outputs. All of it is evaluated first, with the pools as they will be, so a template with a
 * mistake is refused before its first pool is made. The pools are made one after the other.
 */
#include "doors/azure/azure_int.h"

#include <stdio.h>
#include <stdlib.h>

#define RESOURCES_MAX 16
#define NAMED(s)      (int)(s).n, (s).p

struct deployment {
    struct azure_request *v;
    json_t *template; /* borrowed from the body */
    json_t *made;     /* owned: what was made, or will be, by its id */
    json_t *filled;   /* owned, or NULL: the resource that is being made */
    json_t *ops;      /* owned: array, of each resource */
    json_t *record;   /* owned, or NULL: as it is answered */
    struct scope scope;
    size_t at;
    unsigned calls; /* of functions */
    bool existed;   /* the pool that is being put */
    int64_t began_ms;
};

static void deployment_free(void *p)
{
    struct deployment *d = p;

    json_decref(d->made);
    json_decref(d->filled);
    json_decref(d->ops);
    json_decref(d->record);
    free(d);
}

static void refuse(struct deployment *d, const struct err *e)
{
    if (e->kind != ERR_CALLER)
        azure_fail_err(d->v, e, "SessionPoolNotFound");
    else
        azure_fail(d->v, 400, "InvalidTemplate", "Deployment template validation failed: %s",
                   e->text);
}

/* --- before --- */

static int check(const struct deployment *d, struct err *e)
{
    const json_t *resources = json_nocase(d->template, "resources");
    struct str mode = json_view(json_at(d->v->body, "properties.mode"));
    json_t *one;
    size_t i;

    if (mode.p && !str_nocase(mode, STR("Incremental")))
        return err_set(
            e, ERR_CALLER,
            "properties.mode is Incremental here: pools that a template does not name stay");
    if (!json_is_object(d->template))
        return err_set(e, ERR_CALLER, "properties.template is needed, and is an object");
    if (!json_is_array(resources) || json_array_size(resources) > RESOURCES_MAX)
        return err_set(e, ERR_CALLER, "a template has a list of at most %d resources",
                       RESOURCES_MAX);
    json_array_foreach(resources, i, one)
        if (!str_nocase(json_view(json_nocase(one, "type")), STR("Microsoft.App/sessionPools")))
            return err_set(e, ERR_CALLER, "a template makes Microsoft.App/sessionPools here");
    return parameters_check(d->scope.parameters, d->scope.given, e);
}

static struct deployment *deployment_new(struct azure_request *v)
{
    struct deployment *d = mem_zalloc(sizeof(*d));

    d->v = v;
    d->template = json_at(v->body, "properties.template");
    d->made = json_object();
    d->ops = json_array();
    d->began_ms = time_now_ms();
    d->scope = (struct scope){
        .given = json_at(v->body, "properties.parameters"),
        .parameters = json_nocase(d->template, "parameters"),
        .variables = json_nocase(d->template, "variables"),
        .made = d->made,
        .subscription = v->target.subscription,
        .group = v->target.group,
        .calls = &d->calls,
    };
    request_keep(v->r, deployment_free, d);
    return d;
}

/* A resource with its expressions filled in; owned, NULL with *e. */
static json_t *fill(struct deployment *d, const json_t *resource, struct err *e)
{
    json_t *filled = expression_fill(&d->scope, resource, e), *condition;
    const char *why = NULL;

    if (!filled)
        return NULL;
    condition = json_nocase(filled, "condition");
    if (json_nocase(filled, "copy"))
        why = "a resource is made once here: copy is not known";
    else if (condition && !json_is_boolean(condition))
        why = "the condition of a resource is true or false";
    if (!why)
        return filled;
    json_decref(filled);
    err_set(e, ERR_CALLER, "%s", why);
    return NULL;
}

/* Whether it is to be made. */
static bool is_wanted(const json_t *filled)
{
    return !json_is_false(json_nocase(filled, "condition"));
}

/* The pool that a resource will be goes to d->made. */
static int foresee(struct deployment *d, const json_t *filled, struct err *e)
{
    json_t *shown = pool_foresee(d->v, json_view(json_nocase(filled, "name")), filled, e);
    const char *id = json_string_value(json_object_get(shown, "id"));

    if (!shown)
        return -1;
    if (json_nocase(d->made, id)) {
        err_set(e, ERR_CALLER, "the resource '%.64s' is defined more than once",
                json_string_value(json_object_get(shown, "name")));
        json_decref(shown);
        return -1;
    }
    json_object_set_new(d->made, id, shown);
    return 0;
}

static json_t *outputs_of(struct deployment *d, struct err *e);

/* Evaluates everything: each resource that will be made, filled in; owned, or NULL with *e. */
static json_t *evaluate(struct deployment *d, struct err *e)
{
    json_t *all = json_array(), *one, *outputs;
    size_t i;

    json_array_foreach(json_nocase(d->template, "resources"), i, one) {
        json_t *filled = fill(d, one, e);
        int rc = !filled ? -1 : is_wanted(filled) ? foresee(d, filled, e) : 0;
        if (rc == 0 && is_wanted(filled))
            json_array_append_new(all, pool_shape(filled, e));
        json_decref(filled);
        if (rc < 0) {
            json_decref(all);
            return NULL;
        }
    }
    outputs = parameters_check_computed(&d->scope, e) < 0 ? NULL : outputs_of(d, e);
    if (outputs) {
        json_decref(outputs);
        return all;
    }
    json_decref(all);
    return NULL;
}

/* --- as it is shown --- */

static json_t *id_of(const struct azure_request *v, const char *type, struct str name)
{
    return json_sprintf("/subscriptions/%.*s/resourceGroups/%.*s/providers/%s/%.*s",
                        NAMED(v->target.subscription), NAMED(v->target.group), type, NAMED(name));
}

static json_t *show(struct deployment *d, const char *state)
{
    struct azure_request *v = d->v;
    char took[32];

    snprintf(took, sizeof(took), "PT%.3fS", (double)(time_now_ms() - d->began_ms) / 1000);
    return json_pack(
        "{s:o, s:o, s:s, s:{s:s, s:o, s:s, s:o, s:s, s:s, s:[{s:s, s:[{s:s, s:[s]}]}], s:[]}}",
        "id", id_of(v, "Microsoft.Resources/deployments", v->target.pool), "name",
        record_text(v->target.pool), "type", "Microsoft.Resources/deployments", "properties",
        "provisioningState", state, "timestamp", time_json(time_now_ms()), "duration", took,
        "parameters", parameters_show(d->scope.parameters, d->scope.given), "mode", "Incremental",
        "correlationId", azure_caller(v)->request, "providers", "namespace", "Microsoft.App",
        "resourceTypes", "resourceType", "sessionPools", "locations", "local", "dependencies");
}

/* Type and value of one, secrets left out; owned, NULL with *e. */
static json_t *output_of(struct deployment *d, const char *name, const json_t *declared,
                         struct err *e)
{
    const json_t *usual = json_nocase(declared, "value");
    json_t *value = usual ? expression_fill(&d->scope, usual, e) : NULL, *shown = NULL;
    bool secret;

    if (!usual)
        err_set(e, ERR_CALLER, "the output '%.64s' has no value", name);
    else if (value && !output_fits(declared, value, &secret))
        err_set(e, ERR_CALLER, "the value of the output '%.64s' is not of the type it declares",
                name);
    else if (value)
        shown = json_pack("{s:O, s:O*}", "type", json_nocase(declared, "type"), "value",
                          secret ? NULL : value);
    json_decref(value);
    return shown;
}

static json_t *outputs_of(struct deployment *d, struct err *e)
{
    json_t *declared = json_nocase(d->template, "outputs"), *outputs = json_object(), *one;
    const char *name;

    if (declared && !json_is_object(declared))
        err_set(e, ERR_CALLER, "the outputs of a template are an object");
    json_object_foreach(declared, name, one) {
        json_t *shown = is_wanted(one) ? output_of(d, name, one, e) : NULL;
        if (shown)
            json_object_set_new(outputs, name, shown);
        if (e->kind)
            break;
    }
    if (!e->kind)
        return outputs;
    json_decref(outputs);
    return NULL;
}

/* --- the end --- */

static void on_kept(void *arg, const struct err *failed)
{
    struct deployment *d = arg;

    if (failed)
        azure_fail_err(d->v, failed, "DeploymentNotFound");
    else
        azure_answer(d->v, 201, deployment_now(d->v, d->record));
}

/* What is kept has the template and the operations, too. */
static void keep(struct deployment *d, json_t *record, done_fn *fn)
{
    deployment_keep(d->v,
                    json_pack("{s:O, s:O, s:O}", "deployment", record, "operations", d->ops,
                              "template", d->template),
                    fn, d);
}

static void finish(struct deployment *d)
{
    struct err e = {0};
    json_t *outputs = outputs_of(d, &e), *ids = json_array(), *props, *one;
    const char *key;

    if (!outputs) {
        json_decref(ids);
        refuse(d, &e);
        return;
    }
    json_object_foreach(d->made, key, one)
        json_array_append_new(ids, json_pack("{s:s}", "id", key));
    d->record = show(d, "Succeeded");
    props = json_object_get(d->record, "properties");
    json_object_set_new(props, "outputs", outputs);
    json_object_set_new(props, "outputResources", ids);
    keep(d, d->record, on_kept);
}

static void on_failure_kept(void *arg, const struct err *failed)
{
    (void)arg, (void)failed; /* the client has been told why */
}

/* --- one resource after the other --- */

static void make_next(struct deployment *d);

static void note_operation(struct deployment *d, json_t *id, struct str name, const char *state,
                           const char *code)
{
    char number[24];

    snprintf(number, sizeof(number), "%zu", d->at);
    json_array_append_new(
        d->ops,
        json_pack("{s:s, s:{s:s, s:s, s:o, s:s, s:s, s:{s:o, s:s, s:o}}}", "operationId", number,
                  "properties", "provisioningOperation", "Create", "provisioningState", state,
                  "timestamp", time_json(time_now_ms()), "statusCode", code, "duration", "PT0S",
                  "targetResource", "id", id, "resourceType", "Microsoft.App/sessionPools",
                  "resourceName", record_text(name)));
}

static void on_made(void *arg, const struct pool_info *info, const struct err *failed)
{
    struct deployment *d = arg;
    json_t *shown, *record;

    if (failed) {
        struct str name = json_view(json_nocase(d->filled, "name"));
        note_operation(d, id_of(d->v, "Microsoft.App/sessionPools", name), name, "Failed",
                       "BadRequest");
        record = show(d, "Failed");
        json_object_set_new(json_object_get(record, "properties"), "error",
                            json_pack("{s:s, s:o}", "code", "DeploymentFailed", "message",
                                      record_text(str_of(failed->text))));
        azure_fail_err(d->v, failed, "SessionPoolNotFound");
        keep(d, record, on_failure_kept);
        json_decref(record);
        return;
    }
    shown = pool_show(d->v, info);
    note_operation(d, json_incref(json_object_get(shown, "id")),
                   json_view(json_object_get(shown, "name")), "Succeeded",
                   d->existed ? "OK" : "Created");
    json_object_set_new(d->made, json_string_value(json_object_get(shown, "id")), shown);
    make_next(d);
}

static void make_next(struct deployment *d)
{
    const json_t *resource = json_array_get(json_nocase(d->template, "resources"), d->at++);
    struct pool_info before;
    struct err e = {0};
    struct str name;

    if (!resource) {
        finish(d);
        return;
    }
    json_decref(d->filled);
    d->filled = fill(d, resource, &e);
    if (!d->filled) {
        refuse(d, &e);
    } else if (!is_wanted(d->filled)) {
        make_next(d);
    } else {
        name = json_view(json_nocase(d->filled, "name"));
        d->existed = pool_find(d->v, name, &before);
        pool_put(d->v, name, d->filled, on_made, d);
    }
}

/* --- what is asked --- */

void op_deployment_put(struct azure_request *v)
{
    struct deployment *d = deployment_new(v);
    struct err e = {0};
    json_t *all = check(d, &e) < 0 ? NULL : evaluate(d, &e);

    if (!all) {
        refuse(d, &e);
        return;
    }
    json_decref(all);
    json_object_clear(d->made); /* from here on: as they are */
    d->calls = 0;
    make_next(d);
}

void op_deployment_validate(struct azure_request *v)
{
    struct deployment *d = deployment_new(v);
    struct err e = {0};
    json_t *all, *one, *ids, *shown;
    size_t i;

    all = check(d, &e) < 0 ? NULL : evaluate(d, &e);
    if (!all) {
        refuse(d, &e);
        return;
    }
    ids = json_array();
    json_array_foreach(all, i, one)
        json_array_append_new(ids, json_pack("{s:o}", "id",
                                             id_of(v, "Microsoft.App/sessionPools",
                                                   json_view(json_nocase(one, "name")))));
    shown = show(d, "Succeeded");
    json_object_set_new(json_object_get(shown, "properties"), "validatedResources", ids);
    json_decref(all);
    azure_answer(v, 200, shown);
}

/* A pool that would be as it is: NoChange. */
static json_t *change_of(struct azure_request *v, const json_t *after)
{
    struct str name = json_view(json_nocase(after, "name"));
    struct pool_info before;
    bool there = pool_find(v, name, &before);
    const json_t *kept = there ? json_at(before.document, "document") : NULL;
    json_t *change = json_pack(
        "{s:o, s:s, s:O}", "resourceId", id_of(v, "Microsoft.App/sessionPools", name), "changeType",
        !there                                                                          ? "Create"
        : json_equal(json_nocase(kept, "properties"), json_nocase(after, "properties")) ? "NoChange"
                                                                                        : "Modify",
        "after", after);

    if (there)
        json_object_set_new(change, "before", pool_show(v, &before));
    return change;
}

void op_deployment_what_if(struct azure_request *v)
{
    struct deployment *d = deployment_new(v);
    struct err e = {0};
    json_t *all, *one, *changes;
    size_t i;

    all = check(d, &e) < 0 ? NULL : evaluate(d, &e);
    if (!all) {
        refuse(d, &e);
        return;
    }
    changes = json_array();
    json_array_foreach(all, i, one)
        json_array_append_new(changes, change_of(v, one));
    json_decref(all);
    azure_answer(
        v, 200,
        json_pack("{s:s, s:{s:o}}", "status", "Succeeded", "properties", "changes", changes));
}
