/* Private to serve and mcp: serve.c lives the server's life, ready.c checks what must hold before
 * it, hello.c says where it can be reached, house.c builds what mcp.c has, too. */
#pragma once

#include "cli/cli_int.h"
#include "cli/listen.h"
#include "doors/mcp/mcp.h"
#include "doors/prisme/prisme.h"
#include "doors/qwen/qwen.h"
#include "doors/ubik/ubik.h"
#include "model/model.h"

/* Refuses a machine below --isolation-floor. Runs processes of its own. */
int floor_check(const struct settings *s, struct err *e) MUST_CHECK;
/* Refuses an address that other machines reach, unless the choice of TLS was made. */
int access_check(const struct settings *s, const struct listeners *ls, struct err *e) MUST_CHECK;
/* The same for keys, which are in the state directory. */
int keys_check(const char *state, const struct listeners *ls, bool *ret_any,
               struct err *e) MUST_CHECK;
/* Refuses an allow-list that cannot be read. */
int egress_check(const struct settings *s, struct err *e) MUST_CHECK;
/* The same for the conditions of approvals. */
int approval_rules_check(const struct settings *s, struct err *e) MUST_CHECK;
/* Gives the pool those modules of PRELOAD_DEFAULT that its Python has. */
int preload_default(struct service_pool *p, struct err *e) MUST_CHECK;
/* A copy of a small file in memory: an owned fd, and the path by which only we can open it. */
#define KEPT_PATH_MAX 32
int file_keep(const char *flag, const char *path, char ret[KEPT_PATH_MAX],
              struct err *e) MUST_CHECK;

/* --- house.c: what mcp builds, too --- */

/* Before there is more than one thread. */
void memory_give_back(void);
/* Copies, each with the modules it preloads: owned, as many. Asks the Python of each. */
bool pools_reach_out(const struct settings *s); /* some pool's code has a way to the network */
struct service_pool *pools_complete(const struct service_pool *pools, size_t count, struct err *e);
void pools_free(struct service_pool *pools, size_t count);
struct service *service_of(const struct settings *s, struct loop *l, struct engine *en,
                           struct store *st, const struct service_pool *pools, size_t count,
                           struct err *e);

struct agent *agent_of(const struct settings *s, struct loop *l, struct service *sv,
                       struct store *st, struct models *models);

/* --- models.c: whom the doors ask --- */

struct model_set {
    struct models_config config; /* of the two below */
    struct model_config *item;   /* owned; what is in it is borrowed from settings and keys */
    char **key;                  /* owned, and each of them: those that files had; or NULL */
    size_t count;
};
/* Refuses models that cannot be; reads no file. */
int models_settings_check(const struct settings *s, struct err *e) MUST_CHECK;
/* Reads the keys: before we become somebody who cannot. To be done() also after a failure. */
int model_set_open(struct model_set *set, const struct settings *s, struct err *e) MUST_CHECK;
struct models *model_set_start(struct model_set *set, struct loop *l, struct err *e);
void model_set_done(struct model_set *set);

/* --- seeds.c: the doors that speak for other systems --- */

struct seeds {
    struct {
        struct qwen *room; /* owned, as are the rest */
        struct mcp *mcp;
        struct door door, mcp_door;
    } qwen;
    struct {
        struct prisme *room;
        struct ubik *thinker; /* of its tool that needs a model */
        struct env_var env[PRISME_ENV];
        struct mcp *mcp;
        struct door door, mcp_door;
        char key[256]; /* signs the tokens of trusted sources */
        size_t key_n;
    } prisme;
    struct {
        struct ubik *room;
        struct mcp *mcp;
        struct door door, mcp_door;
    } ubik;
    struct {
        struct mcp *mcp;
        struct door mcp_door;
    } azure; /* the first pool's; serve.c has the rest */
};

struct seeds_config {
    const struct settings *settings; /* borrowed: outlives them */
    struct mcp_config mcp;           /* what every MCP room of theirs has */
    const char *address;             /* "http://127.0.0.1:8000", or NULL; borrowed */
    /* The agent, made when it is needed; NULL with *e when it cannot be made. */
    struct agent *(*agent)(void *arg, struct err *e);
    void *agent_arg;
};
/* The rooms alone, without doors: for one who needs a face of theirs. */
int seeds_rooms(struct seeds *d, const struct seeds_config *c, struct err *e) MUST_CHECK;
void seeds_ubik(struct seeds *d, const struct seeds_config *c); /* that room alone */
int seeds_open(struct seeds *d, const struct seeds_config *c, struct err *e) MUST_CHECK;
void seeds_add(struct seeds *d, struct http *h);
void seeds_drain(struct seeds *d);
void seeds_free_mcp(struct seeds *d); /* before the service, as mcp_free() */
void seeds_stop(struct seeds *d);     /* after that, and before the agent goes */
void seeds_free(struct seeds *d);     /* after the last request */

/* The address and three commands to try. */
void hello_say(const struct settings *s, const struct listeners *ls, bool keys);
