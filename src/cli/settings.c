/* Settings: their defaults, copies, and what they own. */
#include "cli/cli_int.h"

#include <stdlib.h>
#include <unistd.h>

static uint64_t ready_default(void)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);

    return cores > 0 ? 2 * (uint64_t)cores : 2;
}

void settings_init(struct settings *s)
{
    *s = (struct settings){0};
    s->pool = (struct service_pool){
        .ready = ready_default(),
        .ready_max = 64,
        .max_sessions = 1000,
        .idle_ms = 15 * MINUTE_MS,
        .lifetime_ms = 12 * HOUR_MS,
        .recycle_ms = 12 * HOUR_MS,
        .learn_ms = 5 * MINUTE_MS,
        .approval_timeout_ms = 10 * MINUTE_MS,
        .approval_wait_ms = DAY_MS,
    };
    s->bench_ms = 12 * SECOND_MS;
    s->serve = (struct serve_settings){
        .socket_mode = 0600,
        .drain_ms = 30 * SECOND_MS,
        .node_lease_ms = 15 * SECOND_MS,
        .log_level = LOG_INFO,
        .max_connections = 10000,
        .header_ms = 30 * SECOND_MS,
        .tenant_sessions = 1000,
        .held_bytes = 256 * MiB,
        .retention_ms = 30 * DAY_MS,
        .record_ms = 90 * DAY_MS,
        .home_bytes = 64 * MiB,
        .blob_cache_bytes = 10 * GiB,
        .file_bytes = 4 * GiB,
        .fetch_bytes = 1 * GiB,
        .fetch_ms = 2 * MINUTE_MS,
        .answer_ms = 50 * SECOND_MS,
    };
    s->qwen = (struct qwen_settings){
        .timeout_ms = 30 * SECOND_MS, .executor_ms = 20 * SECOND_MS, .executor_chars = 256};
    s->prisme = (struct prisme_settings){.timeout_ms = 20 * SECOND_MS, .parallel = 10};
    s->anthropic = (struct anthropic_settings){.cell_ms = 90 * SECOND_MS,
                                               .turns = 100,
                                               .wall_ms = 9 * MINUTE_MS,
                                               .idle_ms = 5 * MINUTE_MS,
                                               .answer_ms = 270 * SECOND_MS,
                                               .approval_ms = 45 * SECOND_MS};
    s->ubik = (struct ubik_settings){.event_bytes = 64 * KiB};
    s->agent = (struct agent_settings){
        .budget = {.plan_steps = 6,
                   .rounds = 20,
                   .attempts = 3,
                   .run_ms = MINUTE_MS,
                   .wall_ms = 10 * MINUTE_MS,
                   .model_ms = 2 * MINUTE_MS,
                   .input_chars = 400000,
                   .tokens = 2000000,
                   .wait_ms = 5 * MINUTE_MS},
        .tenant_loops = 256
    };
    s->model.one.timeout_ms = 2 * MINUTE_MS;
    limits_default(&s->pool.limits);
}

void pool_copy(struct service_pool *to, const struct service_pool *from)
{
    char *const *in[] = {&from->name,         &from->python,        &from->preload, &from->text,
                         &from->egress_hosts, &from->approval_when, &from->images};
    char **out[] = {&to->name,         &to->python,        &to->preload, &to->text,
                    &to->egress_hosts, &to->approval_when, &to->images};

    *to = *from;
    for (size_t i = 0; i < COUNT(in); i++)
        *out[i] = *in[i] ? mem_strdup(*in[i]) : NULL;
}

void pool_done(struct service_pool *p)
{
    free(p->name);
    free(p->python);
    free(p->preload);
    free(p->text);
    free(p->egress_hosts);
    free(p->approval_when);
    free(p->images);
    *p = (struct service_pool){0};
}

void endpoint_copy(struct endpoint_settings *to, const struct endpoint_settings *from)
{
    char *const *in[] = {&from->label,   &from->url, &from->name,    &from->proxy,
                         &from->ca_file, &from->key, &from->key_file};
    char **out[] = {&to->label,   &to->url, &to->name,    &to->proxy,
                    &to->ca_file, &to->key, &to->key_file};

    *to = *from;
    for (size_t i = 0; i < COUNT(in); i++)
        *out[i] = *in[i] ? mem_strdup(*in[i]) : NULL;
}

static void endpoint_done(struct endpoint_settings *m)
{
    char *texts[] = {m->label, m->url, m->name, m->proxy, m->ca_file, m->key, m->key_file};

    for (size_t i = 0; i < COUNT(texts); i++)
        free(texts[i]);
    *m = (struct endpoint_settings){0};
}

void list_done(struct list *l)
{
    for (size_t i = 0; i < l->count; i++)
        free(l->item[i]);
    free(l->item);
    *l = (struct list){0};
}

void settings_done(struct settings *s)
{
    char *texts[] = {s->pool_name,
                     s->images_dir,
                     s->session,
                     s->server,
                     s->out,
                     s->config,
                     s->state,
                     s->store,
                     s->store_password_file,
                     s->serve.user,
                     s->serve.blobs,
                     s->serve.s3_endpoint,
                     s->serve.s3_region,
                     s->serve.s3_key_file,
                     s->serve.s3_ca,
                     s->serve.tls_cert,
                     s->serve.tls_key,
                     s->serve.tls_client_ca,
                     s->serve.hosts,
                     s->serve.origins,
                     s->serve.public_url,
                     s->serve.oauth_servers,
                     s->environments_dir,
                     s->environment.packages,
                     s->environment.wheels,
                     s->environment.base,
                     s->keys.tenant,
                     s->keys.name,
                     s->keys.pools,
                     s->keys.doors,
                     s->serve.fetch_allow,
                     s->qwen.pool,
                     s->qwen.static_url,
                     s->qwen.work_dir,
                     s->qwen.file_dirs,
                     s->prisme.pool,
                     s->prisme.builtins,
                     s->prisme.packages,
                     s->prisme.packages_more,
                     s->prisme.sources,
                     s->prisme.source_key,
                     s->anthropic.pool,
                     s->ubik.pool,
                     s->model.script,
                     s->model.standard,
                     s->model.tenants};
    struct list *lists[] = {&s->files, &s->folders, &s->words, &s->serve.listen};

    for (size_t i = 0; i < COUNT(texts); i++)
        free(texts[i]);
    for (size_t i = 0; i < COUNT(lists); i++)
        list_done(lists[i]);
    for (size_t i = 0; i < s->work.count; i++)
        free(s->work.item[i].arg);
    free(s->work.item);
    for (size_t i = 0; i < s->pool_count; i++)
        pool_done(&s->pools[i]);
    free(s->pools);
    for (size_t i = 0; i < s->environment_count; i++)
        pool_done(&s->environments[i]);
    free(s->environments);
    for (size_t i = 0; i < s->model.count; i++)
        endpoint_done(&s->model.all[i]);
    free(s->model.all);
    endpoint_done(&s->model.one);
    pool_done(&s->pool);
    *s = (struct settings){0};
}
