/*
 * Private to the room: the service has pools (struct pool_entry) and loaded sessions, a session has
 * jobs.
 */
#pragma once

#include "service/service.h"

#include "egress/egress.h"
#include "fetch/fetch.h"
#include "loop/loop.h"
#include "record/record.h"

#include <stdatomic.h>

#define JOBS_MAX         64   /* executions in one session, waiting and running */
#define INPUTS_MAX       1024 /* files given with one execution */
#define PAGE_MAX         1000
#define PAGE_BYTES       (512 * KiB) /* of metadata */
#define SPACE_FILES_MAX  20000       /* as many as are looked at in a sandbox */
#define SESSION_NAME_MAX 256
#define METADATA_MAX     (16 * KiB)
#define EVENTS_INLINE    (32 * KiB) /* longer ones are a blob */
#define BITE_US          2000       /* of the store's time, for a step that takes it bit by bit */
#define BITES_FREE       8          /* that a task has before it waits for the disk */
#define BITES_DUE_MS     5
#define BITES_MAX        1           /* such steps in the store's queue at a time */
#define READS_MAX        8           /* lists and whole records read at a time */
#define FRESH_MS         5           /* an execution this short is written once */
#define HELD_MAX         (256 * MiB) /* in memory for all executions: code, files, what they say */

#define OWNER(p, type, member) ((type *)((char *)(p)-offsetof(type, member)))

struct approval_spec;
struct pool_entry;
struct loaded;
struct execution;
struct task;
struct changes;

/* Checks a name, and copies it into the row. */
int session_name_take(struct session_row *row, struct str name, struct err *e) MUST_CHECK;
/* One of this name in memory, perhaps not in the store yet; or NULL. */
struct loaded *session_in_memory(struct service *sv, const char *tenant, const char *pool,
                                 const char *name);
/* A new session of this pool, with the pool's times. */
void session_row_fill(struct session_row *ret, const struct pool_entry *env, const char *tenant);
/* ERR_BUSY, counted. */
int forbid(struct service *sv, struct err *e, int retry_s, const char *text);
int closing_down(struct service *sv, struct err *e);

/* --- table: by a string that lives in the value --- */

struct table {
    struct link **at; /* owned */
    size_t cap, n;
};

void table_done(struct table *t); /* the values are the caller's */
void *table_get(const struct table *t, const char *key);
void table_put(struct table *t, const char *key, void *value);
void table_drop(struct table *t, const char *key);
/* Every value, in an array of t->n that is the caller's to free. */
void **table_all(const struct table *t);

/* --- task: steps one after the other, each where it may be done --- */

/*
 * One of the three. -1 ends the task. A step of the store that has much to do sets t->again when
 * bite_is_over(), and goes on in another transaction, after others have had theirs; the step
 * before it is one on the loop and looks anew, each time, whether it still may.
 */
struct step {
    int (*work)(struct task *t, struct err *e);                 /* on a worker */
    int (*store)(struct task *t, struct db *db, struct err *e); /* in a transaction */
    int (*loop)(struct task *t, struct err *e);                 /* here, and may change t->step */
};

typedef void task_fn(struct task *t, const struct err *failed);

/* Embedded in what it works on. */
struct task {
    struct service *sv;    /* borrowed */
    struct loaded *loaded; /* held: in whose queue, or NULL */
    struct whose whose;    /* of its work; the session's where it has one */
    bool is_read;          /* one of sv->reads */
    bool is_bite;          /* one of sv->bites */
    bool again;            /* set by a step of the store: this was not all */
    bool writes;           /* and neither was it all to be written */
    size_t bites;          /* so far */
    int64_t bite_us;       /* when its step of the store began */
    struct task *next, *bite_next;
    const struct step *step; /* the next one; an empty row is the end */
    task_fn *done;           /* last, from the loop; frees what it is embedded in */
    /* Whether this path in the workspace is its own doing and no change to tell. Or NULL. */
    bool (*brings)(const struct task *t, struct str path);
    struct err err;
};

/* Tasks of a session touch its workspace and its saved files: one at a time, in this order. A first
 * step on the loop may run at once. */
void task_start(struct task *t, struct service *sv, struct loaded *l, const struct step *steps,
                task_fn *done);
/* The same without a session, for what takes much memory until done has been called: READS_MAX at a
 * time, the others wait with nothing in their hands. */
void task_start_read(struct task *t, struct service *sv, const struct step *steps, task_fn *done);
bool bite_is_over(const struct task *t);
/* From sv->bites_due. */
void bites_look(void *arg);
/* In a step of the store that writes: this was not all. */
void task_write_on(struct task *t);
/* What a step returns that has read a list: 1 of it (store.h, struct progress) is another bite. */
int task_read_on(struct task *t, int rc);
/* A step that does nothing. */
int task_go_on(struct task *t, struct err *e);
/* A step for tasks of a session: its rows must not come back after they were deleted. */
int task_session_there(struct task *t, struct err *e);

/* --- the service --- */

/*
 * A pool and what is kept about it here. They are a list that only grows, as other threads look
 * for one by its name: a pool that was changed has a successor further on, and is gone itself, as
 * one that was deleted is. Its sessions keep it; with the last of them goes all but this husk.
 */
struct pool_entry {
    _Atomic(struct pool_entry *) next; /* owned */
    atomic_bool gone;                  /* not to be found */
    bool fixed;                        /* of the settings: it is changed there */
    struct service *sv;                /* borrowed */
    struct service_pool config;        /* its strings are owned; does not change */
    struct pool *pool;                 /* borrowed: the engine's; NULL: stopped */
    struct egress_policy *policy;      /* owned, or NULL */
    struct when *when;                 /* owned, or NULL: any call */
    json_t *packages;                  /* owned, or NULL */
    json_t *vars;                      /* owned, or NULL: variables of all its sessions */
    json_t *document;                  /* owned, or NULL: of the door that made it */
    struct timer *stop;                /* owned, or NULL */
    unsigned awake;                    /* sessions with a sandbox, or about to have one ... */
    unsigned away;                     /* ... and how many of these have it on another node */
    unsigned lent;                     /* sandboxes that sessions of other nodes have */
    unsigned held;                     /* sessions in memory */
    int64_t created_ms, updated_ms;
};

struct tenant {
    char name[sizeof(((struct caller *)0)->tenant)];
    unsigned refs;
    unsigned awake;    /* sessions */
    uint64_t held;     /* bytes in memory for its jobs */
    int64_t seated_us; /* when one of its executions last took a seat of a lane */
};

/* --- nodes.c --- */

/* Where a tenant lives, as far as this node knows. */
struct home {
    struct task task;
    struct service *sv; /* borrowed */
    char tenant[sizeof(((struct caller *)0)->tenant)];
    char node[ID_MAX];
    bool here;             /* on this node, and what was left of it is in order */
    bool finding, leaving; /* leaving: and does not move in */
    bool listed;           /* its node, among ours */
    struct node_row *rows; /* owned: read for that; else NULL */
    size_t count;
    int rc;
    unsigned tries;
    uint64_t asleep;         /* sessions */
    struct timer *again;     /* owned, or NULL */
    struct home_wait *waits; /* owned */
};

struct home_watch {
    struct home_watch *next;
    const char *kind, *parent; /* static, or NULL */
    home_fn *fn;
    void *arg;
};

struct nodes {
    struct table homes;    /* struct home by tenant */
    struct node_row *rows; /* owned: as last read */
    size_t count;
    uint64_t lease_ms;
    int64_t renewed_us;    /* on our clock */
    int64_t steady_us;     /* since then without a gap */
    atomic_bool is_oldest; /* of them */
    struct timer *beat;    /* owned */
    bool beating;
    struct home_watch *watches; /* owned */
    loop_fn *on_fenced;         /* or NULL */
    void *on_fenced_arg;
};

int nodes_start(struct service *sv, uint64_t lease_ms, struct err *e) MUST_CHECK;
void nodes_free(struct service *sv);
bool nodes_is_home(struct service *sv, const char *tenant);
/* Whether we remove what has expired of all tenants: one of the nodes does. */
bool nodes_sweeps(const struct service *sv);
/* Sessions are asleep, and what ran has ended. tenant NULL: of all. */
int service_put_in_order(struct db *db, const char *tenant, struct err *e) MUST_CHECK;

/* --- place.c: where the sandbox of a session is --- */

/* A JSON object: how many sandboxes each pool here may still have; owned by the caller. */
char *place_room(struct service *sv);
/* Whether another node has room for one of this pool, as last read. */
bool place_is_elsewhere(struct service *sv, const struct pool_entry *env);
/* Whether the pool is full without this one, so that it has to go elsewhere. */
bool place_is_full(const struct loaded *l);
/* Where place_is_elsewhere(): opens a sandbox on the node that has most room, else on the next.
 * on_open with neither a session nor an error: no node has any. */
void place_borrow(struct loaded *l, session_open_fn *on_open);
void place_leave(struct loaded *l); /* its sandbox is gone */
/* What both ends of a channel are to know. */
struct lend_config place_config(struct service *sv);

/* --- lend.c --- */

struct lending;
void lendings_recall(struct service *sv);
/* Asks for the one of this pool that has been idle for longest. False: none is. */
bool lendings_make_room(struct service *sv, const struct pool_entry *env);
void lendings_close(struct service *sv);

/* --- the service --- */

struct service {
    struct loop *loop;            /* borrowed */
    struct store *store;          /* borrowed */
    struct fetcher *fetcher;      /* owned */
    struct service_config config; /* its pools: see pools below */
    struct engine *engine;        /* borrowed */
    struct pool_entry *pools;     /* owned: the first is the default, and never goes */
    struct service_pool *makes;   /* owned: what pools can be made of */
    size_t make_count;
    struct table sessions; /* struct loaded by id: awake, or with something under way */
    struct table jobs;     /* struct execution by id */
    struct table tenants;  /* struct tenant by name: with sessions awake, or jobs */
    struct key_row *keys;  /* owned: as last read */
    size_t key_count;
    struct timer *sweep, *look; /* owned */
    struct timer *fresh_due;    /* owned */
    struct execution *fresh;    /* begun a moment ago, and not on record yet */
    uint64_t write_clock;       /* files that came from outside, of all sessions */
    bool sweeping, reading_keys;
    int64_t sought_us; /* unknown keys: the second that is counted, and how many were looked for */
    int keys_sought;
    int64_t swept_us; /* 0: there is more to sweep */
    bool draining, closing;
    loop_fn *on_empty; /* until called */
    void *on_empty_arg;
    size_t foreground; /* jobs somebody waits for */
    size_t job_count;  /* all of them, also those without a session yet */
    size_t pending;    /* tasks and sandboxes on their way */
    uint64_t held;     /* bytes in memory for all jobs */
    struct execution *throttled, **throttled_end; /* they wait, oldest first */
    size_t favoured;                              /* executions that need not */
    struct timer *relief;                         /* owned */
    size_t reads;                                 /* tasks that read much */
    struct task *reads_waiting, **reads_end;
    size_t bites; /* steps of the store that are not the first of their kind */
    struct task *bites_waiting, **bites_end;
    struct timer *bites_due;   /* owned: when those are looked at again that wait for the disk */
    struct err full;           /* why the store takes nothing, as last seen */
    struct late_records *late; /* owned, or NULL: nothing was ever late */
    bool unsaved;              /* a session has files that could not be saved */
    struct change_watch *change_watches;
    bool asks; /* some pool has a policy */
    struct approval_watch *watches;
    struct service_counts counts;
    struct nodes *nodes; /* owned; NULL: nobody shares the store */
    dial_fn *dial;       /* or NULL: no other node is reached */
    void *dial_arg;
    struct lending *lendings; /* owned: sandboxes of ours for others */
    size_t lending_count, borrowed;
};

void service_check_empty(struct service *sv); /* a foreground execution has gone */

/* change_feed.c */
void feed_session(const struct loaded *l, bool listed); /* listed: came, went or was renamed */
void feed_file(const struct loaded *l, struct str path, bool listed);
void feed_saved(const struct loaded *l, const struct changes *saved);
void feed_execution(const struct execution *j, bool over);
void feed_approval(struct service *sv, const struct approval_row *row);

/* pools.c */
int pool_entries_start(struct service *sv, const struct service_config *config,
                       struct err *e) MUST_CHECK;
void pool_entries_free(struct service *sv);
/* NULL when there is no such pool; empty: the first. From any thread. */
struct pool_entry *pool_entry_find(struct service *sv, struct str name);
/* One more, with copies of what p has. It takes the place of any of the same name. */
struct pool_entry *pool_entry_add(struct service *sv, const struct service_pool *p, struct err *e);
/* It is not found any more, and ends with its last session. */
void pool_entry_retire(struct pool_entry *env);
void pool_entry_hold(struct pool_entry *env); /* a session of it is in memory */
void pool_entry_drop(struct pool_entry *env);
/* Sandboxes on this node of all pools that have had this name. */
unsigned pool_entry_live(const struct pool_entry *env);
struct pool_info pool_entry_info(const struct pool_entry *env);
void service_pool_done(struct service_pool *p); /* frees its strings */

/* manage.c: those of the store, at start; takes the rows. What cannot be made again is told in the
 * log, and stays on record. */
void pools_restore(struct service *sv, struct pool_row *rows, size_t count);

/* --- quota.c --- */

/* Whether the tenant may hold so many bytes more. In the transaction that adds them, so that two at
 * a time cannot both have the last of it. -1: ERR_LIMIT with FILE_QUOTA. */
int quota_check(struct service *sv, struct db *db, const char *tenant, uint64_t bytes,
                struct err *e) MUST_CHECK;

/* --- approvals --- */

/* when.c: conditions on a call. NULL and *e when text cannot be read. */
struct when *when_new(const char *text, struct err *e);
struct when *when_hold(struct when *w); /* returns w; each holder frees it */
void when_free(struct when *w);
bool when_holds(const struct when *w, const struct approval_spec *spec); /* NULL: always */

/* A call as a client has made it. */
struct approval_spec {
    struct str tool;         /* "run_code" */
    struct str language;     /* "python" or "shell" */
    struct str code;         /* what is to run: a view into args */
    json_t *args;            /* borrowed: an object, all of them; not changed until fn */
    struct str session;      /* empty: a new one, ... */
    struct str name;         /* ... or the one of this name, if it is there, ... */
    bool implied;            /* it was not named: another may stand in its place later */
    struct str pool;         /* ... of this pool; empty: the first */
    struct str conversation; /* the door's own, or empty */
    struct str answers;      /* the approval its user has been asked about before, or empty */
    bool can_ask;            /* the client's user can be asked */
    bool external;           /* a tool of a protocol, of whoever wrote its client: MCP */
};

struct approval_watch {
    struct approval_watch *next, **link;
    char id[ID_MAX];
    bool told; /* in this round */
    loop_fn *fn;
    void *arg;
};

/* approval_scene.c: the session an approval is for, by its id or name, and what it has already */
struct approval_scene {
    char session[SESSION_NAME_MAX], pool[64];
    uint8_t hash[32]; /* of its variables and files; of none where there is no such session */
};
/* Fills in the hash; ret_shown, or NULL: an object of what people should see, owned by the caller.
 */
#define SCENE_CHANGED                                                                              \
    "nothing has run: the files or variables of the session have changed since a person was "      \
    "asked; "                                                                                      \
    "send the request again to have it asked anew"
int scene_read(struct db *db, const char *tenant, struct approval_scene *s, json_t **ret_shown,
               struct err *e) MUST_CHECK;

/* approvals.c */
/* ERR_CONFLICT: what it answers is no approval of this call, or was used. ERR_BUSY: as many are
 * pending as may be. */
void approval_request(struct service *sv, const struct caller *c, const struct approval_spec *spec,
                      approval_fn *fn, void *arg);
/* What the client's user has answered, or what has come of it meanwhile. The verdict is CLEAR once,
 * and NO once; WAIT while nobody has decided. ERR_CONFLICT: it is a yes, and the scene is another.
 */
void approval_settle(struct service *sv, const struct caller *c, struct str id,
                     enum approval_answer answer, const struct approval_scene *scene,
                     approval_fn *fn, void *arg);
/* fn whenever an approver has decided it, until unwatched. */
struct approval_watch *approval_watch_new(struct service *sv, const char *id, loop_fn *fn,
                                          void *arg);
void approval_unwatch(struct approval_watch *w); /* NULL is none */
/* What an approval stands for: SHA-256 of the tool, the session if it was named, the scene, the
 * pool and all arguments, however they were written. */
void approval_digest(const struct approval_spec *spec, const char *pool, const uint8_t scene[32],
                     uint8_t ret[32]);
/* By which execution it was used, and in which session it lasts. */
void approval_note_use(struct execution *j);

/* files.c: one that is there now; 0, else -1 and ERR_MISSING. pools: of the caller's key. */
int file_find(struct db *db, const char *tenant, const char *pools, const char *id,
              struct file_row *ret, struct err *e) MUST_CHECK;
/* scope.c: the limits of a caller's key. */
char *scope_pools_copy(const struct service *sv, const struct caller *c); /* owned, or NULL */
bool pools_have(const char *pools, const char *pool);                     /* pools NULL: any */
/* ERR_DENIED for a key that only reads. */
int scope_writes(const struct service *sv, const struct caller *c, struct err *e) MUST_CHECK;
/* The pool that the caller means, which its key opens. Empty: the first, or the key's first. NULL
 * with *e. */
struct pool_entry *scope_pool_entry(struct service *sv, const struct caller *c, struct str pool,
                                    struct err *e);

/* keys.c */
void keys_take(struct service *sv, struct key_row *keys, size_t count);
void keys_free(struct key_row *keys, size_t count);

/* --- changes: what happened in a workspace and is to be saved and told --- */

struct change {
    bool is_note; /* path is a sentence */
    enum file_change change;
    char *path; /* owned */
    uint64_t size;
    const char *mime; /* static */
    bool too_large, unlisted;
    bool saved; /* with the next three */
    char hash[HASH_HEX];
    uint32_t mode;
    int64_t mtime_ms;
    char *problem; /* owned, or NULL: why it was not saved */
};

struct changes {
    struct change *at; /* owned */
    size_t n, cap;
    size_t written; /* by changes_write() so far */
    size_t old;     /* those from before the last look, sorted: a path may come again */
};

void changes_done(struct changes *c);
void changes_put(struct changes *c, const struct event *ev);
/* All of it is from before the next look. */
void changes_seal(struct changes *c);
struct changes changes_copy(const struct changes *c);
/* What could not be saved is to be saved again, below what has been seen since. Empties from. */
void changes_return(struct changes *to, struct changes *from);
bool changes_has_files(const struct changes *c);
/* Reads each file of the workspace into a blob. On a worker. */
int changes_save(struct changes *c, struct store *st, const struct space *sp,
                 const struct limits *limits, struct err *e) MUST_CHECK;
/* A step of the store: sets t->again when some are left. */
int changes_write(struct changes *c, struct task *t, struct db *db, const char *session,
                  struct err *e) MUST_CHECK;
/* The event a change is told by; and, when true, the one that follows it. */
struct event change_event(const struct change *c);
bool change_problem(const struct change *c, struct event *ret);

/* --- loaded.c: sessions in memory --- */

enum sleep_why { SLEEP_IDLE, SLEEP_CROWDED, SLEEP_LIFETIME, SLEEP_ONCE, SLEEP_LOST, SLEEP_CLOSING };

struct loaded {
    struct service *sv;     /* borrowed */
    struct pool_entry *env; /* borrowed */
    struct whose whose;
    struct session_row row; /* row.state is what a reader of the database should see */
    json_t *vars;           /* owned, or NULL: environment variables of every execution */
    enum session_state state;
    unsigned refs;
    struct session *session; /* owned: while awake */
    struct egress *egress;   /* owned, or NULL */
    bool gone;               /* the sandbox has ended by itself */
    char lender[ID_MAX];     /* the node that has it, or is asked for it; "": it is here */
    bool sleeping;           /* about to sleep: nothing new is started */
    enum sleep_why why;
    bool is_new;            /* has never been up */
    bool once;              /* sleeps after its execution */
    bool kept;              /* its row is in the store */
    char *note;             /* owned, or NULL: to be told by the next execution */
    struct execution *jobs; /* in order; each holds this session */
    size_t job_count;
    uint64_t written_at;    /* by write_clock: the last time that a file came from outside */
    struct task *tasks;     /* in order: the first is under way */
    bool at_work;           /* one is, or has just ended */
    struct changes changes; /* seen while something ran, for its end to tell */
    bool unsaved;           /* some of them could not be saved: space_save_late() */
    struct waiter *waiters; /* owned: for its creation */
    struct timer *clock;    /* owned: idle and lifetime */
    int64_t used_us, woke_us;
    uint64_t memory_bytes; /* of its sandbox, the most so far; 0: unknown */
};

/* What is lost when the sandbox is: a sentence for the client. */
const char *lost_note(enum session_lost lost);

/* Made when it is not there; gone when nobody holds it. */
struct tenant *tenant_hold(struct service *sv, const char *name);
void tenant_drop(struct service *sv, struct tenant *t);

void loaded_hold(struct loaded *l);
void loaded_drop(struct loaded *l);
/* Moves between states: the only place where awake sessions are counted. */
void loaded_go(struct loaded *l, enum session_state to);
/* Into memory, held; takes the row. */
struct loaded *loaded_enter(struct service *sv, struct pool_entry *env, struct session_row *row,
                            enum session_state state);
/* Writes the row as it is now. is_new: callers that wait for the session are answered then. */
void loaded_keep(struct loaded *l, bool is_new);
/* The same for a new one, which is kept at once where the store's log takes it. */
void loaded_keep_new(struct loaded *l);
/* The same where nobody is told of it, and a crash before it costs nothing. */
void loaded_keep_soon(struct loaded *l);
void loaded_answer(struct loaded *l, const struct err *failed); /* its waiters */
void loaded_answer_if_there(struct loaded *l);
/* The caller's session where it is in memory, else NULL. */
struct loaded *loaded_get(struct service *sv, const struct caller *c, struct str id);
/* Of a row from the store, which is taken; asleep, unless it is in memory already. NULL when its
 * pool is no more. Held. */
struct loaded *loaded_adopt(struct service *sv, struct session_row *row);
typedef void loaded_fn(void *arg, struct loaded *l, const struct err *failed);
/* Answers from the loop; ERR_MISSING. */
void loaded_find(struct service *sv, const struct caller *c, struct str id, loaded_fn *fn,
                 void *arg);
bool loaded_is_awake(const struct loaded *l); /* has a sandbox that can be used */
/* Room in the pool and for the tenant? Where there is none, the session that has been idle for the
 * longest time is put to sleep. ERR_BUSY: none is idle. */
int loaded_room(struct service *sv, const struct pool_entry *env, const char *tenant,
                struct err *e) MUST_CHECK;
/* The second half of it, for one that is counted already. */
int loaded_make_room(struct loaded *l, struct err *e) MUST_CHECK;
/* A new session: takes the row, opens a sandbox and writes the row at once. */
struct loaded *loaded_begin(struct service *sv, struct pool_entry *env, struct session_row *row);
/* The same without a sandbox: the first execution opens one. */
struct loaded *loaded_begin_asleep(struct service *sv, struct pool_entry *env,
                                   struct session_row *row);
void loaded_wait(struct loaded *l, session_fn *fn, void *arg, bool existed);
void loaded_wake(struct loaded *l);
void loaded_sleep(struct loaded *l, enum sleep_why why);
/* Closed and deleted; done (may be NULL) when the rows are gone. */
void loaded_end(struct loaded *l, done_fn *done, void *arg);
void loaded_used(struct loaded *l);  /* something was asked of it: the clocks start anew */
void loaded_rests(struct loaded *l); /* a job has gone */
struct session_info loaded_info(struct loaded *l);
const char *session_note(const struct session_row *row);
bool session_state_can(enum session_state from, enum session_state to);
/* sleep.c */
int64_t loaded_sleeps_us(const struct loaded *l);
bool loaded_is_old(const struct loaded *l); /* its interpreter has lived its lifetime */
void loaded_on_clock(void *arg);
void loaded_fail_start(struct loaded *l, const struct err *why);

/* workspace_sync.c */
/* Looks for changes, saves them, then fn from the loop. Jobs that run still tell them at their end.
 */
void space_sync(struct loaded *l, done_fn *fn, void *arg);
/* On a clock: the files of awake sessions that could not be saved, if the store takes them now. */
void space_save_late(struct service *sv);
/* A step of the store: adds the rows after those that are there, and sets t->again when there are
 * more. */
int space_rows_read(struct task *t, struct db *db, const char *session, struct space_row **rows,
                    size_t *count, struct err *e) MUST_CHECK;
/* Puts the saved files into a fresh sandbox. */
void space_restore(struct loaded *l, done_fn *fn, void *arg);
/* For space_sync() and executions: a file has changed, or a note about files. */
void space_change(struct loaded *l, const struct event *ev);
/* These could not be saved: they come with what is saved next. Empties it, or leaves it alone. */
void space_return(struct loaded *l, struct changes *unsaved);
/* A step's: the workspace for other threads; closed by the caller. */
int space_take(struct loaded *l, struct space *ret, struct err *e) MUST_CHECK;
/* What a failed put means for the caller. */
int space_blame(struct err *e, const char *path);

/* home.c */
/* Saves what else the session keeps; then fn from the loop, with l->row.home set. */
void home_save(struct loaded *l, done_fn *fn, void *arg);
/* Part of a worker's step: makes it again in a fresh sandbox. ret_missing: how much of it could not
 * be. ERR_AWAY: later it can. */
int home_put_back(struct task *t, const struct space roots[HOME_ROOTS], size_t *ret_missing,
                  struct err *e) MUST_CHECK;

/* --- job: one execution in hand, from its call until its record is written --- */

/* Inside the service an execution in hand is a job, as the names of its functions say. */
enum job_state {
    JOB_ASKING,   /* whether a person must agree */
    JOB_ASKED,    /* its watcher waits for the person */
    JOB_FETCHING, /* files, before it takes a seat of its lane */
    JOB_SEATING,  /* for a seat of its lane */
    JOB_FINDING,  /* its session */
    JOB_REFUSED,  /* its watcher is about to hear so */
    JOB_WAITING,  /* for its turn, its session to wake, its files to come */
    JOB_PLACING,  /* its files */
    JOB_STARTED,
    JOB_DROPPED, /* given up, but files are still on their way */
    JOB_ENDING,  /* being saved and recorded */
};

/* An approval that an execution waits for. */
struct approve {
    char id[ID_MAX];
    struct approval_watch *watch;     /* owned, or NULL */
    struct timer *late;               /* owned, or NULL */
    const struct approval_info *info; /* borrowed during on_end */
    enum approval_answer answer;
    bool answered, under_way, again;
    struct approval_scene scene; /* as it was shown */
    uint64_t write_clock;        /* of the service, when the scene was last looked at */
    bool bound;                  /* it may begin in that scene alone */
};

struct exec_input {
    struct execution *job;         /* borrowed */
    char *path;                    /* owned: as it is kept, or NULL until known */
    char *file_id, *url, *content; /* owned: one of them, unless it is a folder or has an fd */
    int fd;                        /* owned, or -1 */
    size_t content_n;
    bool is_folder, is_ours;
    bool is_absent;    /* could not be fetched, and the watcher goes on without */
    struct blob *blob; /* owned: being fetched */
    struct fetch *fetch;
    char hash[HASH_HEX]; /* "" until it is a blob of ours */
    uint64_t size;
    int64_t mtime_ms;
};

/* journal.c: what it has said and nobody has heard yet, on its way into the store. */
struct journal {
    bool on;
    bool writing;                         /* a group is being written */
    bool end_waits;                       /* for that: then job_record_end() */
    bool full;                            /* the next group is long: the code waits */
    size_t bytes;                         /* of the next group */
    int64_t number;                       /* of the group */
    struct heard *waiting, **waiting_end; /* owned: the next group */
    struct heard *group;                  /* owned: told when it is written */
    char *text;                           /* owned, or NULL: the group as JSON */
    struct transcript transcript;         /* makes the JSON */
    struct task task;
};

struct execution {
    struct execution *next;                     /* in its session */
    struct exec_watch *watches;                 /* who waits for it to say something */
    struct execution *fresh_next, **fresh_link; /* of sv->fresh; link NULL when it is not there */
    struct service *sv;                         /* borrowed */
    struct tenant *tenant;                      /* held */
    struct loaded *loaded;                      /* held, NULL while JOB_FINDING */
    struct task begun, ended, lookup, place;
    enum job_state state;
    enum exec_kind kind;
    struct caller caller;
    char *pools; /* owned, or NULL: of the caller's key */
    struct wanted {
        char *session, *name, *pool; /* owned, "" for none */
        bool stays, makes;
        uint64_t idle_ms;
    } wanted;
    struct approve approve;
    char cleared[64];       /* the pool it may run in, once a person has agreed; else "" */
    bool external, reads;   /* as in struct approval_ask */
    struct exec_lane *lane; /* borrowed, or NULL */
    struct execution *lane_next, **lane_link; /* link NULL: neither seated nor waiting */
    bool alone, counted;                      /* counted: in sv->foreground */
    uint64_t wall_ms;
    bool wall_is_asked;
    json_t *vars; /* owned: of this execution */
    struct exec_input *inputs;
    size_t input_count, inputs_left;
    bool gathered;      /* its files have come, or are on their way */
    struct space space; /* while placing or saving */
    bool background, watched, held;
    bool recorded_first;                    /* it is on record before it is told of and begins */
    bool stopped;                           /* its clock stands still */
    bool told_queued, begun_over, recorded; /* what must be over before it can go */
    bool placed;                            /* its files are there */
    bool dropped;                           /* to be given up as soon as it can be */
    enum session_lost note;                 /* to be told */
    bool tells_lost;                        /* its outcome says so, too */
    bool ran;                               /* the engine has had it */
    bool cut;                               /* what it says from now on is not on record */
    uint64_t held_bytes;                    /* of sv->held */
    bool throttled, favoured;
    struct execution *throttle_next, **throttle_link; /* of sv->throttled */
    struct err failed;
    struct exec_watcher watcher;
    void *arg;
    struct exec *exec;
    struct exec_row row, first; /* first: as written at its beginning; strings borrowed */
    struct exec_row shown;      /* the same, for who asks while it runs */
    struct session_row session; /* as written with its end; strings borrowed */
    bool orphan;                /* its session was deleted */
    bool written_soon;          /* see record_soon() */
    bool late;                  /* the disk failed just then: its end goes on record later */
    struct transcript transcript;
    struct journal journal;
    struct outcome outcome;
    json_t *outcome_json; /* owned, once it has ended */
    struct changes changes;
    struct err unsaved; /* why they could not be saved */
    int64_t begun_us;
};

/* begin.c */
bool job_is_cleared_for(const struct execution *j, const struct pool_entry *env);
void job_cleared(struct execution *j); /* nobody need be asked any more */
void job_refuse(struct execution *j, const struct err *why);
bool job_leave_early(struct execution *j) MUST_CHECK; /* true: it is not in a queue yet */
void job_fetched(struct execution *j); /* in JOB_FETCHING: its files are there, or failed */
void lane_leave(struct execution *j);  /* gives its seat to the next */
/* approve.c */
void job_ask(struct execution *j, const struct exec_spec *spec);
void approve_done(struct approve *a);
void approvals_close(struct service *sv);
/* execute.c */
struct execution *job_new(struct service *sv, const struct caller *c, const struct exec_spec *spec,
                          const struct exec_watcher *w, void *arg);
void job_queue(struct execution *j, struct loaded *l);
loop_fn on_fresh_due;                                      /* arg: the service */
bool job_is_fresh(struct execution *j);                    /* and is not any more */
void job_put_on_record(struct execution *j);               /* if it is: somebody looks at it */
void job_wake(struct execution *j, bool over);             /* watch.c: it has said something */
void job_pump(struct loaded *l);                           /* starts what can be started */
void job_fail(struct execution *j, const struct err *why); /* nothing was executed */
void job_interrupt(struct execution *j);                   /* wherever it is */
void jobs_fail(struct loaded *l, const struct err *why);   /* all that have not begun */
void job_free(struct execution *j);
void job_hold(struct execution *j); /* for a slow reader, or for want of room; or neither */
/* throttle.c */
loop_fn on_relief;                        /* arg: the service */
void job_throttle(struct execution *j);   /* it has said more */
void job_unthrottle(struct execution *j); /* it is about to go */
void throttle_look(struct service *sv);   /* something has become free */
bool job_takes_output(struct execution *j, uint64_t n) MUST_CHECK;
/* Counts n more bytes for it. False when the service holds too much: then they are not counted. */
bool job_takes(struct execution *j, uint64_t n) MUST_CHECK;
const char *job_status(const struct execution *j);
/* record_soon.c */
/* Whether its end, which is known, is where it outlives this process. */
bool record_soon(struct execution *j);
/* late_records.c */
void late_records_add(struct service *sv, struct exec_row *row); /* takes what row holds */
/* A new session; forgotten once it is to be deleted. */
void late_session_add(struct service *sv, const struct session_row *row);
void late_session_forget(struct service *sv, const char *id);
void late_records_write(struct service *sv); /* if the store accepts them now */
void late_records_free(struct service *sv);

/* exec_end.c */
void job_end(struct execution *j);
void job_settle(struct execution *j);     /* another thing about it is over: perhaps it has gone */
void job_record_end(struct execution *j); /* nothing that it has said is on its way any more */
/* Into its record, unless kept is false, and to its watcher. */
void job_put_event(struct execution *j, const struct event *ev, bool kept);
/* journal.c */
void journal_begin(struct execution *j); /* from now on it tells what is in the store alone */
void journal_event(struct execution *j, const struct event *ev, bool kept);
bool journal_ends_later(struct execution *j) MUST_CHECK; /* true: it calls job_record_end() */
void journal_done(struct journal *n);
/* records.c: as it is now, with events that are the caller's to drop */
struct exec_info job_info(struct execution *j);
/* inputs.c */
int inputs_copy(struct execution *j, const struct exec_spec *spec, struct err *e) MUST_CHECK;
/* The files that come with the code, as a person reads them; owned. */
json_t *inputs_show(const struct execution *j);
void inputs_gather(struct execution *j);
void inputs_place(struct execution *j, task_fn *done);
void inputs_cancel(struct execution *j);
void inputs_free(struct execution *j);
void job_inputs_there(struct execution *j); /* execute.c: all have come, or one has failed */

/* --- environment variables: vars.c --- */

/* An object of strings, NULL for none. */
int vars_from(const struct env_var *env, size_t count, json_t **ret, struct err *e) MUST_CHECK;
/* Adds those that lead clients inside to the proxy of their sandbox; what is there wins. */
void vars_add_proxy(json_t *vars);
