/* Private to serve and mcp: serve.c runs the server, ready.c checks what must hold before it
 * starts, hello.c says where it can be reached, service_build.c builds what serve.c and mcp.c
 * share. */
#pragma once

#include "cli/cli_int.h"
#include "cli/listen.h"
#include "doors/mcp/mcp.h"
#include "doors/prisme/prisme.h"
#include "model/model.h"

/* Refuses a machine below --isolation-floor. Runs processes of its own. */
int floor_check(const struct settings *s, struct err *e) MUST_CHECK;
/* Refuses an address that other machines reach, unless the choice of TLS was made. */
int access_check(const struct settings *s, const struct listeners *ls, struct err *e) MUST_CHECK;
/* The same for keys, which are in the store. */
int keys_check(const struct store_config *config, const struct listeners *ls, bool *ret_any,
               struct err *e) MUST_CHECK;
/* Refuses an allow-list that cannot be read. */
int egress_check(const struct settings *s, struct err *e) MUST_CHECK;
/* The same for the conditions of approvals. */
int approval_rules_check(const struct settings *s, struct err *e) MUST_CHECK;
/* Gives the pool those modules of PRELOAD_DEFAULT that its Python has. as: who asks it. */
int preload_default(struct service_pool *p, const struct server_user *as, struct err *e) MUST_CHECK;
/* A copy of a small file in memory: an owned fd, and the path by which only we can open it. */
#define KEPT_PATH_MAX 32
int file_keep(const char *flag, const char *path, char ret[KEPT_PATH_MAX],
              struct err *e) MUST_CHECK;

/* --- service_build.c: the service builder of serve and mcp --- */

/* Before there is more than one thread. */
void memory_give_back(void);
bool pools_reach_out(const struct settings *s); /* some pool's code has a way to the network */

/* The pools and environments of the settings, each with the modules it preloads. */
struct pool_set {
    const struct settings *s;          /* borrowed */
    struct service_pool *pools;        /* owned: as many as the settings have */
    struct service_pool *environments; /* owned: likewise */
};
/* Asks the Python of each, as the user who is to serve. To be done() also after a failure. */
int pool_set_open(struct pool_set *set, const struct settings *s, const struct server_user *as,
                  struct err *e) MUST_CHECK;
void pool_set_done(struct pool_set *set);
/* Whose pools can be made of these and of nothing else, whoever asks later. */
/* folders: or NULL. */
struct engine *engine_of(struct loop *l, const struct pool_set *set, const char *guest_dir,
                         const struct folders *folders, const struct server_user *as,
                         struct err *e);
struct service *service_of(const struct pool_set *set, struct loop *l, struct engine *en,
                           struct store *st, struct err *e);

struct agent *agent_of(const struct settings *s, struct loop *l, struct service *sv,
                       struct store *st, struct models *models);

/* --- models.c: whom the doors ask --- */

/* Copies of what files held. */
struct model_files {
    char *key;                   /* owned, or NULL */
    int ca;                      /* owned, or -1 */
    char ca_path[KEPT_PATH_MAX]; /* good while `ca` is open */
};

struct model_set {
    struct models_config config; /* of the two below */
    struct model_config *item;   /* owned; what is in it is borrowed from settings and files */
    struct model_files *files;   /* owned: of each item */
    size_t count;
};
/* Refuses models that cannot be; reads no file. */
int models_settings_check(const struct settings *s, struct err *e) MUST_CHECK;
/* Reads the files: before we become somebody who cannot. To be done() also after a failure, and
 * not before the models are. */
int model_set_open(struct model_set *set, const struct settings *s, struct err *e) MUST_CHECK;
struct models *model_set_start(struct model_set *set, struct loop *l, struct err *e);
void model_set_done(struct model_set *set);

/* --- blobs.c: where the bytes of files are kept --- */

struct blob_set {
    bool in_s3;
    struct s3_config s3; /* what is in it is borrowed from the settings and: */
    char *bucket, *prefix, *endpoint, *key_id, *secret, *token; /* owned, or NULL */
    int ca;                                                     /* owned, or -1 */
    char ca_path[KEPT_PATH_MAX];
};
/* Refuses what cannot be; reads no key. */
int blobs_settings_check(const struct settings *s, struct err *e) MUST_CHECK;
/* Reads the keys: before we become somebody who cannot. To be done() also after a failure. */
int blob_set_open(struct blob_set *set, const struct settings *s, struct err *e) MUST_CHECK;
void blob_set_done(struct blob_set *set);

/* --- node.c: this server as one of several --- */

struct node_set {
    bool on;
    struct node_config node; /* borrows from the settings, and host */
    char host[256];
    uint8_t peers[PEER_SECRET_BYTES], mcp[MCP_SECRET_BYTES];
    int ca, cert, key; /* owned, or -1 */
    char ca_path[KEPT_PATH_MAX], cert_path[KEPT_PATH_MAX], key_path[KEPT_PATH_MAX];
};
/* Reads the secret: before we become somebody who cannot. */
int node_set_open(struct node_set *set, const struct settings *s, struct err *e) MUST_CHECK;
void node_set_done(struct node_set *set);
/* Of the files that set keeps. Fails where the key is not the certificate's; warns of a certificate
 * that other nodes will not take. */
int node_cert_check(const struct node_set *set, const struct serve_settings *o,
                    struct err *e) MUST_CHECK;

/* --- doors.c: one row per door --- */

enum door_kind {
    DOOR_REST,
    DOOR_OPERATOR,
    DOOR_CONSOLE,
    DOOR_UBIK,
    DOOR_MCP,
    DOOR_AZURE,
    DOOR_ANTHROPIC,
    DOOR_QWEN,
    DOOR_PRISME,
    DOOR_PRISME_AGENT, /* what Prisme's tool that needs a model works with */
    DOORS
};

struct doors {
    struct {
        void *room;      /* owned, or NULL */
        struct mcp *mcp; /* owned, or NULL */
        struct door door, mcp_door;
    } at[DOORS];
    char prisme_key[256]; /* signs the tokens of trusted sources */
    size_t prisme_key_n;
    struct env_var prisme_env[PRISME_ENV];
};

struct doors_config {
    const struct settings *settings; /* borrowed: outlives them, as do the rest */
    struct http *http;               /* NULL: for door_make() alone */
    struct models *models;
    struct mcp_config mcp; /* what every MCP server of theirs has */
    /* The agent, made when it is needed; NULL with *e when it cannot be made. */
    struct agent *(*agent)(void *arg, struct err *e);
    void *agent_arg;
};
int doors_open(struct doors *d, const struct doors_config *c, struct err *e) MUST_CHECK;
/* One of them without its routes, for its tool set. */
int door_make(struct doors *d, enum door_kind k, const struct doors_config *c,
              struct err *e) MUST_CHECK;
const struct tool_set *door_tool_set(const struct doors *d, enum door_kind k);
void doors_drain(struct doors *d); /* nothing new is begun */
void doors_stop(struct doors *d);  /* before the HTTP server, the agent and the service go */
void doors_free(struct doors *d);  /* after the last request */

/* The address and three commands to try. */
void hello_say(const struct settings *s, const struct listeners *ls, bool keys);

/* --- peers.c: whose process is at the other end of a Unix socket --- */

/* Forks, as the user u: with one thread, and in the namespace whose users are meant. *ret_fd is
 * owned, also when it fails. */
int peers_start(const struct server_user *u, int *ret_fd, struct err *e) MUST_CHECK;
/* fd: *ret_fd of peers_start(). Fits http_config.peer. */
bool peers_ask(void *fd, int connection, uid_t *ret);
