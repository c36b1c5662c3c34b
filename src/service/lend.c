/* Sandboxes of this node for sessions whose tenants live on others. What the sessions are is their
 * home's to know; here each is a place in its pool, and a channel to its home. */
#include "service/service_int.h"

#include <stdlib.h>

struct lending {
    struct lending *next, **link;
    struct service *sv;     /* borrowed */
    struct lent *lent;      /* owned by itself: on_end() is its last word */
    struct pool_entry *env; /* held, or NULL: no sandbox yet */
    struct whose whose;
};

static struct pool_entry *find_pool(struct service *sv, struct str name, struct err *e)
{
    struct pool_entry *env = name.n ? pool_entry_find(sv, name) : NULL;

    if (sv->draining || sv->closing)
        forbid(sv, e, 5, "the node is shutting down");
    else if (!service_lease_holds(sv, e))
        ;
    else if (!env || env->policy)
        err_set(e, ERR_MISSING, "the node lends no sandbox of this pool");
    else if (pool_entry_live(env) >= env->config.max_sessions)
        forbid(sv, e, 1, "as many sessions are live as the pool may have");
    else
        return env;
    return NULL;
}

static void on_wanted(void *arg, struct str pool)
{
    struct lending *n = arg;
    struct err e;
    struct pool_entry *env = find_pool(n->sv, pool, &e);

    if (!env)
        return lent_refuse(n->lent, &e);
    n->env = env;
    pool_entry_hold(env);
    env->lent++;
    lent_open(n->lent, env->pool, n->whose);
}

static void on_end(void *arg)
{
    struct lending *n = arg;
    struct service *sv = n->sv;

    *n->link = n->next;
    if (n->next)
        n->next->link = n->link;
    sv->lending_count--;
    if (n->env) {
        n->env->lent--;
        pool_entry_drop(n->env);
    }
    free(n);
    service_check_empty(sv);
}

static const struct lent_owner owner = {.on_wanted = on_wanted, .on_end = on_end};

void service_lend(struct service *sv, const struct caller *c, struct channel *channel)
{
    const struct lend_config config = place_config(sv);
    struct lending *n = mem_zalloc(sizeof(*n));

    *n = (struct lending){.next = sv->lendings,
                          .link = &sv->lendings,
                          .sv = sv,
                          .whose = whose_of(c->tenant, c->request)};
    if (n->next)
        n->next->link = &n->next;
    sv->lendings = n;
    sv->lending_count++;
    n->lent = lent_new(sv->loop, channel, &config, &owner, n);
}

/* Their homes keep what is in them, and give them back. */
void lendings_recall(struct service *sv)
{
    for (struct lending *n = sv->lendings; n; n = n->next)
        lent_recall(n->lent);
}

bool lendings_make_room(struct service *sv, const struct pool_entry *env)
{
    struct lending *idle = NULL;
    int64_t since_us = INT64_MAX;

    for (struct lending *n = sv->lendings; n; n = n->next) {
        int64_t us = lent_idle_us(n->lent);
        if (!us || strcmp(n->env->config.name, env->config.name) != 0)
            continue;
        if (lent_is_recalled(n->lent)) /* it is on its way: whoever asks often gets no more */
            return true;
        if (us >= since_us)
            continue;
        since_us = us;
        idle = n;
    }
    if (idle)
        lent_recall(idle->lent);
    return idle != NULL;
}

void lendings_close(struct service *sv)
{
    while (sv->lendings)
        // NOLINTNEXTLINE(clang-analyzer-unix.Malloc): it takes itself off the list
        lent_close(sv->lendings->lent);
}

void service_lent(const struct service *sv, size_t *ret_lent, size_t *ret_borrowed)
{
    *ret_lent = sv->lending_count;
    *ret_borrowed = sv->borrowed;
}
