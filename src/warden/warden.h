/*
 * warden: the one process that keeps privilege, so that no other needs any.
 *
 * Touches: namespaces, id maps, cgroups, the processes of every sandbox. Never
 * touches: a byte of a client or of a guest; its requests are the closed list of
 * MSG_POOL_START .. MSG_KILL in wire.h, from the server that forked it.
 *
 * Everything that it acts on with privilege is in struct warden_config, which it
 * gets with the fork: a request names an environment by its number, and brings
 * numbers and one socket. A server that strangers have taken over can ask for the
 * sandboxes that it could have had anyway, and for nothing else.
 *
 * warden_start() before any thread exists, and before privilege is dropped; then
 * talk to it on the socket. It ends, with everything it started, when that socket
 * closes or says what no server says.
 */
#pragma once

#include "base/base.h"
#include "sandbox/box.h"

/* An interpreter and what it imports before the first fork. */
struct warden_environment {
    const char *python;      /* as the box names it; NULL: never to be started */
    const char *preload;     /* comma-separated modules */
    const char *const *dirs; /* NULL-terminated: directories of the host that it needs, or NULL */
};

/* A folder that the user has asked for by name; shown in every box. */
struct warden_folder {
    const char *path, *where; /* of the host; in the box */
    bool writable;
};

struct warden_config {
    const char *guest_dir; /* holds retort_guest/ */
    const struct warden_folder *folders;
    size_t folder_count;
    const char *cache_dir; /* where caches of interpreters may be made; NULL: nowhere */
    const struct warden_environment *environments;
    size_t environment_count;
    struct uids uids; /* subordinate ones; base 0: root finds its own, others have none */
};

/* Forks the warden. Returns the server's end of its socket; *ret_pidfd is owned by the caller. */
int warden_start(const struct warden_config *config, int *ret_pidfd, struct err *e) MUST_CHECK;
