/*
 * engine: sessions, warm pools, limits, outcomes: the rules.
 *
 * Touches: the warden, guests through wire, workspaces through their dirfd, the
 * loop. Never touches: clients, SQL, terminals, wire formats of any door.
 *
 * engine_new() starts the warden; pool_start() an environment; session_open()
 * gives a sealed interpreter; exec_start() runs one cell or command in it and
 * tells what happens through the callbacks, in order, ending with exactly one
 * on_outcome. All callbacks come from the loop, never from inside the call.
 */
#pragma once

#include "base/base.h"

struct far_files;
struct loop;
struct engine;
struct pool;
struct session;
struct whose;
struct exec;
struct server_user;

/* --- limits: one row each in limits.c (name, unit, default, range, text) --- */

struct limits {
    uint64_t wall_ms;
    uint64_t cpu_ms;       /* CPU time one execution may use; 0: no limit */
    uint64_t cpu_percent;  /* 100: one core */
    uint64_t memory_bytes; /* per session, workspace and tmp included */
    uint64_t pids;
    uint64_t disk_bytes; /* of /workspace */
    uint64_t tmp_bytes;  /* of /tmp and /dev/shm, each */
    uint64_t open_files;
    uint64_t output_bytes;   /* kept per execution: head and tail */
    uint64_t artifact_count; /* reported per execution */
    uint64_t artifact_bytes; /* of one file */
    uint64_t grace_ms;       /* between the interrupt and the kill */
};

enum limit {
    LIMIT_NONE,
    LIMIT_WALL,
    LIMIT_CPU,
    LIMIT_MEMORY,
    LIMIT_PIDS,
    LIMIT_DISK,
    LIMIT_TMP,
    LIMIT_OPEN_FILES,
    LIMIT_OUTPUT,
    LIMIT_ARTIFACT_COUNT,
    LIMIT_ARTIFACT_SIZE,
    LIMIT__COUNT,
};

void limits_default(struct limits *ret);
const char *
limit_name(enum limit l); /* "wall_time", "cpu_time", "memory", "processes", "disk", "tmp",
                             "open_files", "output", "artifact_count", "artifact_size" */

/* --- events: what an execution says, in the order it happened --- */

enum event_kind {
    EVENT_STDOUT,  /* text */
    EVENT_STDERR,  /* text */
    EVENT_DISPLAY, /* bundle */
    EVENT_RESULT,  /* bundle: the value of the last expression */
    EVENT_CLEAR,   /* the output so far may be cleared */
    EVENT_ERROR,   /* error */
    EVENT_FILE,    /* file */
    EVENT_STATUS,  /* text: a plain note, such as output left out */
};
const char *event_kind_name(enum event_kind k); /* "stdout", "stderr", "display", ... */

struct mime_part {
    struct str mime; /* "image/png" */
    struct str data; /* raw bytes: not base64 */
};

struct frame {
    struct str file; /* "<cell 3>" or a path under /workspace */
    uint64_t line;
    struct str function; /* "<module>" at the top of a cell */
    struct str text;     /* the source line, without indentation */
};

enum file_change { FILE_CREATED, FILE_CHANGED, FILE_DELETED };
const char *file_change_name(enum file_change c); /* "created", "changed", "deleted" */

#define EVENT_PARTS_MAX  32
#define EVENT_FRAMES_MAX 64

/* Everything is borrowed and valid during the callback only. */
struct event {
    enum event_kind kind;
    bool late; /* printed after an earlier execution had ended */
    struct str text;
    struct {
        size_t count;
        struct mime_part part[EVENT_PARTS_MAX];
        struct str display_id;
        struct str metadata; /* a JSON object, if the guest is honest; mostly empty */
        bool update;         /* replaces the display with the same id */
    } bundle;
    struct {
        struct str type, message, traceback;
        size_t count;
        struct frame frame[EVENT_FRAMES_MAX];
    } error;
    struct {
        enum file_change change;
        struct str path; /* relative to /workspace; any bytes but NUL: escape before showing */
        uint64_t size;
        const char *mime;
        bool too_large; /* past artifact_bytes: reported, not handed out */
        bool unlisted;  /* past artifact_count: saved, but not shown to the client */
    } file;
};

/* --- outcome: how an execution ended; never an error --- */

enum outcome_status {
    OUTCOME_OK,
    OUTCOME_RAISED,      /* the code raised, or the command's exit status is not 0 */
    OUTCOME_TIMEOUT,     /* wall or cpu time */
    OUTCOME_MEMORY,      /* killed for memory */
    OUTCOME_INTERRUPTED, /* by exec_interrupt() */
    OUTCOME_DIED,        /* the interpreter or the command ended by itself or by a signal */
    OUTCOME_SESSION_LOST /* the sandbox is gone: nothing of it is left but its files */
};
const char *outcome_status_name(enum outcome_status s); /* "ok", "raised", "timeout", "memory",
                                                           "interrupted", "died", "session_lost" */

struct outcome {
    enum outcome_status status;
    uint32_t limits_hit; /* bit set of IN(enum limit) */
    bool state_lost;     /* the interpreter was replaced: variables are gone, files are kept */
    bool untaken;        /* OUTCOME_SESSION_LOST, and nobody had taken it: it has not run */
    int exit_code;       /* of a command; 128+signal when a signal ended it */
    char line[256];      /* one plain sentence; empty when there is nothing to add to "ok" */
    size_t state_at;     /* in line: what it says of variables and files; 0: nothing */
    uint64_t wall_us;
    bool has_cpu, has_memory;   /* the next two are known: a cgroup counts them */
    uint64_t cpu_us;            /* of the sandbox during the execution */
    uint64_t memory_peak_bytes; /* of the sandbox since it began */
    uint64_t output_bytes;      /* printed */
    uint64_t output_dropped;    /* of these, not kept */
};

/* --- the calls --- */

/* What a pool can be made of. */
struct engine_environment {
    const char *python;  /* NULL: python3 from PATH */
    const char *preload; /* comma-separated modules to import in the zygote; NULL or "": none */
};

/* A folder of the host that every sandbox sees. */
struct engine_folder {
    const char *path;  /* of the host */
    const char *where; /* in the sandbox */
    bool writable;
};
#define FOLDERS_MAX 8

struct engine_config {
    const char *guest_dir;               /* holds retort_guest/ */
    const struct engine_folder *folders; /* borrowed until engine_free() */
    size_t folder_count;                 /* at most FOLDERS_MAX */
    const char *cache_dir;               /* NULL: the user's or the system's */
    uint64_t held_max; /* bytes of output held here for all guests; 0: HELD_DEFAULT */
    const struct engine_environment *environments; /* borrowed for the call */
    size_t environment_count;
    const struct server_user *ask_as; /* who runs the interpreters that are asked; NULL: we do */
    bool one_user;                    /* an ordinary user's subordinate ids are not used */
};
#define HELD_DEFAULT (256 * MiB)

/* Asks the interpreter of every environment what it needs, and forks the warden, which knows these
 * environments from then on and no others: call before any thread exists and before privilege is
 * dropped. NULL and *e on failure; an interpreter that does not answer fails the pools of it. */
struct engine *engine_new(struct loop *l, const struct engine_config *config, struct err *e);
void engine_free(
    struct engine *en); /* ends every session and the warden; returns when they are gone */

/* Why all sandboxes and this process are the same user to the kernel; NULL: each sandbox is a user
 * of its own. */
const char *engine_shared_user(const struct engine *en);

/* fn once, from the loop, when the warden has died: no sandbox is left, and none can be made. */
void engine_on_lost(struct engine *en, void (*fn)(void *arg), void *arg);

/* Whether pools can be made of it. */
int engine_check_environment(const struct engine *en, const struct engine_environment *env,
                             struct err *e) MUST_CHECK;

struct pool_config {
    const char *name;
    struct engine_environment environment; /* one of those that the engine was made with */
    struct limits limits;
    unsigned ready;      /* sandboxes kept parked, */
    unsigned ready_max;  /* and after a rush */
    uint64_t recycle_ms; /* age at which the zygote is replaced; 0: never */
    uint64_t learn_ms;   /* the least time until one that has what sessions import; 0: never */
    bool proxy;          /* sandboxes have a listener for a proxy: session_take_listener() */
};

typedef void pool_ready_fn(void *arg, const struct err *failed); /* failed NULL: it is up */

/* on_ready is called once, when the first zygote can fork or has failed. */
struct pool *pool_start(struct engine *en, const struct pool_config *config,
                        pool_ready_fn *on_ready, void *arg);
/* Nothing is kept parked any more; sessions are still opened, each with a fork of its own. */
void pool_retire(struct pool *p);
/* Frees the pool and ends its zygote. No session of the pool may be open or being opened, and the
 * loop must have turned since the last one was closed. */
void pool_stop(struct pool *p);
/* Modules that its interpreter has because sessions have imported them. Returns how many; borrowed
 * until the loop turns. */
#define LEARNED_MAX 32
size_t pool_learned(const struct pool *p, const char *ret[LEARNED_MAX]);
unsigned pool_parked(const struct pool *p);
const char *pool_python_version(const struct pool *p); /* "" when it could not be asked */
/* Whether the pool can fork now; if not, *ret_why says why. Each call also asks the warden and the
 * zygote for a sign of life, so a caller that calls regularly knows within seconds. */
bool pool_is_up(struct pool *p, const char **ret_why);
/* Its Python could not be made ready, and will not be: a package is missing, a module of preload
 * cannot be imported. pool_is_up() has the sentence. */
bool pool_is_refused(const struct pool *p);

typedef void session_open_fn(void *arg, struct session *s, const struct err *failed);

/* Takes a parked sandbox or forks one; the answer comes by on_open (from the loop), with a session
 * that takes cells. The session is the caller's until session_close(). */
void session_open(struct pool *p, session_open_fn *on_open, void *arg);
/* Ends everything in it at once. Running executions get OUTCOME_SESSION_LOST first. */
void session_close(struct session *s);
/* Told once, from the loop, when the sandbox has ended by itself, after the outcomes of what ran in
 * it. Not told after session_close(). */
void session_on_lost(struct session *s, void (*fn)(void *arg, const char *why), void *arg);
/* Whose turn it takes to look through its files. */
void session_works_for(struct session *s, struct whose whose);
/* Ends the interpreter; the next execution has a new one, and the same files. What runs, dies. */
void session_restart(struct session *s);
/* The listener of a sandbox whose pool has a proxy: the caller's to close. -1: taken, or none. */
int session_take_listener(struct session *s);

/* --- a sandbox on another node: the home of a session borrows what the other lends --- */

/* Bytes to another process of ours and from it, in order. Whoever makes a line fills in ops,
 * whoever uses it the rest; it is the user's to close. */
struct channel {
    const struct channel_ops *ops;
    const struct channel_user *user;
    void *arg;
};
struct channel_ops {
    /* Copies. False: that is enough for now; on_room() will be called, and before that has been
     * called for the first time nothing is put. */
    bool (*put)(struct channel *n, struct str bytes);
    void (*hold)(struct channel *n, bool held); /* held: no bytes come, soon */
    void (*close)(struct channel *n);           /* it is gone, and its user hears nothing more */
};
/* All from the loop, never from inside a call. */
struct channel_user {
    void (*on_bytes)(void *arg, struct str bytes);
    void (*on_room)(void *arg);
    void (*on_end)(void *arg, const char *why); /* it is gone; why: "has hung up" */
};

struct lend_config {
    uint64_t silent_ms; /* with no sign of life for so long the other node counts as gone */
    /* A new file without a name, for bytes on their way: an fd, or -1. From any thread. */
    int (*spool)(void *arg, struct err *e);
    void *arg; /* of spool */
};

/* As session_open(), with a sandbox that the node at the other end of the line has in its pool of
 * this name. Such a session is like any other, but has no listener for a proxy. When the line ends
 * it is lost. Takes the line. */
void session_borrow(struct pool *p, struct str name, struct channel *n,
                    const struct lend_config *config, session_open_fn *on_open, void *arg);
/* fn, from the loop, when the other node wants its sandbox back. */
void session_on_recall(struct session *s, void (*fn)(void *arg), void *arg);

/* The other end. */
struct lent;
struct lent_owner {
    void (*on_wanted)(void *arg, struct str pool); /* answered by lent_open() or lent_refuse() */
    void (*on_open)(void *arg, struct session *s); /* or NULL */
    void (*on_end)(void *arg);                     /* last; it is gone, and its sandbox, too */
};
/* Takes the line. */
struct lent *lent_new(struct loop *l, struct channel *n, const struct lend_config *config,
                      const struct lent_owner *owner, void *arg);
void lent_open(struct lent *t, struct pool *p, struct whose whose);
void lent_refuse(struct lent *t, const struct err *why);
void lent_recall(struct lent *t); /* asks for it, so that home can keep what is in it */
bool lent_is_recalled(const struct lent *t);
/* Since when nothing runs in it, by time_mono_us(); 0: something does. */
int64_t lent_idle_us(const struct lent *t);
void lent_close(struct lent *t); /* takes it */

enum exec_kind { EXEC_CELL, EXEC_COMMAND };

struct exec_callbacks {
    void (*on_event)(void *arg, const struct event *ev);
    void (*on_outcome)(void *arg, const struct outcome *o); /* last; the exec is gone afterwards */
};

struct exec_env {
    struct str name, value;
};

/* More variables, or more bytes in all of them, are an ERR_LIMIT. */
#define EXEC_ENV_MAX   128
#define EXEC_ENV_BYTES (12 * KiB)

struct exec_config {
    enum exec_kind kind;
    struct str code;            /* Python, or a line for bash -c; copied */
    uint64_t wall_ms;           /* 0: the pool's limit */
    const struct exec_env *env; /* for this execution only; copied */
    size_t env_count;
};

/* Cells queue FIFO in their session; commands run beside them. Code must be UTF-8 without NUL
 * and at most EXEC_CODE_MAX bytes, else NULL with ERR_CALLER or ERR_LIMIT. */
#define EXEC_CODE_MAX (16 * MiB)
struct exec *exec_start(struct session *s, const struct exec_config *config,
                        const struct exec_callbacks *cb, void *arg, struct err *e);
void exec_interrupt(struct exec *x); /* SIGINT, then the kill after grace_ms */
/* hold: its output is not read, so that the code waits in write(). Its time goes on. */
void exec_hold(struct exec *x, bool hold);
/* stopped: the execution waits for an answer from outside, and its wall time stands still until a
 * call with false. Its CPU time counts on. */
void exec_stop_clock(struct exec *x, bool stopped);

/* --- the interpreter, before there is a pool --- */

/* Runs source with the Python a pool of this name would have (NULL: the default), outside of any
 * box, and takes what it prints, cut at size - 1 bytes. as: who runs it, while there is one thread;
 * NULL: we do. */
int python_ask(const char *python, const char *source, const struct server_user *as, char *ret,
               size_t size, struct err *e) MUST_CHECK;

/* --- workspace files, by the host --- */

/* Copies the bytes of src (a regular file) to path below the workspace, folders made as needed. */
int workspace_put(struct session *s, struct str path, int src, struct err *e) MUST_CHECK;
/* Opens a regular file below the workspace for reading: an fd, or -1. Follows no link. */
int workspace_get(struct session *s, struct str path, struct err *e) MUST_CHECK;
/* What has changed since the last look: begun here, walked by look_walk() on another thread, told
 * here, as the end of an execution does. NULL when the sandbox is gone. */
struct look;
struct look *workspace_look(struct session *s);
void workspace_tell(struct session *s, struct look *k,
                    void (*fn)(void *arg, const struct event *ev), void *arg); /* takes k */
void look_free(struct look *k);
/* It was empty at the last look, and nothing has come since. */
bool workspace_is_bare(const struct session *s);
/* The host has put or deleted this file itself: the next look does not tell of it. */
void workspace_note(struct session *s, struct str path);

/* The same from another thread: they block, and touch nothing but the directory. A sandbox that
 * ends meanwhile does no harm. dup() of the workspace's directory is the caller's to close. */
struct space {
    int dir;
    uid_t uid;
    struct far_files *far; /* held, or NULL: it is on another node, and there is no dir */
};
int workspace_dup(struct session *s, struct space *ret, struct err *e) MUST_CHECK;
bool space_is_open(const struct space *sp);
void space_close(struct space *sp);
/* mode: permission bits, 0 for 0644; mtime_ms: 0 for now. */
int space_put(const struct space *sp, struct str path, int src, uint32_t mode, int64_t mtime_ms,
              struct err *e) MUST_CHECK;
int space_get(const struct space *sp, struct str path, struct err *e) MUST_CHECK;
void look_walk(struct look *k, const struct space *sp);
/* The host lacked descriptors or memory to see all of it. Nothing is told of such a look. */
bool look_is_blind(const struct look *k);
/* With the folders above it; that it is there already is no error. */
int space_mkdir(const struct space *sp, struct str path, struct err *e) MUST_CHECK;
/* 1: deleted, 0: there was none. */
int space_delete(const struct space *sp, struct str path, struct err *e) MUST_CHECK;

/* --- what else a session keeps: its home, /tmp; links and folders of its workspace --- */

enum home_root { HOME_WORKSPACE, HOME_TMP, HOME_ROOTS };
/* Descriptors of both, as workspace_dup(). On failure there is none to close. */
int home_dup(struct session *s, struct space ret[HOME_ROOTS], struct err *e) MUST_CHECK;
/* Both block and belong on another thread. home_pack() writes no byte when there is nothing to
 * keep; files that do not fit into max bytes are left out, and counted. home_unpack() reads what
 * was written and counts what was left out then, or could not be made again. */
typedef int home_write_fn(void *arg, struct str bytes, struct err *e);
int home_pack(const struct space roots[HOME_ROOTS], uint64_t max, home_write_fn *write, void *arg,
              struct err *e) MUST_CHECK;
int home_unpack(const struct space roots[HOME_ROOTS], int fd, size_t *ret_left_out,
                struct err *e) MUST_CHECK;

/* --- types of files --- */

const char *mime_of(struct str path);     /* by its suffix; never NULL */
const char *mime_suffix(struct str mime); /* ".csv" of text/csv; "" where none is known */
bool mime_is_text(struct str mime);       /* what a reader sees as characters: JSON, SVG, scripts */
