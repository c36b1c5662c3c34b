/* The room: what it is made with, and what its MCP face shows. */
#include "doors/ubik/ubik_int.h"

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <stdlib.h>

#define EVENT_BYTES (64 * KiB)

static const struct tool *const tools[] = {&tool_code_execution, &tool_python_interpreter, NULL};

struct ubik *ubik_new(const struct ubik_config *config)
{
    static const char label[] = "ubik token";
    struct ubik *u = mem_zalloc(sizeof(*u));
    int rc;

    u->config = *config;
    u->started_ms = clock_ms();
    u->talking = json_object();
    if (!u->config.event_bytes)
        u->config.event_bytes = EVENT_BYTES;
    /* A key of its own: what is signed for another purpose opens nothing here. */
    rc = gnutls_hmac_fast(GNUTLS_MAC_SHA256, config->secret, sizeof(config->secret), label,
                          sizeof(label), u->token_key);
    assert(rc == 0);
    u->face = (struct face){
        .name = "retort-ubik",
        .title = "Ubik code execution",
        .instructions =
            "code_execution solves a task that you describe in plain words: it plans, writes "
            "Python, runs it in a sealed sandbox and corrects itself. Pass the sandbox_id of its "
            "answer to go on with the same variables. python_interpreter runs code of yours.",
        .tools = tools,
        .has = FACE_RESOURCES,
        .pool = config->pool,
        .ctx = u,
    };
    return u;
}

struct agent *ubik_agent(struct ubik *u, struct err *e)
{
    return u->config.agent(u->config.arg, e);
}

void ubik_stop(struct ubik *u)
{
    if (!u)
        return;
    follows_stop(u);
    missions_stop(u);
}

void ubik_free(struct ubik *u)
{
    if (!u)
        return;
    missions_free(u);
    follows_free(u);
    json_decref(u->talking);
    free(u);
}

const struct face *ubik_face(struct ubik *u)
{
    return &u->face;
}
