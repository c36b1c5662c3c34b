/*
 * The probes of custom containers. The interface that an image would serve is served by this
 * server, so a probe asks what GET health of the pool answers, at the times its document says, and
 * its thresholds turn the answers into a state that the resource shows. A startup probe ends with
 * its first success, and the others begin then. Sandboxes that end are replaced without a probe.
 *
 * Nothing is kept: after a restart of the server probes begin anew, when a pool is first looked at.
 */
#include "doors/azure/azure_int.h"

#include <stdio.h>
#include <stdlib.h>

#define TICK_MS       1000
#define PROBES_MAX    16 /* of one pool */
#define CONTAINERS    "document.properties.customContainerTemplate.containers"
#define TARGET_PORT   "document.properties.customContainerTemplate.ingress.targetPort"
#define PERIOD_S      10 /* these three are Container Apps' own */
#define FAILURES_MOST 3
#define PASSES_LEAST  1

struct probe {
    struct probe *next;
    char pool[64];
    int64_t updated_ms; /* of the document it is of */
    size_t index;       /* among its probes */
    int64_t due_ms, ran_ms;
    json_int_t runs, failures, passes; /* the last two: in a row */
    const char *state;
};

struct probes {
    struct timer *timer;     /* owned */
    struct service *service; /* borrowed; NULL before a pool was looked at */
    struct probe *first;     /* owned */
    bool ticks;              /* the timer is set */
};

static const char pending[] = "Pending", passing[] = "Passing", failing[] = "Failing",
                  not_run[] = "NotRun";

/* --- what a document says --- */

static const json_t *probes_of(const struct pool_info *info)
{
    return json_at(json_array_get(json_at(info->document, CONTAINERS), 0), "probes");
}

static json_int_t number_of(const json_t *probe, const char *name, json_int_t otherwise)
{
    const json_t *v = json_nocase(probe, name);

    return json_is_integer(v) ? json_integer_value(v) : otherwise;
}

static bool is_startup(const json_t *probe)
{
    return str_nocase(json_view(json_nocase(probe, "type")), STR("Startup"));
}

/* NULL: it can be run. */
static const char *why_not(const struct pool_info *info, const json_t *probe)
{
    static const char *const served[] = {"/health", "/health/startup", "/metadata"};
    const json_t *port = json_at(info->document, TARGET_PORT), *get = json_nocase(probe, "httpGet");
    struct str path = json_view(json_nocase(get, "path"));

    if (!json_is_object(get))
        return "only httpGet is run here";
    if (json_is_integer(port) && !json_equal(port, json_nocase(get, "port")))
        return "there is no other port than the targetPort of the ingress";
    for (size_t i = 0; i < COUNT(served); i++)
        if (str_is(path, served[i]))
            return NULL;
    return "this server answers /health, /health/startup and /metadata";
}

/* --- running --- */

static struct probe *find(struct probes *p, const struct pool_info *info, size_t index)
{
    struct probe *at = p->first;

    while (at && (at->index != index || at->updated_ms != info->updated_ms ||
                  strcmp(at->pool, info->pool->name) != 0))
        at = at->next;
    return at;
}

static struct probe *add(struct probes *p, const struct pool_info *info, const json_t *probe,
                         size_t index)
{
    struct probe *made = mem_zalloc(sizeof(*made));

    *made =
        (struct probe){.next = p->first,
                       .updated_ms = info->updated_ms,
                       .index = index,
                       .due_ms = time_now_ms() + 1000 * number_of(probe, "initialDelaySeconds", 0),
                       .state = pending};
    snprintf(made->pool, sizeof(made->pool), "%s", info->pool->name);
    p->first = made;
    return made;
}

static void run(struct probe *at, const struct pool_info *info, const json_t *probe)
{
    at->ran_ms = time_now_ms();
    at->due_ms = at->ran_ms + 1000 * number_of(probe, "periodSeconds", PERIOD_S);
    at->runs++;
    at->passes = info->up ? at->passes + 1 : 0;
    at->failures = info->up ? 0 : at->failures + 1;
    if (at->passes >= number_of(probe, "successThreshold", PASSES_LEAST))
        at->state = passing;
    else if (at->failures >= number_of(probe, "failureThreshold", FAILURES_MOST))
        at->state = failing;
}

/* Whether a startup probe of the pool has not passed yet. */
static bool is_starting(struct probes *p, const struct pool_info *info, const json_t *list)
{
    const json_t *probe;
    size_t i;

    json_array_foreach((json_t *)list, i, probe) {
        const struct probe *at = find(p, info, i);
        if (is_startup(probe) && !why_not(info, probe) && !(at && at->state == passing))
            return true;
    }
    return false;
}

/* Runs what is due of a pool. Returns how many probes it has that go on. */
static size_t run_pool(struct probes *p, const struct pool_info *info)
{
    const json_t *list = probes_of(info), *probe;
    size_t i, count = 0;

    json_array_foreach((json_t *)list, i, probe) {
        struct probe *at = find(p, info, i);

        if (i >= PROBES_MAX || why_not(info, probe))
            continue;
        at = at ? at : add(p, info, probe, i);
        if (is_startup(probe) ? at->state == passing : is_starting(p, info, list)) {
            count += !is_startup(probe);
            continue;
        }
        count++;
        if (time_now_ms() >= at->due_ms)
            run(at, info, probe);
    }
    return count;
}

/* Those of pools that are gone, or have another document now. */
static void forget(struct probes *p)
{
    for (struct probe **link = &p->first, *at; (at = *link);) {
        bool there = false;

        for (size_t i = 0; !there && i < service_pool_count(p->service); i++) {
            struct pool_info info;
            service_pool_get(p->service, i, &info);
            there = at->updated_ms == info.updated_ms && strcmp(at->pool, info.pool->name) == 0;
        }
        if (there) {
            link = &at->next;
            continue;
        }
        *link = at->next;
        free(at);
    }
}

static void on_tick(void *arg)
{
    struct probes *p = arg;
    size_t count = 0;

    for (size_t i = 0; i < service_pool_count(p->service); i++) {
        struct pool_info info;
        service_pool_get(p->service, i, &info);
        count += run_pool(p, &info);
    }
    forget(p);
    p->ticks = count > 0;
    if (p->ticks)
        timer_set(p->timer, TICK_MS);
}

/* --- what the door calls --- */

struct probes *probes_new(struct loop *l)
{
    struct probes *p = mem_zalloc(sizeof(*p));

    p->timer = timer_new(l, on_tick, p);
    return p;
}

void probes_free(struct probes *p)
{
    for (struct probe *at = p->first, *next; at; at = next) {
        next = at->next;
        free(at);
    }
    timer_free(p->timer);
    free(p);
}

void probes_wake(struct probes *p, struct service *sv)
{
    if (p->ticks)
        return;
    p->service = sv;
    p->ticks = true;
    timer_set(p->timer, 0);
}

json_t *probes_show(struct probes *p, const struct pool_info *info)
{
    const json_t *probe;
    json_t *shown = json_array();
    size_t i;

    json_array_foreach((json_t *)probes_of(info), i, probe) {
        const struct probe *at = find(p, info, i);
        const char *why = i < PROBES_MAX ? why_not(info, probe) : "there are too many";

        json_array_append_new(
            shown,
            json_pack("{s:O*, s:O*, s:s, s:I, s:I, s:o*, s:s*}", "type", json_nocase(probe, "type"),
                      "path", json_at(probe, "httpGet.path"), "state",
                      why  ? not_run
                      : at ? at->state
                           : pending,
                      "runs", at ? at->runs : 0, "failuresInARow", at ? at->failures : 0,
                      "lastRunAt", at && at->ran_ms ? time_json(at->ran_ms) : NULL, "reason", why));
    }
    return shown;
}
