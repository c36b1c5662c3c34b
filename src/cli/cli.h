/*
 * cli: the command line. Arguments become settings, settings become one command.
 *
 * Touches: the terminal, files named on the command line, listening sockets, the
 * state directory; starts the engine and the rooms around it. Never touches:
 * guests, the warden, rules.
 *
 * main() calls cli_main(). A new flag is one row in options.c, a new command one
 * row in cli.c; parsing, --help and the error sentences follow from the rows.
 */
#pragma once

#include "agent/agent.h"
#include "service/service.h"

enum exit_status {
    EXIT_OK = 0,
    EXIT_RAISED = 1, /* the code raised, the command failed, or the interpreter died */
    EXIT_USAGE = 2,
    EXIT_OURS = 3, /* we failed */
    EXIT_TIMEOUT = 124,
    EXIT_INTERRUPTED = 130,
    EXIT_MEMORY = 137,
    EXIT_PIPE = 141, /* the reader of our output is gone */
};

/* One thing to execute, as named on the command line. */
enum work_kind { WORK_SCRIPT, WORK_CODE, WORK_SHELL };

struct cli_work {
    enum work_kind kind;
    char *arg; /* owned: file name, code or command line */
};

struct list {
    char **item; /* owned, and each item too */
    size_t count;
};

/* What only `serve` has. */
struct serve_settings {
    struct list listen;
    uint64_t socket_mode;
    char *user; /* owned; NULL: found by server_user_find() */
    enum { FLOOR_SEALED, FLOOR_ALL } floor;
    uint64_t drain_ms;
    enum log_level log_level;
    enum log_format log_format;
    bool check_config;

    bool plain_http;
    char *tls_cert, *tls_key;         /* owned: files; both or neither */
    char *tls_client_ca;              /* owned: a file, or NULL */
    char *hosts, *origins;            /* owned, or NULL */
    char *public_url, *oauth_servers; /* owned, or NULL */
    uint64_t max_connections, max_per_address, header_ms;

    enum { KEPT_PROCESS, KEPT_POWER } durability; /* as enum durability */
    char *blobs;                                  /* owned: s3://bucket/prefix, or NULL */
    char *node_url, *node_name, *node_secret_file, *node_ca; /* owned, or NULL */
    char *node_cert, *node_key;                              /* likewise; both or neither */
    uint64_t node_lease_ms;
    char *s3_endpoint, *s3_region, *s3_key_file, *s3_ca; /* owned, or NULL */
    enum { S3_PATH, S3_VIRTUAL_HOST } s3_style;
    uint64_t blob_cache_bytes;
    uint64_t tenant_sessions, retention_ms, record_ms, home_bytes, file_bytes, tenant_bytes,
        held_bytes;
    uint64_t fetch_bytes, fetch_ms;
    bool fetch_private;
    char *fetch_allow; /* owned, or NULL */

    uint64_t answer_ms; /* of MCP */
};
#define LISTEN_DEFAULT "127.0.0.1:8000"

/* Of the doors that speak for other systems. */
struct qwen_settings {
    char *pool, *static_url, *work_dir, *file_dirs; /* owned, or NULL */
    uint64_t timeout_ms, executor_ms, executor_chars;
    enum { TRACEBACK_BRIEF, TRACEBACK_FULL } traceback;
};

struct prisme_settings {
    char *pool;                                /* owned, or NULL */
    char *builtins, *packages, *packages_more; /* owned; NULL: as in prisme.h */
    char *sources, *source_key;                /* owned, or NULL */
    enum { ACTIVATION_AUTO, ACTIVATION_USER_FIRST } activation;
    uint64_t timeout_ms, parallel;
};

struct anthropic_settings {
    char *pool; /* owned, or NULL */
    uint64_t timeout_ms, cell_ms, turns, wall_ms, idle_ms, answer_ms, approval_ms;
    bool download_uploads, capture_cwd;
};

struct ubik_settings {
    char *pool; /* owned, or NULL */
    uint64_t event_bytes;
};

/* Whom the doors ask that have a model behind them. */
struct endpoint_settings {
    char *label;                            /* owned: NAME of [model NAME] */
    enum { API_OPENAI, API_ANTHROPIC } api; /* as enum model_api */
    char *url, *name, *proxy, *ca_file;     /* owned, or NULL */
    char *key, *key_file;                   /* owned, or NULL; the first is shown to nobody */
    uint64_t timeout_ms, max_tokens;
    bool images, text_only;
};

struct model_settings {
    char *script, *standard, *tenants; /* owned, or NULL */
    struct endpoint_settings one;      /* what every model has at first */
    struct endpoint_settings *all;     /* owned: the [model NAME] sections, each of them complete */
    size_t count;
};

/* What a request in plain words may cost. */
struct agent_settings {
    struct agent_budget budget;
    uint64_t tenant_loops;
};

/* What only `keys` has. */
struct keys_settings {
    char *tenant, *name, *pools, *doors; /* owned, or NULL */
    bool admin, approver, read_only, quiet;
    uint64_t expires_ms; /* so long from now; 0: never */
};

/* What only `environment` has. */
struct environment_settings {
    char *packages, *wheels, *base; /* owned, or NULL */
    bool offline, system_packages;
};

/* Where a setting was given; a later one of these wins. */
enum source_kind { SOURCE_DEFAULT, SOURCE_FILE, SOURCE_ENV, SOURCE_FLAG };

#define OPTIONS_MAX 192

/* Everything that can be set. Rows of options.c point into it. */
struct settings {
    struct serve_settings serve;
    struct keys_settings keys;
    struct environment_settings environment;
    struct qwen_settings qwen;
    struct prisme_settings prisme;
    struct anthropic_settings anthropic;
    struct ubik_settings ubik;
    struct model_settings model;
    struct agent_settings agent;
    struct service_pool pool;   /* of run: the one; of serve: what every pool has at first */
    struct service_pool *pools; /* owned: the [pool NAME] sections, each of them complete */
    size_t pool_count;
    struct service_pool *environments; /* owned: the [environment NAME] sections */
    size_t environment_count;
    char *config; /* owned; NULL: CONFIG_DEFAULT where there is one */
    char *state;  /* owned; once settings_load() has run, never NULL but of mcp and environment */
    char *store, *store_password_file; /* owned, or NULL: rows are in the state directory */
    char *environments_dir;            /* owned; NULL: found by environments_find() */
    char *pool_name;                   /* owned: of mcp, the one pool to use; or NULL */
    char *images_dir; /* owned: of mcp, where images are written; NULL: IMAGES_DIR */
    char *out;        /* owned; NULL: artifacts are named, not kept */
    struct list files;
    struct list folders;
    char *session; /* owned: of a server, by its name; or NULL */
    char *server;  /* owned: its URL; or NULL */
    struct {
        struct cli_work *item; /* owned */
        size_t count;
    } work;            /* in the order given */
    struct list words; /* arguments of `keys` and the like that are no options */
    uint64_t bench_ms; /* of bench: how long its rounds take */
    bool json;
    bool keep_going;
    bool verbose;
    enum { USERS_OWN, USERS_ONE } sandbox_users;
    enum { ROOTS_RO, ROOTS_RW, ROOTS_OFF } roots;                                   /* of mcp */
    enum { TOOLS_NATIVE, TOOLS_QWEN, TOOLS_PRISME, TOOLS_AZURE, TOOLS_UBIK } tools; /* of mcp */
    bool help;
    unsigned char from[OPTIONS_MAX]; /* an enum source_kind for each row of options.c */
    int argc;                        /* what SIGHUP reads again */
    const char *const *argv;         /* borrowed */
};
#define CONFIG_DEFAULT  "/etc/retort.ini"
#define PRELOAD_DEFAULT "numpy, pandas, matplotlib.pyplot"

void settings_init(struct settings *s); /* every default */
void settings_done(struct settings *s);

/* Returns the exit status. */
int cli_main(int argc, char **argv);
int run_main(const struct settings *s);
int doctor_main(const struct settings *s);
int serve_main(const struct settings *s);
int keys_main(const struct settings *s);
int mcp_main(const struct settings *s);
int environment_main(const struct settings *s);
int store_main(const struct settings *s);
int bench_main(const struct settings *s);

/* The folder that holds retort_guest/ and _retort.abi3.so: beside the program in a build tree,
 * below
 * ../lib/retort where it is installed. */
int guest_dir_find(char *ret, size_t size, struct err *e) MUST_CHECK;
