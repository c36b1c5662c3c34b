/* Private to the room. */
#pragma once

#include "warden/warden.h"

#include "sandbox/box.h"

#define UID_SLOT     2u /* uids per box */
#define SLOTS        ((UID_COUNT / UID_SLOT) - 1)
#define DIRS_MAX     16
#define UID_MAP_TEXT 96

struct zygote_spec {
    uint32_t uid_base; /* of a range of UID_COUNT; 0: there is one uid, the caller's */
    char *python, *preload, *guest_dir, *cache_dir; /* owned */
    char *dirs[DIRS_MAX + 1];                       /* owned, NULL-terminated */
};

void zygote_spec_done(struct zygote_spec *spec);

/* Starts a keeper and, below it, the zygote, which speaks on the other end of *ret_sock and whose
 * output goes to the file *ret_log. Returns the keeper's pidfd. */
int keeper_start(const struct zygote_spec *spec, int *ret_sock, int *ret_log,
                 struct err *e) MUST_CHECK;
