/*
 * The user that the server becomes when root has started it: a user without rights, who can act for
 * the users of sandboxes and for nobody else.
 *
 * Touches: credentials, user namespace and capabilities of *this* process.
 *
 * Call server_user_find(), do everything that needs root (sockets, files, the warden), then call
 * server_user_enter() while there is one thread. There is no way back.
 */
#pragma once

#include "base/base.h"

struct uids;

/* Where there is no user "retort". Below the sandboxes' range, above everybody else's. */
#define SERVER_UID 0x6fffffffu

struct server_user {
    uid_t uid;
    gid_t gid;
    bool changes; /* false: it stays who it is */
};

/* name: an account or a number, "root" for no change, NULL for the default. Who is not root has no
 * choice: naming another is an error. */
int server_user_find(const char *name, struct server_user *ret, struct err *e) MUST_CHECK;
/* Becomes that user and nothing else, for a command that only needs the server's files. */
int server_user_become(const struct server_user *u, struct err *e) MUST_CHECK;
/* Becomes that user in a user namespace that has one more thing in it: the ids of sandboxes.
 * Inside, the server's own id is 0, which is a name and gives it nothing. */
int server_user_enter(const struct server_user *u, struct err *e) MUST_CHECK;

/* Has this process go before the code in sandboxes where both want a processor; its threads and
 * children inherit that. Returns the nice value that it had, which is the code's: sandboxes go back
 * to it, and so does work that takes long. Root may; for others nothing changes. */
int server_go_first(void);

/* For an ordinary user: moves into a user namespace in which the caller is who it was, and a block
 * of its subordinate ids is there for sandboxes as long as *ret_lock stays open. The caller then
 * has every capability in that namespace: fork what needs them, then server_rights_drop(). To be
 * called while there is one thread. -1: nothing has changed, and *e says what is missing. */
int subids_enter(struct uids *ret, int *ret_lock, struct err *e) MUST_CHECK;
/* Keeps what it takes to open a sandbox's files as its user, and tries whether the rest is gone. */
int server_rights_drop(struct err *e) MUST_CHECK;
