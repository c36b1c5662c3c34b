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

void pools_free(struct service_pool *pools, size_t count)
{
    for (size_t i = 0; pools && i < count; i++)
        pool_done(&pools[i]);
    free(pools);
}

struct service_pool *pools_complete(const struct service_pool *pools, size_t count, struct err *e)
{
    struct service_pool *made = mem_zalloc(count * sizeof(*made));

    for (size_t i = 0; i < count; i++) {
        pool_copy(&made[i], &pools[i]);
        if (!made[i].preload && preload_default(&made[i], e) < 0) {
            err_wrap(e, "pool %s", made[i].name);
            pools_free(made, count);
            return NULL;
        }
        close_up(made[i].preload);
    }
    return made;
}

bool pools_reach_out(const struct settings *s)
{
    for (size_t i = 0; i < s->pool_count; i++)
        if (s->pools[i].egress != EGRESS_NONE)
            return true;
    return false;
}

struct service *service_of(const struct settings *s, struct loop *l, struct engine *en,
                           struct store *st, const struct service_pool *pools, size_t count,
                           struct err *e)
{
    struct service_pool *environments = pools_complete(s->environments, s->environment_count, e);
    const struct service_config config = {
        .pools = pools,
        .pool_count = count,
        .environments = environments,
        .environment_count = s->environment_count,
        .tenant_sessions = s->serve.tenant_sessions,
        .retention_ms = s->serve.retention_ms,
        .record_ms = s->serve.record_ms,
        .file_bytes = s->serve.file_bytes,
        .tenant_bytes = s->serve.tenant_bytes,
        .fetch_bytes = s->serve.fetch_bytes,
        .fetch_ms = s->serve.fetch_ms,
        .fetch_private = s->serve.fetch_private,
        .fetch_allow = s->serve.fetch_allow,
    };

    struct service *sv = environments ? service_new(l, en, st, &config, e) : NULL;
    pools_free(environments, s->environment_count);
    return sv;
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
