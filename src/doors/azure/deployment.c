/*
 * Deployment templates: a document with parameters, the session pools it makes, and what
 * it tells of them. The pools are made one after the other; a template that has something
 * else in it is refused before the first.
 */
#include "doors/azure/azure_int.h"

#include <stdio.h>
#include <stdlib.h>

#define RESOURCES_MAX 16

struct deployment {
    struct azure_request *v;
    json_t *template; /* borrowed from the body */
    json_t *made;     /* owned: what was made, by its id */
    struct scope scope;
    size_t at;
};

static void deployment_free(void *p)
{
    struct deployment *d = p;

    json_decref(d->made);
    free(d);
}

static void refuse(struct deployment *d, const struct err *e)
{
    azure_fail(d->v, 400, "InvalidTemplate", "%s", e->text);
}

/* --- before and after --- */

static int check(const struct deployment *d, struct err *e)
{
    const json_t *resources = json_nocase(d->template, "resources");
    const json_t *parameters = json_nocase(d->template, "parameters");
    json_t *one;
    const char *key;
    size_t i;

    if (json_array_size(resources) == 0 || json_array_size(resources) > RESOURCES_MAX)
        return err_set(e, ERR_CALLER, "a template has 1 to %d resources", RESOURCES_MAX);
    json_array_foreach(resources, i, one)
        if (!str_nocase(json_view(json_nocase(one, "type")), STR("Microsoft.App/sessionPools")))
            return err_set(e, ERR_CALLER,
                           "a template makes "
                           "Microsoft.App/sessionPools here");
    json_object_foreach((json_t *)parameters, key, one)
        if (!json_nocase(one, "defaultValue") &&
            !json_at(json_nocase(d->scope.given, key), "value"))
            return err_set(e, ERR_CALLER, "the parameter %.64s has no value", key);
    return 0;
}

static void answer(struct deployment *d)
{
    const struct azure_target *p = &d->v->target;
    json_t *outputs = json_object(), *one, *ids = json_array();
    struct err e = {0};
    const char *key;

    json_object_foreach(json_nocase(d->template, "outputs"), key, one) {
        json_t *value = expression_fill(&d->scope, json_nocase(one, "value"), 0, &e);
        if (value)
            json_object_set_new(
                outputs, key,
                json_pack("{s:O?, s:o}", "type", json_nocase(one, "type"), "value", value));
    }
    json_object_foreach(d->made, key, one)
        json_array_append_new(ids, json_pack("{s:s}", "id", key));
    if (e.kind) {
        json_decref(outputs);
        json_decref(ids);
        refuse(d, &e);
        return;
    }
    azure_answer(d->v, 201,
                 json_pack("{s:o, s:o, s:s, s:{s:s, s:o, s:o}}", "id",
                           json_sprintf("/subscriptions/%.*s/resourceGroups/%.*s/providers/"
                                        "Microsoft.Resources/deployments/%.*s",
                                        (int)p->subscription.n, p->subscription.p, (int)p->group.n,
                                        p->group.p, (int)p->deployment.n, p->deployment.p),
                           "name", record_text(p->deployment), "type",
                           "Microsoft.Resources/deployments", "properties", "provisioningState",
                           "Succeeded", "outputs", outputs, "outputResources", ids));
}

/* --- one resource after the other --- */

static void make_next(struct deployment *d);

static void on_made(void *arg, const struct pool_info *info, const struct err *failed)
{
    struct deployment *d = arg;
    json_t *shown;

    if (failed) {
        azure_fail_err(d->v, failed, "SessionPoolNotFound");
        return;
    }
    shown = pool_show(d->v, info);
    json_object_set_new(d->made, json_string_value(json_object_get(shown, "id")), shown);
    make_next(d);
}

static void make_next(struct deployment *d)
{
    const json_t *resource = json_array_get(json_nocase(d->template, "resources"), d->at++);
    struct err e = {0};
    json_t *filled;

    if (!resource) {
        answer(d);
        return;
    }
    filled = expression_fill(&d->scope, resource, 0, &e);
    if (filled)
        pool_put(d->v, json_view(json_nocase(filled, "name")), filled, on_made, d);
    else
        refuse(d, &e);
    json_decref(filled);
}

void op_deployment_put(struct azure_request *v)
{
    struct deployment *d = mem_zalloc(sizeof(*d));
    struct err e;

    d->v = v;
    d->template = json_at(v->body, "properties.template");
    d->made = json_object();
    d->scope = (struct scope){
        .given = json_at(v->body, "properties.parameters"),
        .parameters = json_nocase(d->template, "parameters"),
        .variables = json_nocase(d->template, "variables"),
        .made = d->made,
        .subscription = v->target.subscription,
        .group = v->target.group,
    };
    request_keep(v->r, deployment_free, d);
    if (check(d, &e) < 0)
        refuse(d, &e);
    else
        make_next(d);
}
