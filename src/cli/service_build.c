/* The service builder: `serve` and `mcp` build their service from the settings alike. */
#include "cli/serve_int.h"

#include <malloc.h>
#include <stdlib.h>

/* A large answer is made and freed in pieces that glibc would keep for the next one, and it would
 * learn to keep larger and larger ones: four times 10 MB of output left 160 MB behind, now none. */
void memory_give_back(void)
{
    mallopt(M_MMAP_THRESHOLD, 256 * 1024);
    mallopt(M_TRIM_THRESHOLD, 1024 * 1024);
    mallopt(M_ARENA_MAX, 2);
}

/* "numpy, pandas" as people write it; the interpreter wants the names alone. */
static void close_up(char *names)
{
    char *to = names;

    for (const char *p = names; *p; p++)
        if (*p != ' ' && *p != '\t')
            *to++ = *p;
    *to = '\0';
}

static void pools_free(struct service_pool *pools, size_t count)
{
    for (size_t i = 0; pools && i < count; i++)
        pool_done(&pools[i]);
    free(pools);
}

/* Copies, each with the modules it preloads: owned, as many. */
static struct service_pool *pools_complete(const struct service_pool *pools, size_t count,
                                           const struct server_user *as, struct err *e)
{
    struct service_pool *made = mem_zalloc(count * sizeof(*made));

    for (size_t i = 0; i < count; i++) {
        pool_copy(&made[i], &pools[i]);
        if (!made[i].preload && preload_default(&made[i], as, e) < 0) {
            err_wrap(e, "pool %s", made[i].name);
            pools_free(made, count);
            return NULL;
        }
        close_up(made[i].preload);
    }
    return made;
}

int pool_set_open(struct pool_set *set, const struct settings *s, const struct server_user *as,
                  struct err *e)
{
    set->s = s;
    set->pools = pools_complete(s->pools, s->pool_count, as, e);
    if (set->pools)
        set->environments = pools_complete(s->environments, s->environment_count, as, e);
    return set->environments ? 0 : -1;
}

void pool_set_done(struct pool_set *set)
{
    if (!set->s)
        return;
    pools_free(set->pools, set->s->pool_count);
    pools_free(set->environments, set->s->environment_count);
    *set = (struct pool_set){0};
}

struct engine *engine_of(struct loop *l, const struct pool_set *set, const char *guest_dir,
                         const struct folders *folders, const struct server_user *as, struct err *e)
{
    size_t n = 0;
    struct engine_environment *envs =
        mem_zalloc((set->s->pool_count + set->s->environment_count) * sizeof(*envs));
    struct engine *en;

    for (size_t i = 0; i < set->s->pool_count; i++)
        envs[n++] = (struct engine_environment){set->pools[i].python, set->pools[i].preload};
    for (size_t i = 0; i < set->s->environment_count; i++)
        envs[n++] =
            (struct engine_environment){set->environments[i].python, set->environments[i].preload};
    const struct engine_config config = {
        .guest_dir = guest_dir,
        .folders = folders ? folders->item : NULL,
        .folder_count = folders ? folders->count : 0,
        .environments = envs,
        .environment_count = n,
        .ask_as = as,
        .one_user = set->s->sandbox_users == USERS_ONE,
    };
    en = engine_new(l, &config, e);
    free(envs);
    return en;
}

bool pools_reach_out(const struct settings *s)
{
    for (size_t i = 0; i < s->pool_count; i++)
        if (s->pools[i].egress != EGRESS_NONE)
            return true;
    return false;
}

struct service *service_of(const struct pool_set *set, struct loop *l, struct engine *en,
                           struct store *st, struct err *e)
{
    const struct settings *s = set->s;
    const struct service_config config = {
        .pools = set->pools,
        .pool_count = s->pool_count,
        .environments = set->environments,
        .environment_count = s->environment_count,
        .tenant_sessions = s->serve.tenant_sessions,
        .retention_ms = s->serve.retention_ms,
        .record_ms = s->serve.record_ms,
        .held_bytes = s->serve.held_bytes,
        .lease_ms = s->serve.node_lease_ms,
        .home_bytes = s->serve.home_bytes,
        .file_bytes = s->serve.file_bytes,
        .tenant_bytes = s->serve.tenant_bytes,
        .fetch_bytes = s->serve.fetch_bytes,
        .fetch_ms = s->serve.fetch_ms,
        .fetch_private = s->serve.fetch_private,
        .fetch_allow = s->serve.fetch_allow,
    };

    return service_new(l, en, st, &config, e);
}

struct agent *agent_of(const struct settings *s, struct loop *l, struct service *sv,
                       struct store *st, struct models *models)
{
    const struct agent_config config = {.loop = l,
                                        .service = sv,
                                        .store = st,
                                        .models = models,
                                        .budget = s->agent.budget,
                                        .tenant_loops = s->agent.tenant_loops,
                                        .record_ms = s->serve.record_ms};

    return agent_new(&config);
}
