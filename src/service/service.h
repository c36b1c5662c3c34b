/*
 * service: what outlives a sandbox. Tenants and keys, sessions that sleep and wake
 * up, executions on record, files kept, limits.
 *
 * Touches: the engine, the store, the loop, files by URL through fetch. Never
 * touches: HTTP or any other wire format; a door turns bytes into these calls and
 * these answers into bytes.
 *
 * A caller is made by service_authorise(), the one place where a key becomes a
 * tenant; every other call takes it and sees nothing of another tenant: what is
 * not the caller's is ERR_MISSING. All calls return at once; the answer comes from
 * the loop, exactly once, never from inside the call. What a callback is given is
 * borrowed and valid during the callback only.
 *
 * The truth about a workspace is what the store has: uploads, and what each
 * execution changed, are saved before the client hears of them. A live sandbox
 * holds a copy. So a session can lose its sandbox at any time (idle, lifetime,
 * crash) and go on with its files; its next execution says that variables are
 * gone.
 */
#pragma once

#include "engine/engine.h"
#include "loop/loop.h"
#include "store/store.h"

#include <jansson.h>

struct service;
typedef void done_fn(void *arg, const struct err *failed);

/* --- settings --- */

enum egress_mode { EGRESS_NONE, EGRESS_ALLOW_LIST };
/* When a person must agree before code runs; and who: the client's user, or a key that approves. */
enum approval_policy { POLICY_AUTO, POLICY_ASK_FIRST, POLICY_ALWAYS_ASK, POLICY_ASK_EXTERNAL };
enum approval_by { APPROVAL_BY_CLIENT, APPROVAL_BY_EITHER, APPROVAL_BY_APPROVER };

struct service_pool {
    char *name;    /* owned by the config */
    char *python;  /* NULL: the default */
    char *preload; /* NULL: none */
    char *text;    /* one line for people and models, or NULL */
    struct limits limits;
    uint64_t ready;        /* sandboxes kept parked, */
    uint64_t ready_max;    /* and after a rush */
    uint64_t max_sessions; /* live at a time */
    uint64_t idle_ms, lifetime_ms, recycle_ms;
    uint64_t learn_ms; /* at most so often an interpreter with what sessions import; 0: never */
    enum egress_mode egress;
    char *egress_hosts; /* comma-separated: "pypi.org, *.example.com:443"; or NULL */
    enum approval_policy approval;
    enum approval_by approval_by;
    char *approval_when;                            /* when.c; NULL: every call */
    uint64_t approval_timeout_ms, approval_wait_ms; /* for the client's user; for an approver */
    char *images; /* of an environment: comma-separated names it stands for elsewhere; or NULL */
    char *vars;   /* JSON object of strings, for all its sessions; or NULL */
};

struct service_config {
    const struct service_pool *pools; /* borrowed during service_new(); the first is the default */
    size_t pool_count;
    /* What pools can be made of while we run, beside what these pools have: name, python, preload,
     * text and images of each. Borrowed, like pools. */
    const struct service_pool *environments;
    size_t environment_count;
    uint64_t tenant_sessions;       /* live at a time, per tenant */
    uint64_t retention_ms;          /* a workspace after its last use */
    uint64_t record_ms;             /* an execution record; 0: for ever */
    uint64_t home_bytes;            /* of files in /tmp kept while a session sleeps */
    uint64_t file_bytes;            /* of one upload */
    uint64_t tenant_bytes;          /* files and items of one tenant; 0: what the disk has */
    uint64_t fetch_bytes, fetch_ms; /* of one URL */
    bool fetch_private;             /* private addresses may be fetched from ... */
    const char *fetch_allow;        /* ... or these hosts of them; borrowed, like pools */
    uint64_t held_bytes;            /* in memory for all executions at a time; 0: 256 MiB */
    uint64_t lease_ms;              /* of a node */
};

struct service *service_new(struct loop *l, struct engine *en, struct store *st,
                            const struct service_config *config, struct err *e);
/* No new sessions or executions (ERR_AWAY); on_empty when the last foreground execution ended. */
void service_drain(struct service *sv, loop_fn *on_empty, void *arg);
/* After that: ends what still runs, with an outcome that says so. */
void service_end_all(struct service *sv);
/* Saves and closes what is live, and answers what is under way. Turns the loop for that, so not
 * from one of its callbacks. */
void service_free(struct service *sv);
/* Reads the keys again (SIGHUP; also done every few seconds when the database changed). */
void service_reload(struct service *sv);
/* The first pool's interpreter is up. *ret_why when not, or when something is broken. */
bool service_is_ready(struct service *sv, const char **ret_why);
/* How many pools can run something, and how many never will. */
struct service_pools {
    size_t all, up, refused;
    const char *pool, *why; /* borrowed; of the first that is refused, or NULL */
};
struct service_pools service_look_at_pools(const struct service *sv);

/* A door keeps output of an ended execution in memory until its client has it: the door held
 * `before` bytes so far, and holds `now` bytes from here on. */
void service_hold(struct service *sv, uint64_t before, uint64_t now);
/* As loop_work(), for doors: the service, and the store below it, are not freed before done() has
 * been called. */
void service_work(struct service *sv, loop_fn *work, loop_fn *done, void *arg);

/* --- nodes: servers that share the store (nodes.c) --- */

bool service_has_nodes(const struct service *sv);
/* Where a tenant lives. Elsewhere: *ret_url is borrowed until the loop turns; NULL: that node is
 * not known yet. Unknown: service_home_find() asks, and moves the tenant in if it lives nowhere. A
 * server that shares its store with nobody is home to all. */
enum home_place { HOME_HERE, HOME_ELSEWHERE, HOME_UNKNOWN };
enum home_place service_home(struct service *sv, const char *tenant, const char **ret_url);
void service_home_find(struct service *sv, const char *tenant, done_fn *fn, void *arg);
/* Whether a node of this URL is among those that hold a lease, as last read. */
bool service_node_is_there(const struct service *sv, const char *url);
/* It does not live where we thought. */
void service_home_forget(struct service *sv, const char *tenant);
/* ERR_AWAY: another node may have taken over; what is in memory here may be old. */
bool service_lease_holds(struct service *sv, struct err *e);
/* fn whenever a tenant has moved in. kind and parent, static: items that are to be gone on with (or
 * NULL); their tenants move in without being asked for. */
typedef void home_fn(void *arg, const char *tenant);
void service_on_home(struct service *sv, const char *kind, const char *parent, home_fn *fn,
                     void *arg);
/* Another node has taken over what was ours: this process can only end. */
void service_on_fenced(struct service *sv, loop_fn *fn, void *arg);
/* As last read; borrowed until the loop turns. NULL: there are none. */
const struct node_row *service_nodes(struct service *sv, size_t *ret_count, const char **ret_self);

/* --- sandboxes on other nodes (place.c, lend.c): a tenant lives on one node, and its sessions have
 * their sandboxes there while there is room --- */

struct channel;
struct caller;
/* fn makes a channel to the node of this URL, for a session of the caller's tenant. Without it no
 * sandbox is borrowed. */
typedef struct channel *dial_fn(void *arg, const char *url, const struct caller *c);
void service_on_dial(struct service *sv, dial_fn *fn, void *arg);
/* Another node wants a sandbox, for a session of the caller's tenant. Takes the channel. */
void service_lend(struct service *sv, const struct caller *c, struct channel *n);
/* Sandboxes of ours that others have, and of others that we have. */
void service_lent(const struct service *sv, size_t *ret_lent, size_t *ret_borrowed);

/* --- who asks --- */

struct caller {
    char tenant[64];
    char key[ID_MAX];     /* "" without a key */
    char request[ID_MAX]; /* "req_...": in every answer and log line */
    const char *door;     /* static: "rest", ... */
    bool admin;
    bool approver;    /* may decide approvals of the tenant; an admin may */
    int64_t until_ms; /* when what let it in expires; 0: never */
};

/* Whether any key has been created: from then on none may be left out. */
bool service_has_keys(struct service *sv);
/* secret empty: no key was given. local: the request came over loopback or a Unix socket. False
 * when the caller may not come in; ret is then empty. Constant time in the secret. */
bool service_authorise(struct service *sv, struct str secret, bool local, struct caller *ret);
/* After service_authorise() has refused a secret: it may be that of a key that was made a moment
 * ago, by another node or on the command line. fn is called when the database has been asked, and
 * service_authorise() may know it then. False: there is no secret, or too many have been looked for
 * within this second. */
bool service_key_seek(struct service *sv, struct str secret, done_fn *fn, void *arg);
/* Limits of a key (scope.c), as they are now; without a key there are none. Whether the door, or
 * the part of it ("azure/mcp"), is open to the caller: for reading alone, or for all. ERR_DENIED.
 */
int service_may(struct service *sv, const struct caller *c, const char *door, bool reads,
                struct err *e) MUST_CHECK;
/* Whether service_may() says no to anything. */
bool service_is_limited(struct service *sv, const struct caller *c);
bool service_only_reads(struct service *sv, const struct caller *c);
bool service_sees_pool(struct service *sv, const struct caller *c, const char *pool);
/* The pools, comma-separated; NULL: any. Borrowed until the loop turns. */
const char *scope_pools(const struct service *sv, const struct caller *c);
bool scope_door_known(struct str name);

/* Whether the key with this id is there, not revoked and not expired; for "": whether no key is
 * needed. */
bool service_key_stands(struct service *sv, const char *tenant, const char *id);
/* Whose a key is, by its id; "local" for "". False: there is no such key. */
bool service_key_tenant(struct service *sv, const char *id, char ret[64]);

/* --- sessions --- */

enum session_state {
    SESSION_STARTING,
    SESSION_IDLE,
    SESSION_RUNNING,
    SESSION_ASLEEP,
    SESSION_ENDED
};
const char *
session_state_name(enum session_state s); /* "starting", "idle", "running", "asleep", "ended" */

struct session_info {
    const struct session_row *row;
    enum session_state state;
    int64_t sleeps_ms;     /* when the interpreter goes if nothing happens; 0 when asleep */
    size_t queued;         /* executions waiting */
    uint64_t memory_bytes; /* the most that its sandbox has used so far; 0: unknown, or asleep */
    const char *note;      /* a plain sentence the client should see, or NULL */
    bool existed;          /* when created by name: it was there already */
};

struct env_var {
    struct str name, value;
};

struct session_spec {
    struct str pool;        /* empty: the first */
    struct str name;        /* empty: none. Given and there already: that session is the answer */
    const json_t *metadata; /* object or NULL */
    const struct env_var *env;
    size_t env_count;
    uint64_t idle_ms, lifetime_ms; /* 0: the pool's; at most the pool's */
    bool asleep;                   /* a new one has no sandbox until code is to run in it */
};

typedef void session_fn(void *arg, const struct session_info *info, const struct err *failed);
typedef void sessions_fn(void *arg, const struct session_info *infos, size_t count, bool more,
                         const struct err *failed);

void service_session_create(struct service *sv, const struct caller *c,
                            const struct session_spec *spec, session_fn *fn, void *arg);
void service_session_get(struct service *sv, const struct caller *c, struct str id, session_fn *fn,
                         void *arg);
/* By its own name in this pool (empty: the first of the key); it is not made when it is not there.
 */
void service_session_named(struct service *sv, const struct caller *c, struct str pool,
                           struct str name, session_fn *fn, void *arg);
void service_session_list(struct service *sv, const struct caller *c, struct page page,
                          sessions_fn *fn, void *arg);
/* ERR_CONFLICT: another session of the pool has the name. */
void service_session_rename(struct service *sv, const struct caller *c, struct str id,
                            struct str name, session_fn *fn, void *arg);
/* Starts the idle clock anew; idle_ms 0: with the time it has, else with this one. */
void service_session_extend(struct service *sv, const struct caller *c, struct str id,
                            uint64_t idle_ms, session_fn *fn, void *arg);
/* The running cell gets SIGINT, then the kill after the grace. Nothing running is no error. */
void service_session_interrupt(struct service *sv, const struct caller *c, struct str id,
                               session_fn *fn, void *arg);
/* A fresh interpreter; files are kept. What runs or waits is ended. */
void service_session_restart(struct service *sv, const struct caller *c, struct str id,
                             session_fn *fn, void *arg);
void service_session_delete(struct service *sv, const struct caller *c, struct str id, done_fn *fn,
                            void *arg);

/* --- executions --- */

/* A file to be there before the code runs: exactly one of the sources. */
struct file_input {
    struct str path;    /* in the workspace; empty: the file's own name */
    struct str file_id; /* of an uploaded file */
    struct str url;     /* http, https or data */
    struct str content; /* bytes, already decoded */
    bool has_content;
    int *fd;          /* a file of the host, at its beginning; taken: set to -1. Or NULL */
    bool is_folder;   /* no file but an empty folder, unless it is there */
    const char *hash; /* of an item of the tenant's with bytes, which stays; or NULL */
    uint64_t size;    /* of those bytes */
    bool is_ours;     /* the door has made it of what is asked about: a person is not shown it */
};

/* How a person is asked before the code runs, where the pool wants that. */
struct approval_ask {
    struct str tool;         /* "run_code": as rules and people know it */
    json_t *args;            /* borrowed: an object, what is asked about; NULL: the code alone.
                              * Files of the spec are added to it; variables of a client are in it */
    struct str code;         /* a view into args */
    struct str conversation; /* the door's own, or empty */
    struct str answers;      /* the approval that the client's user was asked about, or empty */
    bool implied;            /* the session was not named: another may stand in its place later */
    bool can_ask;            /* the client's user can be asked, by on_ask() */
    bool external;           /* a tool over MCP: its client may be anybody's program */
    bool reads;              /* it is code of ours that changes nothing: nobody is asked */
};

/* So many executions at a time, shared fairly among tenants; others wait. Part of a door. */
struct exec_lane {
    unsigned seats;
    size_t waiting_max; /* one more is ERR_BUSY */
    unsigned taken;     /* from here on the service's */
    size_t waiting_count;
    struct execution *seated, *waiting;
};

struct exec_spec {
    struct str session; /* empty, or gone: the one of this name, */
    struct str name;    /* made when it is not there; empty, too: a new session of this pool, put */
    struct str pool;    /* to sleep when the code has run. Pool empty: the first */
    enum exec_kind kind;
    struct str code;
    uint64_t wall_ms;          /* 0: the pool's limit, which is also the most */
    bool wall_is_asked;        /* the client chose wall_ms: it hears when it gets less */
    const struct env_var *env; /* for this execution only; never on record */
    size_t env_count;
    const struct file_input *files;
    size_t file_count;
    bool background;  /* goes on when nobody watches */
    bool tells;       /* the watcher tells its id before the end: it is on record by then */
    bool stays;       /* the new session is not put to sleep: more is to come */
    bool makes;       /* a session that is not there is made with the id that was given for it */
    uint64_t idle_ms; /* of a session made so; 0: the pool's, which is also the most */
    bool alone;       /* a command that waits for its turn as cells do */
    struct exec_lane *lane;
    struct approval_ask ask;
};

/* An execution in hand or on record. */
struct exec_info {
    const struct exec_row *row;
    json_t *events;            /* borrowed: array, what there is so far */
    json_t *outcome;           /* borrowed, or NULL while it runs */
    const struct outcome *how; /* or NULL: while it runs, or read from the store */
    size_t bytes;              /* of the events, about */
};

struct approval_info;

/* All but on_end may be absent. */
struct exec_watcher {
    /* It has an id, and a place in its session's queue. */
    void (*on_queued)(void *arg, const struct exec_info *info);
    /* EVENT_FILE comes after the file has been saved. */
    void (*on_event)(void *arg, const struct event *ev);
    /* Last. failed: nothing was executed. */
    void (*on_end)(void *arg, const struct exec_info *info, const struct err *failed);
    /* A person must agree first: the client's user (info->verdict APPROVAL_ASK), or an approver
     * (APPROVAL_WAIT). True: the execution waits for execution_answer(), an approver, or the
     * approval's last moment. False, or absent: it ends with ERR_DENIED, and the same call finds
     * the approval again. It may be left from inside. */
    bool (*on_ask)(void *arg, const struct approval_info *info);
    /* File i of the spec was fetched, or failed. True: the execution goes on, without the file if
     * it failed. False: the execution ends. Absent: a file that fails ends it. */
    bool (*on_input)(void *arg, size_t i, const char *mime, const struct err *failed);
};

/* An execution somebody waits for, from service_execute() to on_end or execution_leave(). */
struct execution;

struct execution *service_execute(struct service *sv, const struct caller *c,
                                  const struct exec_spec *spec, const struct exec_watcher *w,
                                  void *arg);
/* The watcher is gone and hears no more. A foreground execution is interrupted; one that has not
 * been queued yet never begins. */
void execution_leave(struct execution *j);
/* The same, and it goes on in the background. After on_queued. */
void execution_detach(struct execution *j);
/* hold: the watcher does not keep up, so the code waits with its output until a call with false. */
void execution_hold(struct execution *j, bool hold);
/* stopped: the execution waits for an answer from outside, and its time stands still until a call
 * with false. */
void execution_stop_clock(struct execution *j, bool stopped);

enum approval_answer { ANSWER_NONE, ANSWER_ONCE, ANSWER_LASTING, ANSWER_NO };
/* What the client's user has said, after on_ask. ANSWER_NONE: the user cannot be asked after all.
 */
void execution_answer(struct execution *j, enum approval_answer answer);
/* During on_end with ERR_DENIED: what became of the approval; NULL when none was in question. */
const struct approval_info *execution_approval(const struct execution *j);

typedef void exec_fn(void *arg, const struct exec_info *info, const struct err *failed);
typedef void execs_fn(void *arg, const struct exec_info *infos, size_t count, bool more,
                      const struct err *failed);

/* Also one that runs now: with what it has said so far. */
void service_exec_get(struct service *sv, const struct caller *c, struct str id, exec_fn *fn,
                      void *arg);
void service_exec_list(struct service *sv, const struct caller *c, const struct exec_filter *f,
                       struct page page, bool whole, execs_fn *fn, void *arg);
void service_exec_interrupt(struct service *sv, const struct caller *c, struct str id, exec_fn *fn,
                            void *arg);

/* --- approvals: a person agrees before code runs, where the pool wants it --- */

/*
 * service_execute() asks where the pool wants that, and runs nothing before the yes. An approval is
 * for exactly this call, once; or, where the policy is to ask first, for this tool in the same
 * session or conversation. It outlives the process, decided or not.
 */
#define APPROVAL_TEXT_MAX   (64 * KiB) /* to be read by a person: the code and its arguments */
#define APPROVAL_REASON_MAX 2048
#define APPROVALS_PENDING   100 /* of one tenant */

enum approval_verdict {
    APPROVAL_CLEAR, /* it may run */
    APPROVAL_ASK,   /* the client's user is to be asked */
    APPROVAL_WAIT,  /* for an approver: the same call finds it again */
    APPROVAL_NO,    /* declined or expired: row tells; without one nobody can be asked */
};

struct approval_scene;

struct approval_info {
    const struct approval_row *row; /* or NULL */
    enum approval_verdict verdict;
    char pool[64];                      /* APPROVAL_CLEAR: the pool it may run in */
    bool lasting;                       /* its policy lets an approval last */
    const struct approval_scene *scene; /* borrowed: what it was looked at in, or NULL */
};

typedef void approval_fn(void *arg, const struct approval_info *info, const struct err *failed);
typedef void approvals_fn(void *arg, const struct approval_row *rows, size_t count, bool more,
                          const struct err *failed);

const char *approval_state_name(int state); /* "pending", ... */
int approval_state_find(struct str name);   /* -1: there is none */

void service_approval_get(struct service *sv, const struct caller *c, struct str id,
                          approval_fn *fn, void *arg);
/* Newest first. state -1: any. */
void service_approval_list(struct service *sv, const struct caller *c, int state, struct page page,
                           approvals_fn *fn, void *arg);
/* An approver's word. ERR_DENIED for others, ERR_CONFLICT when it is not pending. */
void service_approval_decide(struct service *sv, const struct caller *c, struct str id,
                             bool approve, struct str reason, approval_fn *fn, void *arg);
/* Whether approval_when can be read. */
int approval_when_check(const char *text, struct err *e) MUST_CHECK;

/* Calls fn once, from the loop, when the execution has ended, or (talk) has printed something.
 * NULL: the execution is not under way. */
struct exec_watch;
struct exec_watch *service_exec_watch(struct service *sv, const struct caller *c, struct str id,
                                      bool talk, loop_fn *fn, void *arg);
void exec_watch_free(struct exec_watch *w); /* before or after fn */

/* --- files of a workspace --- */

struct space_file {
    struct str path;
    uint64_t size;
    const char *mime;
    int64_t mtime_ms;
    const char *hash;
};

typedef void space_fn(void *arg, const struct space_file *files, size_t count,
                      const struct err *failed);
/* fd: for reading, the callback's to take (set *fd to -1). */
typedef void open_fn(void *arg, int *fd, const struct space_file *file, const struct err *failed);
/* bytes: n of them and a NUL, the callback's to take (set *bytes to NULL). */
typedef void bytes_fn(void *arg, char **bytes, size_t n, const struct space_file *file,
                      const struct err *failed);

/* What the code left in an awake sandbox is saved first, so these three are up to date. */
void service_space_list(struct service *sv, const struct caller *c, struct str session,
                        space_fn *fn, void *arg);
void service_space_open(struct service *sv, const struct caller *c, struct str session,
                        struct str path, open_fn *fn, void *arg);
/* At most max bytes, the first of them at from. The whole has file->size. */
void service_space_read(struct service *sv, const struct caller *c, struct str session,
                        struct str path, uint64_t from, size_t max, bytes_fn *fn, void *arg);
/* Takes the blob in any case. In the store and, in an awake session, in the sandbox, or neither. */
void service_space_put(struct service *sv, const struct caller *c, struct str session,
                       struct str path, struct blob *bytes, space_fn *fn, void *arg);
/* The same with n bytes in memory, from malloc(), which are taken, too. */
void service_space_write(struct service *sv, const struct caller *c, struct str session,
                         struct str path, char *bytes, size_t n, space_fn *fn, void *arg);
/* The same for what running code waits for: also where a person agrees to what runs, and its files
 * are not changed meanwhile (ERR_CONFLICT for all others). */
void service_space_reply(struct service *sv, const struct caller *c, struct str session,
                         struct str path, char *bytes, size_t n, space_fn *fn, void *arg);
/* The same with the bytes of an uploaded file. */
void service_space_take(struct service *sv, const struct caller *c, struct str session,
                        struct str path, struct str file, space_fn *fn, void *arg);
/* The same with what a URL has. path empty: its own name. */
void service_space_fetch(struct service *sv, const struct caller *c, struct str session,
                         struct str path, struct str url, space_fn *fn, void *arg);
/* To another path, where it takes the place of what is there. */
void service_space_move(struct service *sv, const struct caller *c, struct str session,
                        struct str path, struct str to, space_fn *fn, void *arg);
void service_space_delete(struct service *sv, const struct caller *c, struct str session,
                          struct str path, done_fn *fn, void *arg);
/* The path as it is kept, in ret: relative, without "." and "//"; a leading /workspace/ or
 * /mnt/data/ is taken off. ERR_CALLER for "..", NUL, too long or too deep. */
#define SPACE_PATH_MAX 1024
int space_path_clean(struct str path, char ret[SPACE_PATH_MAX], struct err *e) MUST_CHECK;

/* --- the change feed, for doors that keep clients informed --- */

enum changed { CHANGED_SESSION, CHANGED_FILE, CHANGED_EXECUTION, CHANGED_APPROVAL };

struct service_change {
    enum changed kind;
    const char *tenant, *pool;
    const char *session; /* "": an approval that is for none */
    const char *id;      /* of the execution or approval; of the session otherwise */
    const char *state;   /* what that is now: "running", "ok", "pending"; NULL: a file */
    struct str path;     /* a file that was saved or deleted; p NULL: none */
    bool listed;         /* there is one more, or one less: a file or a session */
    bool over;           /* an execution that has ended */
};
typedef void change_fn(void *arg, const struct service_change *what);
struct change_watch;
/* fn is called from the loop, when the change is in the store. It may free its own watch and no
 * other. Until change_watch_free(), which comes before service_free(). */
struct change_watch *service_watch_changes(struct service *sv, change_fn *fn, void *arg);
void change_watch_free(struct change_watch *w); /* or NULL */

/* --- files --- */

typedef void file_fn(void *arg, const struct file_row *file, const struct err *failed);
typedef void files_fn(void *arg, const struct file_row *files, size_t count, bool more,
                      const struct err *failed);
typedef void file_open_fn(void *arg, int *fd, const struct file_row *file,
                          const struct err *failed);

/* Why there is no file, beside err.kind: in err.sys. */
#define FILE_EXPIRED  ESTALE /* ERR_MISSING: its time is over */
#define FILE_QUOTA    EDQUOT /* ERR_LIMIT: this tenant would hold more than tenant_bytes */
#define FILE_KNOWN_MS (INT64_C(7) * 86400 * 1000) /* so long it is known that one has expired */

struct file_spec {
    struct str name;
    struct str mime;     /* empty: by its name */
    uint64_t expires_ms; /* so long from now; 0: never */
    bool downloadable;   /* made by code, not brought by a client */
};

/* An upload on its way in: at most file_bytes. */
struct blob *service_blob_new(struct service *sv, const struct caller *c, struct err *e);
/* Takes the blob in any case. */
void service_file_create(struct service *sv, const struct caller *c, const struct file_spec *spec,
                         struct blob *bytes, file_fn *fn, void *arg);
void service_file_fetch(struct service *sv, const struct caller *c, struct str url, struct str name,
                        file_fn *fn, void *arg);
/* Of a file in a workspace, as it has been saved: it can be downloaded, whatever becomes of the
 * session. Its name is the last of the path. */
void service_file_of_space(struct service *sv, const struct caller *c, struct str session,
                           struct str path, file_fn *fn, void *arg);
void service_file_get(struct service *sv, const struct caller *c, struct str id, file_fn *fn,
                      void *arg);
void service_file_open(struct service *sv, const struct caller *c, struct str id, file_open_fn *fn,
                       void *arg);
void service_file_list(struct service *sv, const struct caller *c, struct page page, files_fn *fn,
                       void *arg);
/* Those of these ids that are there, newest first, each once. */
#define FILE_IDS_MAX 100
void service_file_pick(struct service *sv, const struct caller *c, const struct str *ids,
                       size_t count, files_fn *fn, void *arg);
void service_file_delete(struct service *sv, const struct caller *c, struct str id, done_fn *fn,
                         void *arg);

/* --- items: what a door keeps of its own, for the caller's tenant --- */

typedef void item_fn(void *arg, const struct item_row *item, const struct err *failed);
/* total: of all pages, where the filter asks to count them. */
typedef void items_fn(void *arg, const struct item_row *items, size_t count, uint64_t total,
                      const struct err *failed);
/* fd: for reading, the callback's to take (set *fd to -1). */
typedef void item_open_fn(void *arg, int *fd, const struct item_row *item,
                          const struct err *failed);

/* Whether the tenant may hold so many bytes more: ERR_LIMIT with FILE_QUOTA otherwise. For what
 * comes in many items; items with bytes of their own are held against it as they are put. */
void service_room(struct service *sv, const struct caller *c, uint64_t bytes, done_fn *fn,
                  void *arg);
/* Copies; tenant and times are filled in. Who owns it is the door's to check. */
void service_item_put(struct service *sv, const struct caller *c, const struct item_row *row,
                      done_fn *fn, void *arg);
/* ERR_LIMIT when it is new, and the tenant has max of its kind already. */
void service_item_put_up_to(struct service *sv, const struct caller *c, const struct item_row *row,
                            uint64_t max, done_fn *fn, void *arg);
/* All of them, or none. blobs[i]: the bytes of rows[i], or NULL; all are taken in any case. max: as
 * above, of the first one's kind. */
void service_items_put(struct service *sv, const struct caller *c, const struct item_row *rows,
                       struct blob **blobs, size_t count, uint64_t max, done_fn *fn, void *arg);
/* Deletes the item with all that belong to it, and all that belong to those. kinds, up to a NULL:
 * its own, that of its children, that of theirs; static. */
void service_items_delete(struct service *sv, const struct caller *c, const char *const *kinds,
                          struct str id, done_fn *fn, void *arg);
void service_item_get(struct service *sv, const struct caller *c, const char *kind, struct str id,
                      item_fn *fn, void *arg);
void service_item_open(struct service *sv, const struct caller *c, const char *kind, struct str id,
                       item_open_fn *fn, void *arg);
/* tenant of the filter: the caller's in any case. */
void service_item_list(struct service *sv, const struct caller *c, const struct item_filter *f,
                       items_fn *fn, void *arg);
void service_item_delete(struct service *sv, const struct caller *c, const char *kind,
                         struct str id, done_fn *fn, void *arg);
/* Of this kind and parent, oldest first, at most 10,000: what a door goes on with after a restart.
 * tenant NULL: every tenant's. */
void service_item_everybodys(struct service *sv, const char *tenant, const char *kind,
                             const char *parent, items_fn *fn, void *arg);

/* --- pools --- */

struct pool_info {
    const struct service_pool *pool;
    const char *python; /* "3.11.2", "" until it is known */
    json_t *packages;   /* borrowed: {"numpy": "1.24.2", ...}, or NULL until known */
    unsigned parked, live;
    const char *learned[LEARNED_MAX]; /* modules: borrowed, like packages */
    size_t learned_count;
    bool up;
    const char *why;  /* when it is not up */
    bool fixed;       /* of the settings: it cannot be changed here */
    json_t *document; /* borrowed: of the door that made the pool, or NULL */
    int64_t created_ms, updated_ms;
};
size_t service_pool_count(struct service *sv);
void service_pool_get(struct service *sv, size_t i, struct pool_info *ret);

/* --- pools that come, change and go; an admin's to do --- */

#define DEFAULT_ENVIRONMENT                                                                        \
    "default"             /* the Python of the first pool, unless another has the name */
#define POOL_NAME_MAX  32 /* of a-z, 0-9, '-', '_', '.' */
#define POOLS_MADE_MAX 256

size_t service_environment_count(struct service *sv);
const struct service_pool *service_environment_get(struct service *sv, size_t i);

/* 0 stands for what the first pool has, which also says what is not here. */
struct pool_spec {
    struct str name;
    struct str environment; /* empty: DEFAULT_ENVIRONMENT */
    uint64_t max_sessions, idle_ms, lifetime_ms, cpu_percent, memory_bytes, wall_ms;
    uint64_t ready;
    bool egress; /* to egress_hosts */
    struct str egress_hosts;
    const struct env_var *env; /* for all its sessions; never shown or logged */
    size_t env_count;
    const json_t *document; /* an object, kept with it; or NULL */
};

typedef void pool_fn(void *arg, const struct pool_info *info, const struct err *failed);
/* Whether service_pool_put() would take it now. Nothing is made. */
int service_pool_check(struct service *sv, const struct caller *c, const struct pool_spec *spec,
                       struct err *e) MUST_CHECK;
/* Makes it, or changes it: sessions that are there keep what they have until they end. It is kept
 * over a restart. ERR_CONFLICT: a pool of the settings has this name. */
void service_pool_put(struct service *sv, const struct caller *c, const struct pool_spec *spec,
                      pool_fn *fn, void *arg);
/* With all sessions of it, their files included. */
void service_pool_delete(struct service *sv, const struct caller *c, struct str name, done_fn *fn,
                         void *arg);

/* A key of the caller's tenant for one door, or a part of it, in one pool and nothing else. It can
 * be asked for again: it is made the first time. anew: the one before is revoked. ERR_CONFLICT
 * while there are no keys at all, as the first one would shut everybody else out. */
typedef void pool_key_fn(void *arg, const char *secret, const struct err *failed);
void service_pool_key(struct service *sv, const struct caller *c, struct str pool, const char *door,
                      bool anew, pool_key_fn *fn, void *arg);

/* --- keys (an admin's, or anybody's on loopback while there are none) --- */

typedef void key_fn(void *arg, const struct key_row *key, const char *secret,
                    const struct err *failed);
typedef void keys_fn(void *arg, const struct key_row *keys, size_t count, const struct err *failed);
/* Empty and 0: no limit. */
#define SCOPE_NAMES_MAX 32
struct key_limits {
    struct str pools, doors; /* comma-separated */
    bool read_only;
    uint64_t expires_ms; /* so long from now */
};
/* Puts the limits into a row of key_make(). */
int key_limit(struct key_row *row, const struct key_limits *l, struct err *e) MUST_CHECK;
struct key_spec {
    struct str tenant, name;
    bool admin, approver;
    struct key_limits limits;
};
void service_key_create(struct service *sv, const struct caller *c, const struct key_spec *spec,
                        key_fn *fn, void *arg);
void service_key_list(struct service *sv, const struct caller *c, keys_fn *fn, void *arg);
void service_key_revoke(struct service *sv, const struct caller *c, struct str id, done_fn *fn,
                        void *arg);

/* --- counted for /metrics --- */

#define LATENCY_BUCKETS 16
struct histogram {
    uint64_t bucket[LATENCY_BUCKETS + 1]; /* upper bounds: histogram_bound_us(i); the last: above */
    uint64_t count, sum_us;
};
uint64_t histogram_bound_us(size_t i);
void histogram_add(struct histogram *h, uint64_t us);

struct service_counts {
    uint64_t sessions[SESSION_ENDED + 1]; /* by state, now */
    uint64_t sessions_created, pool_hits, pool_misses, resumed;
    uint64_t executions[OUTCOME_SESSION_LOST + 1]; /* by outcome */
    uint64_t limits_hit[LIMIT__COUNT];
    uint64_t refused_busy, refused_auth;
    uint64_t sweeps;                      /* looks for what is kept for some time, and has been */
    uint64_t approvals[APPROVAL__STATES]; /* that came into this state */
    struct histogram create, cell;
};
const struct service_counts *service_counts(struct service *sv);
struct store_counts service_store_counts(struct service *sv);
