/* Private to the room. */
#pragma once

#include "warden/warden.h"

#include "sandbox/box.h"
#include "wire/wire.h"

#define UID_SLOT     2u                           /* uids per box */
#define SLOTS        ((UID_COUNT / UID_SLOT) - 1) /* of the largest range */
#define DIRS_MAX     24
#define UID_MAP_TEXT 96
#define SPARES       8
#define ZYGOTES_MAX  1024 /* at once: each is a process with an interpreter in it */

/* --- environment.c: what a zygote is made of --- */

struct open_environment {
    const char *python, *preload;       /* borrowed from the configuration */
    struct root_dir dirs[DIRS_MAX + 2]; /* fds: owned. The guest's files are the last but one, */
    size_t dir_count;                   /* the cache, where there is one, the last */
    struct err failed;                  /* why it cannot be started, or ERR_NONE */
};

/* Opens every directory, and makes and gives away the caches. uid_base 0: zygotes are the caller,
 * and there is no privilege: then directories stay names. */
struct open_environment *environments_open(const struct warden_config *config, uint32_t uid_base);

/* Starts a keeper and, below it, the zygote, which speaks on the other end of *ret_sock and whose
 * output goes to the file *ret_log. Returns the keeper's pidfd. */
int keeper_start(const struct open_environment *env, const struct uids *uids, struct str modules,
                 int *ret_sock, int *ret_log, struct err *e) MUST_CHECK;

/* --- request.c: what the server may say --- */

struct warden_request {
    uint16_t type;
    uint64_t id;           /* of a zygote or a box */
    uint64_t environment;  /* MSG_POOL_START */
    struct str modules;    /* MSG_POOL_START: borrowed from the body; checked */
    uint64_t zygote;       /* MSG_SPAWN */
    struct box_plan plan;  /* MSG_SPAWN: checked */
    const char *objection; /* why it is refused, or NULL; the answer to such a request is a no */
};

/* -1: what no server says, and the end of it. */
int request_read(const struct wire_head *head, struct str body,
                 struct warden_request *ret) MUST_CHECK;

/* --- who is waited for --- */

enum event_source_kind { FROM_SERVER, FROM_ZYGOTE, KEEPER_GONE, BOX_GONE };

struct event_source {
    enum event_source_kind kind;
    void *of; /* borrowed: struct zygote or struct box_entry */
};

struct zygote {
    struct zygote *next;
    uint64_t id;
    int sock, pidfd, log;      /* owned */
    bool up, retired, refused; /* refused: the interpreter itself said that it will not do */
    unsigned boxes;
    struct event_source from_sock, from_pidfd;
};

struct box_entry {
    struct box_entry *next;
    uint64_t id;
    struct zygote *zygote; /* borrowed: outlives its boxes; NULL once the zygote is gone */
    int pidfd;             /* owned; -1 until forked */
    unsigned slot;
    uint64_t cgroup;
    bool gone;   /* processes are gone, the cgroup not yet */
    bool failed; /* it never came, and the server knows */
    struct event_source from_pidfd;
};

struct warden {
    int server, epoll;
    struct uids uids; /* of boxes; base 0: there is one uid, the caller's */
    int uid_lock;     /* owned: holds our block of uids */
    int nice;         /* of the code in sandboxes */
    struct cgroups *cgroups;
    struct buf base, user;                 /* seccomp programs */
    struct open_environment *environments; /* owned: as the configuration numbers them */
    size_t environment_count;
    struct zygote *zygotes;
    unsigned zygote_count;
    struct box_entry *boxes;
    unsigned char slot_used[SLOTS];
    unsigned slot_hint;
    unsigned lingering; /* boxes that are gone but for their cgroup */
    uint64_t next_cgroup;
    uint64_t spare[SPARES]; /* cgroups made while there was nothing else to do */
    unsigned spares;
    bool no_spares; /* making one failed: only when there is need */
};

void warden_tell(struct warden *w, uint16_t type, uint64_t id, struct str body);
/* The same with descriptors, which stay the caller's. */
void warden_tell_with(struct warden *w, uint16_t type, uint64_t id, struct str body, const int *fds,
                      size_t count);
void warden_tell_text(struct warden *w, uint16_t type, uint64_t id, const char *text);
int warden_watch(struct warden *w, int fd, struct event_source *s);
/* Ends one that has been told to stop, once it has no boxes. */
void zygote_release(struct zygote *z);

/* --- boxes.c --- */

void box_spawn(struct warden *w, const struct warden_request *r, int ctl);
void box_kill(struct warden *w, uint64_t id);
void box_tell_usage(struct warden *w, uint64_t id);
/* The box that a zygote speaks of: one it was asked for and has not answered; or NULL. */
struct box_entry *box_due(struct warden *w, struct zygote *z, uint64_t id);
void box_on_forked(struct warden *w, struct zygote *z, uint64_t id, int *pidfd);
void box_on_gone(struct warden *w, struct box_entry *b);
void box_failed(struct warden *w, struct box_entry *b, const char *why); /* frees b */
void boxes_linger(struct warden *w); /* looks again for those that are gone but for their cgroup */
int cgroup_spare_make(struct warden *w, struct err *e) MUST_CHECK;
