/* Private to the Azure room. */
#pragma once

#include "doors/azure/azure.h"
#include "doors/values/values.h"
#include "loop/loop.h"
#include "record/record.h"

/* --- numbers --- */

#define BODY_AZURE_MAX   (20 * MiB) /* of JSON; files are uploaded */
#define IDENTIFIER_MIN   4
#define IDENTIFIER_MAX   128
#define NAME_IN_URL_MAX  90 /* of a subscription or a resource group */
#define OPERATION_ID_MAX 64
#define OUTPUT_DEFAULT   4096 /* characters of each stream, where the dialect has such a limit */
#define OUTPUT_MAX       (16 * MiB)
#define ARGUMENTS_MAX    1000  /* of execCommandAndArgs */
#define SESSIONS_PAGE    100   /* of listSessions */
#define SKIP_MAX         20000 /* of listSessions */
#define DEPLOYMENT_DEPTH 16    /* of one expression */
#define SECRETS_MAX      64
#define API_VERSIONS                                                                               \
    "2024-02-02-preview, 2024-08-02-preview, 2024-10-02-preview, 2025-02-02-preview, "             \
    "2025-10-02-preview"

/* --- target.c: where a request goes --- */

enum target_kind {
    TARGET_POOL,
    TARGET_POOLS,       /* all of them, or of a group */
    TARGET_PROVIDER,    /* Microsoft.App itself */
    TARGET_OPERATION,   /* how one goes that was asked for before */
    TARGET_GROUP,       /* a resource group */
    TARGET_ENVIRONMENT, /* of Container Apps */
    TARGET_DEPLOYMENTS,
    TARGET_DEPLOYMENT,
};

struct azure_target {
    enum target_kind kind;
    struct str subscription, group; /* p NULL: below /azure */
    struct str pool;                /* of TARGET_POOL; else the name of what it is */
    struct str rest;                /* what of it: "code/execute"; no doubled slashes */
};
/* path: decoded, below /azure or /subscriptions. room: path.n + 1 bytes that ret looks into. */
bool azure_target_read(struct str path, bool arm, char *room, struct azure_target *ret);
/* Whether rest is the row's path; "**" stands for one or more parts, which are in *ret_name. */
bool rest_fits(const char *pattern, struct str rest, struct str *ret_name);
bool str_nocase(struct str a, struct str b);

/* --- members.c --- */

/* A member by its name in any case; NULL: none. */
json_t *json_nocase(const json_t *object, const char *name);
/* The same along "a.b.c". */
json_t *json_at(const json_t *object, const char *path);

/* --- a request on its way --- */

struct azure_request {
    struct request *r;   /* borrowed: outlives us */
    struct azure *azure; /* borrowed */
    char *room;          /* owned: texts of target */
    struct azure_target target;
    struct str name;       /* what "**" stood for */
    struct pool_info pool; /* borrowed until the loop turns; pool.pool NULL: there is none */
    char pool_name[64];    /* as it is kept */
    char session[ID_MAX];  /* once it is known */
    bool is_new;           /* its interpreter was made for this request */
    int64_t began_us, ready_us;
    void (*then)(struct azure_request *v); /* when the session is known */
    json_t *body;                          /* owned, or NULL: of a POST, PUT or PATCH with JSON */
};

enum op_needs {
    NEEDS_POOL = 1,
    NEEDS_SESSION = 2, /* found by its identifier, or made */
    NEEDS_KNOWN = 4,   /* found, and never made */
    NEEDS_ADMIN = 8,
    NEEDS_JSON = 16, /* the body is an object; an empty one counts as {} */
    NEEDS_FORM = 32,
    PART_MCP = 64, /* for keys it is a part of the door: "azure/mcp" */
};

struct op {
    enum http_method method;
    const char *path; /* of target.rest */
    unsigned needs;
    void (*run)(struct azure_request *v);
    enum target_kind of;
};

extern const struct op azure_ops[]; /* routes.c: of one pool */
extern const size_t azure_op_count;

struct service *azure_service(struct azure_request *v);
const struct caller *azure_caller(struct azure_request *v);
struct str azure_identifier(struct azure_request *v); /* p NULL: none was given */
/* api-version, where it is a plain word that an address may hold; else empty. */
struct str azure_version(struct azure_request *v);
/* Of a version before 2024-10: the older shapes. */
bool azure_is_old(struct azure_request *v);
/* "http://host/azure/pools/p", as the client reached us. Returns ret. */
#define URL_TEXT_MAX 1024
const char *azure_url(struct azure_request *v, char ret[URL_TEXT_MAX]);
/* --- errors.c --- */

/* {"error":{"code","message","traceId"}}, with x-ms-error-code. */
void azure_fail(struct azure_request *v, int status, const char *code, const char *fmt, ...)
    PRINTF(4, 5);
/* The same of what the service said; missing: the code where it is not there. */
void azure_fail_err(struct azure_request *v, const struct err *e, const char *missing);
/* A field of the body or the query is wrong: a problem document, 400. */
void azure_invalid(struct azure_request *v, const char *field, const char *fmt, ...) PRINTF(3, 4);
json_t *azure_error(struct request *r, int status, const char *type, const char *param,
                    json_t *message);
/* Like answer_json(), with numbers as exact as they are. Takes value. */
void azure_answer(struct azure_request *v, int status, json_t *value);

/* --- sessions.c --- */

/* Why it is none: the code of the error, and *e. NULL: it is one. */
const char *identifier_problem(struct str id, struct err *e);
/* As a query holds it. Returns ret. */
const char *identifier_escape(struct str id, char ret[3 * IDENTIFIER_MAX + 1]);
/* v->then() with the session of the identifier. make: it need not be there. */
void session_reach(struct azure_request *v, bool make);
void op_session_get(struct azure_request *v);
void op_session_delete(struct azure_request *v);
void op_session_stop(struct azure_request *v);
void op_sessions_list(struct azure_request *v);
void op_metadata(struct azure_request *v);
void op_health(struct azure_request *v);

/* --- execute.c: code and commands, in each dialect --- */

void op_code_execute(struct azure_request *v);   /* nested, Success and Failure */
void op_python_execute(struct azure_request *v); /* flat, the same words */
void op_executions(struct azure_request *v); /* Succeeded and Failed; a command: its exit status */
void op_execute(struct azure_request *v);    /* any of them, by the body */
void op_shell_execute(struct azure_request *v); /* as the shell image has it */
void op_execution_get(struct azure_request *v);

enum dialect { DIALECT_NESTED, DIALECT_FLAT, DIALECT_ENVELOPE, DIALECT_SHELL };

/* What was asked for, beside the code. */
struct azure_exec_options {
    enum dialect dialect;
    bool shell, background, jupyter;
    uint64_t most;                    /* characters of each stream; 0: all there are */
    char operation[OPERATION_ID_MAX]; /* the client's own id for it, or "" */
};

/* --- program.c: what is to run, as a client wrote it --- */

struct program {
    enum exec_kind kind;
    char *code; /* owned */
    uint64_t wall_ms;
};
/* False: answered. props: borrowed. */
bool program_read(struct azure_request *v, const json_t *props, struct program *ret);
/* Whether it has a command, and not Python. */
bool program_is_command(const json_t *props);
struct str azure_tool_name(enum exec_kind kind); /* as approval rules and people know it */
/* A command line of these words, each as it is; owned, NULL when one is no text. */
char *words_quote(const json_t *words);

/* --- outcome.c: what came of it --- */

/* An execution that has ended, or runs, in the shape of its dialect; owned. */
json_t *outcome_show(const struct azure_exec_options *w, struct str identifier,
                     const struct exec_info *info);
/* Both streams of an execution, the traceback and the last line included, and what the server has
 * to say, such as variables that are gone; owned. */
struct streams_text {
    struct buf out, err, note;
};
void streams_read(struct streams_text *ret, const struct exec_info *info);
void streams_done(struct streams_text *s);
/* The value of the last expression, or the last image; "" for none. Owned. */
json_t *value_of(const json_t *events, bool jupyter);
/* Every image, as {"type":"image",...}; owned. */
json_t *images_of(const json_t *events);

/* --- literal.c --- */

/* A value by its repr: numbers and truth values as JSON has them, strings as their text, all else
 * as the repr itself. Owned. */
json_t *literal_value(struct str repr);

/* --- operations.c: ids of the client's own --- */

struct operations;
struct operations *operations_new(void);
void operations_free(struct operations *o);
void operations_put(struct operations *o, const char *tenant, const char *execution,
                    const struct azure_exec_options *w);
/* By the client's id, or by ours. False: nothing is known of it. */
bool operations_get(struct operations *o, const char *tenant, struct str id,
                    char ret_execution[ID_MAX], struct azure_exec_options *ret);

/* --- files.c --- */

void op_files_list(struct azure_request *v);
void op_files_list_old(struct azure_request *v);
/* Whether an operation lists files. */
bool op_is_list(void (*run)(struct azure_request *v));
void op_files_upload(struct azure_request *v);
void op_files_upload_old(struct azure_request *v);
void op_file_download(struct azure_request *v);
void op_file_stat(struct azure_request *v);
void op_file_delete(struct azure_request *v);

/* --- pool_spec.c: from a document to a pool --- */

struct azure_pool_spec {
    struct pool_spec spec; /* its texts are those of the document */
    struct env_var env[ENV_COUNT_MAX];
    const char *code; /* of the error, where it cannot be made */
};
int azure_pool_spec_read(struct azure_pool_spec *ret, struct service *sv, const json_t *doc,
                         struct err *e) MUST_CHECK;
/* pool_shape.c: a copy of a document whose members have the types they should have, and whose
 * numbers are numbers; owned, NULL with *e. */
json_t *pool_shape(const json_t *doc, struct err *e);
/* ignored.c: [{"property","reason"}] of what means nothing here; owned. */
json_t *ignored_of(const json_t *document);

/* --- resource.c: the document of a pool --- */

void op_pool_get(struct azure_request *v);
void op_pool_list(struct azure_request *v);
void op_pool_put(struct azure_request *v);
void op_pool_patch(struct azure_request *v);
void op_pool_delete(struct azure_request *v);
void op_credentials_fetch(struct azure_request *v);
void op_credentials_rotate(struct azure_request *v);
/* As it is given to clients; owned. */
json_t *pool_show(struct azure_request *v, const struct pool_info *info);
/* Pools of the settings, and those made below /azure, are in every group; others in their own. In
 * *ret, and whether there is one. */
bool pool_find(struct azure_request *v, struct str name, struct pool_info *ret);
/* Its provisioningState: Succeeded once it is up, InProgress before, or Failed. */
const char *pool_state(const struct pool_info *info);
/* fn hears of it; false: answered. */
bool pool_put(struct azure_request *v, struct str name, const json_t *doc, pool_fn *fn, void *arg);
/* As pool_show() would show it, were it put now; nothing is made. Owned; NULL with *e. */
json_t *pool_foresee(struct azure_request *v, struct str name, const json_t *doc, struct err *e);
bool pool_has_mcp(const struct pool_info *info);
bool pool_takes_keys(const struct pool_info *info); /* in x-ms-apikey */

/* --- functions.c: functions of templates that know nothing but their arguments --- */

#define TEMPLATE_TEXT (64 * KiB) /* of one value */
/* False: it is not known. *ret: owned, or NULL: it cannot take these. */
bool template_function(const char *name, const json_t *args, json_t **ret);

/* --- expression.c: texts in brackets --- */

struct scope {
    const json_t *given, *parameters, *variables; /* or NULL */
    const json_t *made;                           /* resources by their ids */
    struct str subscription, group;
    unsigned *calls; /* counts those of functions */
};
/* A value with all its expressions replaced by their values. Owned; NULL with *e, which must be
 * empty before. */
json_t *expression_fill(const struct scope *s, const json_t *value, struct err *e);
/* The same within another value, at that depth. */
json_t *expression_value(const struct scope *s, const json_t *value, int depth, struct err *e);

/* --- parameters.c: what a template declares, and what it is given --- */

/* Types, bounds and allowed values, as Resource Manager enforces them; and nothing undeclared. */
int parameters_check(const json_t *declared, const json_t *given, struct err *e) MUST_CHECK;
/* The same of default values that are expressions. */
int parameters_check_computed(const struct scope *s, struct err *e) MUST_CHECK;
/* The length of a text as .NET counts it: a character beyond the first 65,536 is two. */
size_t template_length(struct str s);
/* What is given, or the default; owned. NULL: neither, or *e. */
json_t *parameter_value(const struct scope *s, const char *name, int depth, struct err *e);
/* Whether a value is of the type that an output declares; *ret_secret: it is not to be shown. */
bool output_fits(const json_t *declared, const json_t *value, bool *ret_secret);
/* The values that count, secrets left out; owned. */
json_t *parameters_show(const json_t *declared, const json_t *given);

/* --- deployment.c --- */

void op_deployment_put(struct azure_request *v);
void op_deployment_validate(struct azure_request *v);
void op_deployment_what_if(struct azure_request *v);

/* --- deployment_record.c: those there have been --- */

/* Kept under its name; takes record. fn as service_item_put(). */
void deployment_keep(struct azure_request *v, json_t *record, done_fn *fn, void *arg);
/* A record as it is shown now: Running while a pool of it starts. Owned by the caller. */
json_t *deployment_now(struct azure_request *v, const json_t *kept);
void op_deployment_get(struct azure_request *v);
void op_deployment_list(struct azure_request *v);
void op_deployment_delete(struct azure_request *v);
void op_deployment_operations(struct azure_request *v);
void op_deployment_export(struct azure_request *v);

/* --- arm.c: what Resource Manager has around session pools --- */

void op_provider(struct azure_request *v);
void op_operation_status(struct azure_request *v);
void op_group(struct azure_request *v);
void op_environment(struct azure_request *v);

/* --- mcp.c: the MCP server of a pool; tools.c: what it has --- */

void op_mcp_post(struct azure_request *v);
void op_mcp_refuse(struct azure_request *v); /* GET and DELETE: 405 */

/* --- the room itself --- */

/* --- probes.c: of custom containers --- */

struct probes *probes_new(struct loop *l);
void probes_free(struct probes *p);
/* There may be pools whose probes do not run yet. */
void probes_wake(struct probes *p, struct service *sv);
/* What came of the probes of the pool's document so far; owned. */
json_t *probes_show(struct probes *p, const struct pool_info *info);

struct azure {
    struct mcp *mcp;               /* borrowed */
    struct operations *operations; /* owned */
    struct probes *probes;         /* owned */
};
