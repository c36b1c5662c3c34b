/* The room, its MCP tool set, and the backend of the tools over MCP. */
#include "doors/ubik/ubik_int.h"

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <stdlib.h>

#define EVENT_BYTES (64 * KiB)

static const struct tool *const tools[] = {&tool_code_execution, &tool_python_interpreter, NULL};

/* --- the backend of the tools over MCP --- */

static void start(void *ctx, const struct agent_request *q, agent_started_fn *fn, void *arg)
{
    const struct end_user account = {.u = ctx, .sv = q->service, .caller = *q->caller};

    submission_start(&account, q, NULL, fn, arg);
}

struct outputs_lookup {
    char *base; /* owned, or NULL */
    agent_outputs_fn *fn;
    void *arg;
};

static void on_found(void *arg, const struct tool_execution *x, const struct err *failed)
{
    struct outputs_lookup *l = arg;
    json_t *outputs = failed ? NULL : outputs_of(x, l->base);

    l->fn(l->arg, outputs, failed ? NULL : x->record, failed);
    json_decref(outputs);
    free(l->base);
    free(l);
}

static void find_outputs(void *ctx, struct service *sv, const struct caller *c, const char *id,
                         const char *base, agent_outputs_fn *fn, void *arg)
{
    const struct end_user account = {.u = ctx, .sv = sv, .caller = *c};
    struct outputs_lookup *l = mem_zalloc(sizeof(*l));

    *l = (struct outputs_lookup){base_url(base), fn, arg};
    tool_execution_find(&account, str_of(id), on_found, l);
}

static struct agent *agent_of(void *ctx, struct err *e)
{
    return ubik_agent(ctx, e);
}

struct agent_backend *ubik_backend(struct ubik *u)
{
    return &u->backend;
}

/* --- the room --- */

struct ubik *ubik_new(const struct ubik_config *config)
{
    static const char label[] = "ubik token";
    struct ubik *u = mem_zalloc(sizeof(*u));
    int rc;

    u->config = *config;
    u->started_ms = time_now_ms();
    u->busy_sessions = json_object();
    if (!u->config.event_bytes)
        u->config.event_bytes = EVENT_BYTES;
    /* A separate key: a signature made for another purpose is no token. */
    rc = gnutls_hmac_fast(GNUTLS_MAC_SHA256, config->secret, sizeof(config->secret), label,
                          sizeof(label), u->token_key);
    assert(rc == 0);
    u->tool_set = (struct tool_set){
        .name = "retort-ubik",
        .title = "Ubik code execution",
        .instructions =
            "code_execution solves a task that you describe in plain words: it plans, writes "
            "Python, runs it in a sealed sandbox and corrects itself. Pass the sandbox_id of its "
            "answer to go on with the same variables. python_interpreter runs code of yours.",
        .tools = tools,
        .offers = OFFERS_RESOURCES,
        .pool = config->pool,
        .ctx = &u->backend,
    };
    u->backend = (struct agent_backend){
        .loop = config->loop, .ctx = u, .agent = agent_of, .start = start, .outputs = find_outputs};
    return u;
}

struct agent *ubik_agent(struct ubik *u, struct err *e)
{
    return u->config.agent(u->config.arg, e);
}

void ubik_stop(void *room)
{
    struct ubik *u = room;

    follows_stop(u);
    agent_calls_stop(&u->backend);
}

void ubik_free(void *room)
{
    struct ubik *u = room;

    agent_calls_free(&u->backend);
    follows_free(u);
    json_decref(u->busy_sessions);
    free(u);
}

const struct tool_set *ubik_tool_set(void *room)
{
    return &((struct ubik *)room)->tool_set;
}
