/* Private to the Prisme room. */
#pragma once

#include "doors/mcp/tool.h"
#include "doors/prisme/prisme.h"

/* --- numbers --- */

#define BODY_PRISME_MAX     (20 * MiB)
#define FILES_MAX           32   /* of one script */
#define SCRIPTS_WAITING_MAX 1000 /* scripts waiting for their turn */
#define IMPORTS_MAX         (8 * KiB)
#define SPACES_MAX          1000      /* workspaces of a tenant */
#define FUNCTIONS_MAX       1000      /* of one workspace */
#define FUNCTIONS_BYTES     (1 * MiB) /* likewise */
#define NAME_BYTES          128
#define TRUSTED_SOURCES_MAX 64
#define TOKEN_LIFE_S        300 /* a token that lives longer is refused */
#define TASK_REASON         APPROVAL_REASON_MAX

/* --- script_exec.c: one execution of a script, from its start to its answer --- */

/* value: {"result", "logs", "duration"} and, when it failed, "error"; borrowed. "task_id": the
 * approval that is waited for. */
typedef void script_exec_fn(void *arg, json_t *value);

/* Part of the task that wants the script: all pointers are borrowed from there. */
struct script_exec {
    struct prisme *prisme;
    struct service *service;
    const struct caller *caller;
    struct call *call; /* of MCP, whose user can be asked; or NULL */
    struct prisme_task *task;
    struct str code;         /* during script_exec_start() only */
    json_t *files;           /* array of at most FILES_MAX strings, or NULL */
    json_t *parameters;      /* object, or NULL */
    struct str conversation; /* of an approval that lasts; or empty */
    script_exec_fn *fn;      /* once, from the loop; not when MCP tells of an approval */
    void *arg;
    /* From here on script_exec.c's. */
    struct execution *x; /* borrowed; NULL once it has ended */
    json_t *bad_file;    /* owned, or NULL: the answer that names the file at fault */
    char session[ID_MAX];
    bool keeps; /* the script left files: its session is not deleted */
};
void script_exec_start(struct script_exec *s);
void script_exec_leave(struct script_exec *s); /* before fn, which is not called then */

/* --- tasks.c: calls, and what becomes of those that wait for an approver --- */

struct prisme_task;
/* Answers r: code is a string, files an array or NULL. */
void prisme_call(struct request *r, json_t *code, json_t *files);
/* The same of MCP. args: the arguments of the tool. */
void prisme_call_tool(struct prisme *p, struct service *sv, struct call *c, json_t *args);
/* What script_exec.c tells it of. */
bool prisme_task_on_ask(void *task, const struct approval_info *info);
void prisme_task_on_queued(void *task);
void handle_task(struct request *r);

/* --- value.c: the answer --- */

/* All are owned by the caller. Of a failure nothing has been run. */
json_t *value_of_run(const struct exec_info *info);
json_t *value_of_failure(const char *code, const char *message);
json_t *value_of_blocked(void);

/* --- functions.c --- */

void handle_functions_put(struct request *r);
void handle_functions_get(struct request *r);
void handle_functions_delete(struct request *r);
void handle_function_run(struct request *r);
void handle_execute_python(struct request *r);

/* --- resolve.c: an approver decides --- */

void handle_resolve(struct request *r);

/* --- trusted_sources.c: callers that need no key; token.c: their tokens --- */

struct trusted_sources;
/* NULL and *e when text cannot be read, or names certificates and TLS asks for none. */
struct trusted_sources *trusted_sources_new(const char *text, bool certificates, struct err *e);
void trusted_sources_free(struct trusted_sources *l);
/* For struct door: 1 trusted, 0 needs a key, -1 refused and answered. */
int prisme_identify(struct request *r, void *prisme, struct caller *ret);
/* A token: HS256 over {"iss" or "sub", "exp"}. False: not signed with key, or too old. */
bool token_read(struct str token, struct str key, int64_t now_s, char *ret_name, size_t size);

/* --- door.c, tools.c --- */

extern const struct tool tool_execute_python, tool_execute_python_stub;
/* Ends c. Takes value. */
void prisme_call_answer(struct call *c, json_t *value);

/* --- the door --- */

struct prisme {
    struct tool_set tool_set;
    struct prisme_config config;
    char *imports;      /* owned: what RETORT_IMPORTS says */
    char *instructions; /* owned: with that list, for the model */
    struct exec_lane lane;
    struct trusted_sources *sources; /* owned, or NULL */
    struct prisme_task *tasks;       /* owned: the newest first */
};
