/* Private to the Ubik room. */
#pragma once

#include "doors/mcp/mcp_int.h"
#include "doors/ubik/ubik.h"

#define UBIK_ROOT "/ubik/api/v1"

/* --- numbers: everything a stranger can make longer --- */

#define USER_MAX       128   /* bytes of an end user's id */
#define DOCUMENTS_MAX  32    /* of one request, and of one upload */
#define KEPT_MAX       10000 /* documents of an account; its agent sessions likewise */
#define BODY_UBIK_MAX  (4 * MiB)
#define REQUEST_BYTES  (256 * KiB)
#define CODE_BYTES     (256 * KiB)
#define NAME_BYTES     255
#define METADATA_BYTES (16 * KiB)
#define TEXT_BYTES     (256 * KiB) /* of a document, shown as text */
#define TURNS_OF_TALK  200         /* messages of one agent session */
#define PAGE_LIMIT     100
#define TIMEOUT_MAX_S  3600
#define ROUNDS_LIMIT   20
#define WAITING_BYTES  (8 * MiB) /* of a stream, not read by its client */
#define TOKEN_MINUTES  60
#define UUID_MAX       37
#define SANDBOX_CHARS  21

/* --- shape.c: ids, links, and how this door says what is wrong --- */

void uuid_make(char ret[UUID_MAX]);
void uuid_of(char ret[UUID_MAX], const char *kind, const char *name); /* always the same */
bool uuid_is(struct str s);
void sandbox_id_make(char ret[SANDBOX_CHARS + 1]);
bool sandbox_id_is(struct str s);
/* "https://host/ubik/api/v1", owned: as the client reaches us; NULL: over HTTP it does not. r: or
 * NULL. */
char *base_url(const struct ubik *u, struct request *r);
struct str last_segment(struct str name); /* of a path, however it is written */
/* Percent-encoded, but for what a path may hold. */
void url_put(struct buf *b, struct str path);
json_t *time_json(int64_t ms); /* null for 0 */

json_t *ubik_error(struct request *r, int status, const char *type, const char *param,
                   json_t *message);
/* 404, 409, ...: one sentence. */
void detail(struct request *r, int status, const char *fmt, ...) PRINTF(3, 4);
/* 422. where: "body" or "query"; param: "inputs.request"; missing: it is not there at all. */
void invalid(struct request *r, const char *where, const char *param, bool missing,
             const char *message);
/* What the service said. what: "Document not found", where nothing is to be found. */
void detail_err(struct request *r, const struct err *e, const char *what);
/* The body as an object of these fields, further members left alone. Owned; NULL: answered. */
json_t *body_object(struct request *r, const struct field *fields);
/* Checks an object below "inputs". False: answered. */
bool check_inputs(struct request *r, const struct field *fields, const json_t *inputs);

struct pages {
    uint64_t page, limit;
};
bool pages_read(struct request *r, struct pages *ret); /* false: answered */
/* Takes items. */
void pages_answer(struct request *r, const struct pages *p, json_t *items, uint64_t total);

/* --- who.c: who asks, and what they may see --- */

struct who {
    char user[USER_MAX + 1]; /* the end user; "": the whole account */
    bool by_token;           /* and nobody else, whatever a header says */
};
int ubik_identify(struct request *r, void *ubik, struct caller *ret);
bool who_read(struct request *r, struct who *ret); /* false: answered */
/* The body names an end user, too (p NULL: it does not): it must be the same one, where there is
 * one. False: answered. */
bool who_take(struct request *r, struct who *w, struct str user);
/* Executions, sandboxes, sessions: one's own. Documents: those of nobody, too. */
bool who_owns(const struct who *w, const char *owner);
bool who_sees(const struct who *w, const char *owner);
/* The kind of the item that holds what w prefers; its id is the user's, or "-". */
const char *preference_kind(const struct who *w);
void handle_token(struct request *r);
void handle_health(struct request *r);
void handle_preferences_get(struct request *r);
void handle_preferences_put(struct request *r);

/* --- catalog.c: the tools --- */

enum work_kind { WORK_REQUEST, WORK_CODE, WORK_SKILL };

struct catalog_entry {
    const char *name;
    const char *alias; /* or NULL */
    const char *text;
    enum work_kind kind;
    const struct field *params;
    const char *const *media; /* output keys with media; ends with NULL */
    const char *example;      /* JSON of an answer */
};
const struct catalog_entry *catalog_find(struct str name_or_id);
const struct catalog_entry *catalog_named(const char *name); /* never NULL for our own */
void handle_tools(struct request *r);
void handle_tool(struct request *r);

/* --- order.c: a tool does something --- */

struct order_spec {
    struct ubik *ubik;
    struct service *service;
    const struct caller *caller; /* copied */
    struct str user;             /* copied: the end user, or empty */
    const struct catalog_entry *tool;
    json_t *inputs;     /* referenced; checked */
    struct model *own;  /* as in agent_spec, or NULL; stays the caller's */
    bool can_answer;    /* somebody can be asked */
    const char *parent; /* the agent session it is for, or NULL */
};
/* id: of the execution, which may have failed already. failed: there is none. */
typedef void order_fn(void *arg, const char *id, const struct err *failed);
/* fn once, from the loop. */
void order_start(const struct order_spec *spec, order_fn *fn, void *arg);
void handle_tool_execute(struct request *r);

/* --- sandboxes.c: which session a sandbox is --- */

/* failed NULL: session is its id. */
typedef void sandbox_fn(void *arg, const char *sandbox, const char *session,
                        const struct err *failed);
/* A new one of this end user's. */
void sandbox_make(struct ubik *u, struct service *sv, const struct caller *c, struct str user,
                  sandbox_fn *fn, void *arg);
/* ERR_MISSING: there is none of this id that user may use. */
void sandbox_find(struct ubik *u, struct service *sv, const struct caller *c, struct str user,
                  struct str id, sandbox_fn *fn, void *arg);
void handle_sandboxes(struct request *r);
void handle_sandbox(struct request *r);
void handle_sandbox_extend(struct request *r);
void handle_sandbox_delete(struct request *r);

/* --- execution.c: one that was ordered --- */

/* Kept as an item: what was asked for, and what is known beside the agent's record. */
struct execution {
    char id[ID_MAX];
    char *owner;        /* owned */
    json_t *body;       /* owned: {"tool", "inputs", "sandbox", "agent": bool, "error"?, ...} */
    json_t *record;     /* owned: the agent's, or NULL: it never came to that */
    json_t *printed;    /* owned: {"stdout", "stderr"} of a script that has run, else NULL */
    int64_t created_ms; /* of the item */
};
/* It is not valid after the callback. */
typedef void execution_fn(void *arg, const struct execution *x, const struct err *failed);
/* ERR_MISSING: there is none that w may see. */
void execution_find(struct ubik *u, struct service *sv, const struct caller *c, const struct who *w,
                    struct str id, execution_fn *fn, void *arg);
const char *execution_status(const struct execution *x); /* of Ubik's words */
bool execution_is_over(const struct execution *x);
void handle_execution(struct request *r);
void handle_executions(struct request *r);
void handle_execution_stop(struct request *r);
void handle_provide_input(struct request *r);

/* --- outputs.c: what came of it --- */

/* Owned. base: base_url(), or NULL: links are names of MCP resources. */
json_t *outputs_of(const struct execution *x, const char *base);
json_t *execution_show(const struct execution *x, const char *base);

/* --- stream.c: events as they come --- */

void handle_stream(struct request *r);
/* As text/event-stream has it; pieces, where it is longer than event_bytes. id 0: without one.
 * Takes data. */
void event_put(struct buf *b, const struct ubik *u, const char *name, uint64_t id, json_t *data);
/* An event of the agent's: its name, or NULL when it is none for clients; *ret is owned. */
const char *event_of(const json_t *ev, json_t **ret);

/* --- reader.c: one who reads such a stream --- */

struct reader;
struct voice {
    const char *missing; /* what is said when there is no such execution */
    void (*begin)(struct reader *rd);
    void (*event)(struct reader *rd, const json_t *ev);
    void (*end)(struct reader *rd, const struct execution *x);
};
struct reader {
    struct request *r; /* borrowed; NULL: gone, or answered */
    struct ubik *u;    /* borrowed */
    struct who who;
    const struct voice *voice;
    char id[ID_MAX];           /* of the execution */
    struct agent_watch *watch; /* owned, or NULL */
    uint64_t after;            /* events up to this one it has already */
    unsigned holders;
    bool looking;  /* something is looked for */
    uint64_t last; /* number of the last event; this and the rest are the voice's */
    bool told_error;
    char session[UUID_MAX];
    bool chunks; /* what is printed is wanted, too */
};
/* NULL: answered. Then reader_follow() or reader_refuse(), now or later. */
struct reader *reader_new(struct request *r, const struct voice *voice);
void reader_follow(struct reader *rd); /* rd->id */
/* failed NULL: 404 with these words. */
void reader_refuse(struct reader *rd, const struct err *failed, const char *missing);
/* Takes data. One who does not read is let go, and can come back for the rest: r is NULL then, and
 * nothing is said any more. */
void reader_say(struct reader *rd, const char *name, uint64_t id, json_t *data);

/* --- assets.c: files that were made --- */

struct follow;
/* What it makes is kept when it ends, whatever becomes of the sandbox. */
/* own: or NULL; owned by us, and freed when the agent is done with it. */
void follow_start(struct ubik *u, struct service *sv, const struct caller *c, const char *owner,
                  const char *id, struct model *own);
void follows_stop(struct ubik *u);
void follows_free(struct ubik *u);
void handle_asset(struct request *r);

/* --- documents.c, upload.c --- */

/* files: [{"name", "file_id"}], borrowed; no two names are the same. ERR_MISSING names the one that
 * is not there, ERR_CONFLICT the one that is not ready. */
typedef void documents_fn(void *arg, json_t *files, const struct err *failed);
void documents_find(struct service *sv, const struct caller *c, const struct who *w,
                    const json_t *ids, documents_fn *fn, void *arg);
json_t *document_show(const struct ubik *u, const struct item_row *item); /* owned */
void handle_documents(struct request *r);
void handle_document(struct request *r);
void handle_document_delete(struct request *r);
void handle_document_reprocess(struct request *r);
void handle_document_post(struct request *r);
/* One file of a form becomes a document of this session's. */
void upload_one(struct request *r, const struct who *w, const char *session);
/* What a URL has; the item, pending until now, is written again. */
void document_fetch(struct ubik *u, struct service *sv, const struct caller *c,
                    const struct item_row *item);

/* --- talks.c, talk_stream.c: agent sessions --- */

void handle_talk_post(struct request *r);
void handle_talks(struct request *r);
void handle_talk(struct request *r);
void handle_talk_delete(struct request *r);
void handle_talk_say(struct request *r);
void handle_talk_messages(struct request *r);
void handle_talk_stop(struct request *r);
void handle_talk_upload(struct request *r);
void handle_talk_stream(struct request *r);
/* The text of an answer, with its tags: owned. */
json_t *talk_text(const struct execution *x, const char *base);

/* --- given.c: a model that has one thing to say --- */

/* It plans this one step, writes this code, and is done. Freed by whoever has it. */
struct model *given_new(struct loop *l, struct str plan, struct str code);

/* --- pictures.c: what an MCP client shows --- */

struct pictures;
typedef void pictures_fn(void *arg, json_t *items); /* borrowed: content */
/* fn once, from the loop. */
struct pictures *pictures_start(struct loop *l, struct service *sv, const struct caller *c,
                                const struct execution *x, pictures_fn *fn, void *arg);
void pictures_leave(struct pictures *p); /* nobody waits: fn is not called. NULL is none */

/* --- mission.c, tools.c: an order of an MCP client --- */

struct mission;
/* Ends the call. args: checked. */
void mission_start(struct call *c, struct ubik *u, const struct catalog_entry *tool, json_t *args);
/* The call has come again with an answer: false when it has not. */
bool mission_resume(struct call *c, struct ubik *u);
void missions_stop(struct ubik *u);
void missions_free(struct ubik *u);
/* What a model reads of it. Owned. */
json_t *mission_result(const struct call *c, const struct execution *x, const char *base);
extern const struct tool tool_python_interpreter;

/* --- the room itself --- */

struct ubik {
    struct face face;
    struct ubik_config config;
    uint8_t token_key[32];
    int64_t started_ms; /* what is under way from before has nobody who ends it */
    struct follow *follows;
    struct mission *missions;
    json_t *talking; /* owned: object, sessions whose next message is being taken */
};
struct agent *ubik_agent(struct ubik *u, struct err *e); /* or NULL */
int64_t clock_ms(void);

static inline struct str user_of(const struct who *w)
{
    return str_of(w->user);
}
