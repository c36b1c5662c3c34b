/* Private to the Prisme room. */
#pragma once

#include "doors/mcp/mcp_int.h"
#include "doors/prisme/prisme.h"

/* --- numbers --- */

#define BODY_PRISME_MAX (20 * MiB)
#define FILES_MAX       32 /* of one script */
#define URL_BYTES       (64 * KiB)
#define WAITING_MAX_    1000 /* scripts waiting for their turn */
#define IMPORTS_MAX     (8 * KiB)
#define SPACES_MAX      1000      /* workspaces of a tenant */
#define FUNCTIONS_MAX   1000      /* of one workspace */
#define FUNCTIONS_BYTES (1 * MiB) /* likewise */
#define NAME_BYTES      128
#define SOURCES_MAX_    64
#define TOKEN_LIFE_S    300 /* a token that lives longer is refused */
#define TASK_REASON     APPROVAL_REASON_MAX

/* --- script.c: a script from its order to its answer --- */

struct script_spec {
    struct prisme *prisme;
    struct service *service;
    const struct caller *caller;       /* copied */
    const struct clearance *clearance; /* copied; NULL: the policy has not been asked */
    struct str code;                   /* copied */
    json_t *files;                     /* array of strings, or NULL; referenced */
    json_t *parameters;                /* object, or NULL; referenced */
    struct str conversation;           /* of an approval that lasts; or empty; copied */
};
/* value: {"result", "logs", "duration"} and, when it failed, "error"; borrowed. task: the approval
 * that is waited for, or "". */
typedef void script_fn(void *arg, json_t *value, const char *task);
struct script;
/* fn once, from the loop. */
struct script *script_start(const struct script_spec *spec, script_fn *fn, void *arg);
void script_leave(struct script *s); /* nobody waits: fn is not called */
void scripts_free(struct prisme *p);

/* --- value.c: what came of it --- */

/* Both owned by the caller. ms: of all of it. */
json_t *value_of_run(const struct exec_info *info, uint64_t ms);
json_t *value_of_failure(const char *code, const char *message, uint64_t ms);
json_t *value_of_blocked(void);
bool value_is_error(const json_t *value);

/* --- functions.c --- */

void handle_functions_put(struct request *r);
void handle_functions_get(struct request *r);
void handle_functions_delete(struct request *r);
void handle_function_run(struct request *r);
void handle_execute_python(struct request *r);

/* --- resolve.c: an approver's word --- */

void handle_resolve(struct request *r);

/* --- trust.c: who needs no key; token.c: how some prove it --- */

struct source_list;
/* NULL and *e when text cannot be read, or names certificates that nobody is asked for. */
struct source_list *source_list_new(const char *text, bool certificates, struct err *e);
void source_list_free(struct source_list *l);
/* For struct door: 1 let in, 0 by a key, -1 answered. */
int prisme_identify(struct request *r, void *prisme, struct caller *ret);
/* A token: HS256 over {"iss" or "sub", "exp"}. False: it is none of ours, or too old. */
bool token_read(struct str token, struct str key, int64_t now_s, char *ret_name, size_t size);

/* --- door.c, tools.c --- */

json_t *prisme_error(struct request *r, int status, const char *type, const char *param,
                     json_t *message);
extern const struct tool tool_execute_python, tool_execute_python_stub;

/* --- the room itself --- */

struct prisme {
    struct face face;
    struct prisme_config config;
    char *imports;  /* owned: what RETORT_IMPORTS says */
    size_t running; /* scripts that have their turn */
    struct script *waiting, **waiting_end;
    size_t waiting_count;
    struct source_list *sources; /* owned, or NULL */
};
