/* The state directory: its place, its owner, and the lock of the server that uses it. */
#pragma once

#include "cli/cli.h"
#include "sandbox/server.h"

#include <limits.h>

#define STATE_PATH_MAX (PATH_MAX / 2)

/* The directory of the settings, or the default of this user; whole. */
int state_find(const struct settings *s, char ret[STATE_PATH_MAX], struct err *e) MUST_CHECK;
/* Makes it where it is missing, and makes it u's with everything in it. As root. */
int state_prepare(const char *path, const struct server_user *u, struct err *e) MUST_CHECK;
/* For a command: makes it where it is missing, and becomes its owner, so that what root makes there
 * stays the server's. */
int state_become(const char *path, const struct settings *s, struct err *e) MUST_CHECK;
/* One server at a time: the lock, held for as long as the fd stays open. It is on the directory
 * itself, as a file in it could be removed and made anew. */
int state_lock(const char *path, struct err *e) MUST_CHECK;
/* Random bytes that stay the same for as long as the directory is there, and that nobody else
 * reads: what we sign today we still know after a restart. Made when missing. */
int state_secret(const char *path, uint8_t *ret, size_t n, struct err *e) MUST_CHECK;
/* Where the rows of the store are, for store_open(). The password is read as whoever we are now;
 * *ret_password is owned, or NULL. */
int state_store(const struct settings *s, struct store_config *ret, char **ret_password,
                struct err *e) MUST_CHECK;
/* Checks that the user we have become can use the state directory. */
int state_reach(const char *path, struct err *e) MUST_CHECK;
