/* Private to the Ubik room. */
#pragma once

#include "doors/mcp/agent_call.h"
#include "doors/ubik/ubik.h"

#define UBIK_ROOT "/ubik/api/v1"

/* --- numbers: everything a stranger can make longer --- */

#define USER_MAX             128   /* bytes of an end user's id */
#define DOCUMENTS_MAX        32    /* of one request, and of one upload */
#define KEPT_MAX             10000 /* documents of an account; agent sessions; preferences */
#define BODY_UBIK_MAX        (4 * MiB)
#define REQUEST_BYTES        (256 * KiB)
#define CODE_BYTES           (256 * KiB)
#define NAME_BYTES           255
#define METADATA_BYTES       (16 * KiB)
#define TEXT_BYTES           DOCUMENT_TEXT_MAX /* of a document, shown as text */
#define SESSION_MESSAGES_MAX 200               /* messages of one agent session */
#define PAGE_LIMIT           100
#define TIMEOUT_MAX_S        3600
#define ROUNDS_LIMIT         20
#define WAITING_BYTES        (8 * MiB) /* of a stream, not read by its client */
#define TOKEN_MINUTES        60
#define SANDBOX_CHARS        21

/* --- shape.c: ids, links, errors, pages, items --- */

/* The same id for the same name. */
void uuid_of(char ret[UUID_MAX], const char *kind, const char *name);
void sandbox_id_make(char ret[SANDBOX_CHARS + 1]);
bool sandbox_id_is(struct str s);
/* "https://host/ubik/api/v1", owned. server: as request_base_url() gives it. NULL of NULL, which is
 * over standard input. */
char *base_url(const char *server);

json_t *ubik_error(struct request *r, int status, const char *type, const char *param,
                   json_t *message);
/* Answers {"detail": ...}: 404, 409, ... with one sentence. */
void detail(struct request *r, int status, const char *fmt, ...) PRINTF(3, 4);
/* Answers 422. where: "body" or "query"; param: "inputs.request"; missing: there is no such member.
 */
void invalid(struct request *r, const char *where, const char *param, bool missing,
             const char *message);
/* Answers with an error of the service. what: the sentence for ERR_MISSING, or NULL. */
void detail_err(struct request *r, const struct err *e, const char *what);
/* The known members of the body, checked. Owned; NULL: answered. */
json_t *body_object(struct request *r, const struct field *fields);
/* Checks the member "inputs". False: answered. */
bool check_inputs(struct request *r, const struct field *fields, json_t *inputs);

/* A page by its number, as Ubik has it, or what comes after a row that an answer has named: a list
 * that changes meanwhile then repeats nothing and leaves out nothing. */
struct pages {
    uint64_t page, limit; /* page is 1 where it goes on after a row */
    int64_t after_ms;
    char after[ID_MAX]; /* the row, or "" */
    int64_t last_ms;
    char last[ID_MAX]; /* of the page, or "": pages_last() */
};
bool pages_read(struct request *r, struct pages *ret); /* false: answered */
struct page pages_wanted(const struct pages *p);
void pages_last(struct pages *p, const char *id, int64_t created_ms);
/* total: of a list that goes on after a row, how many there are from there on. Takes items. */
void pages_answer(struct request *r, const struct pages *p, json_t *items, uint64_t total);
/* Answers with a page of the items of a kind; view: what an end user sees. */
typedef json_t *item_show_fn(const struct ubik *u, const struct item_row *item); /* owned */
void items_answer(struct request *r, const char *kind, enum item_view view, item_show_fn *show);

/* row: without kind and body, copied. max: of the items of the kind; 0: any number. */
struct end_user;
void item_put(const struct end_user *user, const char *kind, struct item_row row, uint64_t max,
              const json_t *body, done_fn *fn, void *arg);
int64_t item_expiry_ms(const struct ubik *u); /* of an item that is written now; 0: never */

/* --- end_user.c: who asks, and what they may see --- */

/* For whom something is done: the account by its key, and one of its end users. Copied. */
struct end_user {
    struct ubik *u;     /* borrowed */
    struct service *sv; /* borrowed */
    struct caller caller;
    char id[USER_MAX + 1]; /* "": the whole account */
};
int ubik_identify(struct request *r, void *ubik, struct caller *ret);
bool end_user_read(struct request *r, struct end_user *ret); /* false: answered */
/* The end user that the body names, if any, must be the one of the header or token, if any. False:
 * answered. */
bool end_user_take(struct request *r, struct end_user *user, struct str id);
/* Owns: executions, sandboxes, sessions. Sees: documents, which may be nobody's. */
bool end_user_owns(const struct end_user *user, const char *owner);
bool end_user_sees(const struct end_user *user, const char *owner);
void handle_token(struct request *r);
void handle_health(struct request *r);

/* --- preferences.c: which model writes the code --- */

/* The item with the preferences of user. */
void preference_get(const struct end_user *user, item_fn *fn, void *arg);
void handle_preferences_get(struct request *r);
void handle_preferences_put(struct request *r);

/* --- catalog.c: the tools --- */

enum catalog_kind { CATALOG_REQUEST, CATALOG_CODE, CATALOG_SKILL };

struct catalog_entry {
    const char *name;
    const char *alias; /* or NULL */
    const char *text;
    enum catalog_kind kind;
    const struct field *params;
    const char *const *media; /* names of outputs with media; ends with NULL */
    const char *example;      /* JSON of an answer */
};
const struct catalog_entry *catalog_find(struct str name_or_id);
const struct catalog_entry *catalog_named(const char *name); /* never NULL for our own */
void handle_tools(struct request *r);
void handle_tool(struct request *r);

/* --- submission.c: starts a tool --- */

/* Runs a tool. parent: the agent session, or NULL. */
void submission_start(const struct end_user *user, const struct agent_request *q,
                      const char *parent, agent_started_fn *fn, void *arg);
void handle_tool_execute(struct request *r);

/* --- sandboxes.c: which session a sandbox is --- */

/* session: the id of the session behind the sandbox; NULL with failed. */
typedef void sandbox_fn(void *arg, const char *sandbox, const char *session,
                        const struct err *failed);
void sandbox_make(const struct end_user *user, sandbox_fn *fn, void *arg);
/* ERR_MISSING: user has no sandbox of this id. */
void sandbox_find(const struct end_user *user, struct str id, sandbox_fn *fn, void *arg);
void handle_sandboxes(struct request *r);
void handle_sandbox(struct request *r);
void handle_sandbox_extend(struct request *r);
void handle_sandbox_delete(struct request *r);

/* --- tool_execution.c: executions on record --- */

/* An item with the request, and the record of the agent. */
struct tool_execution {
    char id[ID_MAX];
    char *owner;        /* owned */
    json_t *body;       /* owned: {"tool", "inputs", "sandbox", "agent": bool, "error"?, ...} */
    json_t *record;     /* owned: of the agent; NULL: the agent was not started */
    json_t *printed;    /* owned: {"stdout", "stderr"} of a script that has run, else NULL */
    int64_t created_ms; /* of the item */
};
/* x: valid until the callback returns. */
typedef void tool_execution_fn(void *arg, const struct tool_execution *x, const struct err *failed);
/* ERR_MISSING: user has no execution of this id. */
void tool_execution_find(const struct end_user *user, struct str id, tool_execution_fn *fn,
                         void *arg);
const char *tool_execution_status(const struct tool_execution *x); /* as Ubik calls it */
bool tool_execution_is_over(const struct tool_execution *x);
/* Cancels a run of the agent, at once where the query says so; fn gets r. */
void run_cancel(struct request *r, struct str id, agent_fn *fn);
void handle_execution(struct request *r);
void handle_executions(struct request *r);
void handle_execution_stop(struct request *r);
void handle_provide_input(struct request *r);

/* --- outputs.c: an execution as clients see it --- */

/* Both owned. base: base_url(); NULL: links are URIs of MCP resources. */
json_t *outputs_of(const struct tool_execution *x, const char *base);
json_t *tool_execution_show(const struct tool_execution *x, const char *base);

/* --- stream.c: the events of an execution --- */

void handle_stream(struct request *r);
/* Sends an event, in pieces where it is longer than event_bytes. Takes data. */
void event_put(struct request *r, const char *name, uint64_t id, json_t *data);
/* Name and data (*ret, owned) of an event of the agent; NULL: clients do not get it. */
const char *event_of(const json_t *ev, json_t **ret);

/* --- stream_reader.c: a client that reads a stream --- */

struct stream_reader;
/* Writes the events of one kind of stream. */
struct sse_format {
    const char *missing; /* the error when there is no such execution */
    void (*begin)(struct stream_reader *rd);
    void (*event)(struct stream_reader *rd, const json_t *ev);
    void (*end)(struct stream_reader *rd, const struct tool_execution *x);
};
struct stream_reader {
    struct request *r; /* borrowed: owns us */
    struct end_user user;
    const struct sse_format *format;
    char id[ID_MAX];           /* of the execution */
    struct agent_watch *watch; /* owned, or NULL */
    uint64_t after;            /* the client has the events up to this one */
    bool gone;                 /* the client has gone */
    bool slow;                 /* the client does not read, and can come back for the rest */
    uint64_t last; /* number of the last event; this and the rest belong to the format */
    bool told_error;
    char session[UUID_MAX];
    bool chunks; /* the client wants the output, too */
};
/* NULL: answered. Then stream_reader_follow(), or an answer, now or later. */
struct stream_reader *stream_reader_new(struct request *r, const struct sse_format *format);
void stream_reader_follow(struct stream_reader *rd); /* rd->id */
/* Takes data. */
void stream_reader_say(struct stream_reader *rd, const char *name, uint64_t id, json_t *data);

/* --- assets.c: files that executions have made --- */

struct follow;
/* When the execution ends, keeps its files, whatever happens to the sandbox later. Takes own, or
 * NULL: a model, freed when the agent is done with it. */
void follow_start(const struct end_user *user, const char *id, struct model *own);
void follows_stop(struct ubik *u);
void follows_free(struct ubik *u);
void handle_asset(struct request *r);

/* --- documents.c, upload.c --- */

/* files: [{"name", "file_id"}], borrowed; the names differ. ERR_MISSING: a document does not exist;
 * ERR_CONFLICT: it is not ready. */
typedef void documents_fn(void *arg, json_t *files, const struct err *failed);
void documents_find(const struct end_user *user, const json_t *ids, documents_fn *fn, void *arg);
json_t *document_show(const struct ubik *u, const struct item_row *item); /* owned */
void handle_documents(struct request *r);
void handle_document(struct request *r);
void handle_document_delete(struct request *r);
void handle_document_reprocess(struct request *r);
void handle_document_post(struct request *r);
/* Makes the one file of the form a document of an agent session. */
void upload_one(struct request *r, const struct end_user *user, const char *session);
/* Fetches the URL of a document. The item is pending until then. */
void document_fetch(const struct end_user *user, const struct item_row *item);

/* --- agent_sessions.c, agent_session_stream.c --- */

void handle_agent_session_post(struct request *r);
void handle_agent_sessions(struct request *r);
void handle_agent_session(struct request *r);
void handle_agent_session_delete(struct request *r);
void handle_agent_session_say(struct request *r);
void handle_agent_session_messages(struct request *r);
void handle_agent_session_stop(struct request *r);
void handle_agent_session_upload(struct request *r);
void handle_agent_session_stream(struct request *r);
/* The text of an answer, with tags; owned. */
json_t *agent_session_text(const struct tool_execution *x, const char *base);

/* --- fixed_model.c: a model with fixed replies --- */

/* Plans this one step, runs this code, and finishes. Owned. */
struct model *fixed_model_new(struct loop *l, struct str plan, struct str code);

/* --- the room itself --- */

struct ubik {
    struct tool_set tool_set;
    struct agent_backend backend;
    struct ubik_config config;
    uint8_t token_key[32];
    int64_t started_ms; /* a document that was pending before will not be fetched any more */
    struct follow *follows;
    json_t *busy_sessions; /* owned: object of agent sessions that are taking a message */
};
struct agent *ubik_agent(struct ubik *u, struct err *e); /* or NULL */
