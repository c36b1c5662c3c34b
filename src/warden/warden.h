/*
 * warden: keeps what privilege there is, so that nobody else has to.
 *
 * Touches: namespaces, id maps, cgroups, the processes of every sandbox. Never
 * touches: a byte of a client or of a guest; its requests are the closed list of
 * MSG_POOL_START .. MSG_KILL in wire.h, from the server that forked it.
 *
 * warden_start() before any thread exists; then talk to it on the socket. It ends,
 * with everything it started, when that socket closes.
 */
#pragma once

#include "base/base.h"

/* Forks the warden. Returns the server's end of its socket; *ret_pidfd is owned by the caller. */
int warden_start(int *ret_pidfd, struct err *e) MUST_CHECK;
