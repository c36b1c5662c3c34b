/* Private to the room: engine > pool > guest, session > exec. */
#pragma once

#include "engine/engine.h"

#include "loop/loop.h"
#include "sandbox/box.h"
#include "wire/wire.h"

#define QUEUE_MAX  64 /* cells waiting in one session */
#define LATE_MAX   (64 * KiB)
#define BUNDLE_MAX (12 * MiB)

/* --- output of a guest: a pipe, read as it comes --- */

struct stream;
typedef void stream_fn(void *arg, enum event_kind kind, struct str text);

/* Reads fd (owned from now on) and hands text on, cut at UTF-8 boundaries where it can be. */
struct stream *stream_new(struct loop *l, int fd, enum event_kind kind, stream_fn *fn, void *arg);
void stream_drain(struct stream *s); /* what is there now, at most a pipe full */
void stream_flush(struct stream *s); /* also the bytes held back for the rest of a character */
void stream_throttle(struct stream *s, bool slow); /* slow: nobody wants what comes now */
void stream_hold(struct stream *s, bool hold);     /* hold: nothing is read */
void stream_free(struct stream *s);

/* --- guest: one sandbox as the server sees it --- */

enum guest_state {
    GUEST_BOOTING,  /* the warden has been asked; init closes its box */
    GUEST_STARTING, /* a kernel is coming up */
    GUEST_IDLE,
    GUEST_RUNNING,
    GUEST_DEAD,
};

struct guest;

/* Who owns a guest hears of it through these; arg is the owner. */
struct guest_owner {
    void (*on_closed)(
        void *arg); /* the box is closed and its uid known; an interpreter is coming up */
    void (*on_idle)(void *arg);
    void (*on_text)(void *arg, enum event_kind kind, struct str text);
    void (*on_event)(void *arg, const struct event *ev);
    void (*on_errno)(void *arg, int number); /* the error just told was an OSError */
    void (*on_done)(void *arg, uint64_t status);
    void (*on_kernel_exit)(void *arg, int status);
    void (*on_command_exit)(void *arg, uint64_t id, int status);
    void (*on_trip)(void *arg, enum wire_trip which);
    void (*on_usage)(void *arg, const struct box_usage *u);
    void (*on_dead)(void *arg, const char *why); /* last; the guest is then the owner's to free */
};

struct guest *guest_new(struct pool *p, const struct guest_owner *owner, void *arg);
void guest_set_owner(struct guest *g, const struct guest_owner *owner, void *arg);
void guest_free(struct guest *g);                 /* ends the sandbox */
void guest_end(struct guest *g, const char *why); /* the same, and the owner hears on_dead */
enum guest_state guest_state(const struct guest *g);
bool guest_is_spawned(const struct guest *g); /* the warden says that there is one */
uint64_t guest_zygote(const struct guest *g);
int guest_space(const struct guest *g); /* borrowed dirfd of /workspace */
int guest_tmp(const struct guest *g);
int guest_shm(const struct guest *g);
uid_t guest_uid(const struct guest *g);

/* A pipe out of a box: ret[0] for us, not blocking; ret[1] for the code, which may also open it by
 * its name, /dev/stdout, although the pipe's owner is not its own uid. */
int guest_pipe(int ret[2]) MUST_CHECK;
/* ret_taken: it is in the socket, and the interpreter may find it there. */
int guest_cell(struct guest *g, uint64_t id, struct str code, uint64_t number, struct str env,
               bool *ret_taken);
/* env: ENV fields, ready for the wire. out, err: the guest's ends, closed by the caller. */
int guest_command(struct guest *g, uint64_t id, struct str line, struct str env, int out, int err);
void guest_signal(struct guest *g, uint64_t id, int number);
/* Idle, and no signal for the kernel is on its way: it would find the next cell. */
bool guest_takes_cell(const struct guest *g);
void guest_watch(struct guest *g, uint64_t cpu_us, uint64_t memory);
void guest_ask_usage(struct guest *g);
/* What its processes have used so far; false where no cgroup counts it. */
bool guest_cpu_us(const struct guest *g, uint64_t *ret);
bool guest_memory_peak(const struct guest *g, uint64_t *ret);
void guest_throttle(struct guest *g, bool slow);
void guest_hold(struct guest *g, bool hold);
int guest_take_listener(struct guest *g);
void guest_restart(struct guest *g); /* its interpreter; nothing when one is coming up anyway */
bool guest_in_cgroup(const struct guest *g);
/* Before its first cell: has its interpreter take the memory that one may want. */
void guest_warm(struct guest *g);

/* From the warden, by box id. What it keeps of the descriptors is -1 afterwards. */
void guest_on_warden(struct guest *g, uint16_t type, struct str body, int fds[METERS]);

/* Parses a kernel message into ev; -1 when it is not one. For guest_messages.c and its fuzzer. */
int event_parse(uint16_t type, struct str body, struct event *ret, int *ret_errno) MUST_CHECK;

/* --- engine --- */

struct engine {
    struct loop *loop;
    int warden, warden_pidfd; /* owned */
    int warden_out; /* owned: the same socket; the loop watches a descriptor for one thing only */
    struct watch *from_warden;
    struct watch *to_warden; /* while letters wait */
    struct letter *letters;  /* owned: what the warden has not taken yet, oldest first */
    struct pool *pools;
    struct guest *guests; /* every live one, by box id */
    uint64_t next_id;
    uint64_t held, held_max; /* bytes of unfinished messages and of output rings, all guests */
    void (*on_lost)(void *arg);
    void *lost_arg;
    struct known_environment *environments; /* owned: by the number the warden has for them */
    size_t environment_count;
    int uid_lock;           /* owned, or -1: holds our block of subordinate ids */
    struct err shared_user; /* why sandboxes have no users of their own, or ERR_NONE */
};

int engine_tell(struct engine *en, uint16_t type, uint64_t id, struct str body, int fd);
/* Counts n bytes that a guest makes us hold. False when that is too much: then they are not
 * counted, and not to be held. */
bool engine_hold(struct engine *en, size_t n) MUST_CHECK;
void engine_let_go(struct engine *en, size_t n);
void engine_add_guest(struct engine *en, struct guest *g);
void engine_drop_guest(struct engine *en, struct guest *g);
struct guest **guest_next(struct guest *g);
uint64_t guest_id(const struct guest *g);

/* --- pool --- */

struct engine *pool_engine(struct pool *p);
const struct limits *pool_limits(struct pool *p);
bool pool_has_proxy(const struct pool *p);
uint64_t pool_zygote(struct pool *p); /* the one that forks now */
/* modules: those of its last sessions that it has. */
void pool_on_zygote(struct pool *p, uint64_t zygote, struct str modules, const struct err *down);
/* Ends a sandbox that nobody uses any more: at once, or when there is time for that. Takes it. */
void pool_take_back(struct pool *p, struct guest *g, bool is_idle);
void pool_on_pong(struct pool *p); /* the warden and the zygote are there */
bool pool_has_zygote(struct pool *p, uint64_t zygote);
struct pool **pool_next(struct pool *p);
void pool_free(struct pool *p);

/* What the code of a guest has imported; -1: these are no modules. */
int pool_vote(struct pool *p, uint64_t guest, struct str modules) MUST_CHECK;

/* --- what an interpreter is to have from the start: learn.c --- */

struct learn;
struct learn *learn_new(void);
void learn_free(struct learn *l);
void learn_session(struct learn *l); /* one more has begun */
/* It has imported these. -1: they are no modules. */
int learn_vote(struct learn *l, uint64_t session, struct str modules) MUST_CHECK;
bool learn_is_due(struct learn *l); /* another interpreter would have more of what is wanted */
/* The modules that the next one is asked for; then what it has, or that it did not come up. */
void learn_ask(struct learn *l, struct buf *ret);
void learn_take(struct learn *l, struct str modules);
void learn_give_up(struct learn *l);
size_t learn_tell(const struct learn *l, const char *ret[LEARNED_MAX]); /* borrowed */

/* --- sessions: pool.c makes them of an idle guest --- */

struct session *session_new(struct pool *p, struct guest *g);

/* --- outcome lines --- */

void outcome_say(struct outcome *o, const struct limits *l, int status, const char *detail);

/* --- workspace --- */

#define SPACE_NAME_MAX 1024
#define UPLOAD_PREFIX  ".retort-upload-" /* of a file that is on its way in */

/* As the session's own user, in this thread, until the next. */
void space_act_as(uid_t uid);
void space_act_as_self(void);
/* Below dir, across no link and no mount. */
int space_open_beneath(int dir, const char *path, uint64_t flags, uint64_t mode) MUST_CHECK;
/* An fd of the folder of path, or -1; ret_name points to the last name in path. */
int space_open_folder(int space, char *path, char **ret_name, struct err *e) MUST_CHECK;
int space_check_path(struct str path, char ret[SPACE_NAME_MAX], struct err *e) MUST_CHECK;

/* Files on another node (borrowed_files.c): the calls of engine.h with these names, or those of a
 * look. They block, and belong on other threads, but for the last two. */
struct far_files {
    const struct far_ops *ops;
};
struct far_ops {
    int (*put)(struct far_files *f, struct str path, int src, uint32_t mode, int64_t mtime_ms,
               struct err *e);
    int (*get)(struct far_files *f, struct str path, struct err *e);
    int (*make_dir)(struct far_files *f, struct str path, struct err *e);
    int (*remove)(struct far_files *f, struct str path, struct err *e);
    int (*pack)(struct far_files *f, uint64_t max, home_write_fn *write, void *arg, struct err *e);
    int (*unpack)(struct far_files *f, int fd, size_t *ret_left_out, struct err *e);
    void (*look)(struct far_files *f, struct look *k);
    void (*look_done)(struct far_files *f); /* unrefs */
    void (*unref)(struct far_files *f);
};

/* --- what has changed in it: tree.c --- */

struct tree;
struct tree *tree_new(void);
void tree_free(struct tree *t);
typedef void tree_fn(void *arg, const struct event *ev);
/* Sees the workspace as it is; look_walk() may be on another thread. */
struct look *look_new(struct tree *t);
/* One that another node takes, and what it says: events in fields. Takes f. */
struct look *look_new_far(struct far_files *f);
struct buf *look_seen(struct look *k);
void look_set_blind(struct look *k);
/* False, and nothing seen, when it would take the loop too long. */
bool look_try(struct look *k, const struct tree *t, const struct space *sp);
/* It was empty when it was last looked at, and is. Costs one system call. */
bool tree_is_bare(const struct tree *t, int dir);
/* Something later has been told: this one has nothing to say. */
bool look_is_old(const struct look *k, const struct tree *t);
/* Tells how the look differs from the last one, and takes it. Returns the limits hit. */
uint32_t tree_tell(struct tree *t, struct look *k, const struct limits *l, tree_fn *fn, void *arg);
/* This path is as the host has just made it. */
void tree_note(struct tree *t, int space, uid_t uid, struct str path);

/* --- the interpreter a pool names --- */

#define PYTHON_DIRS_MAX 12

struct python_info {
    char executable[512];
    char version[64];
    char dirs[PYTHON_DIRS_MAX][512]; /* outside /usr, to be shown in the box */
    size_t dir_count;
};

/* Asks the interpreter itself, which also looks through shims. as: see python_ask(). */
int python_probe(const char *python, const struct server_user *as, struct python_info *ret,
                 struct err *e) MUST_CHECK;
/* What it answered, cut up in place. For python.c and its fuzzer. */
int python_parse(char *text, const char *python, struct python_info *ret, struct err *e) MUST_CHECK;

/* --- environments: environments.c --- */

struct known_environment {
    char *python; /* owned, or NULL: the default */
    char *preload;
    struct python_info info;
    struct err failed; /* why it has no info, or ERR_NONE */
};

/* Asks all of them; a failure is that of its row. */
void environments_learn(struct engine *en, const struct engine_config *config);
void environments_forget(struct engine *en);
/* Its number, or -1. */
int environment_number(const struct engine *en, const struct engine_environment *env,
                       struct err *e) MUST_CHECK;
/* Forks the warden, which is told of all of them. */
int environments_hand_over(struct engine *en, const struct engine_config *config,
                           struct err *e) MUST_CHECK;
