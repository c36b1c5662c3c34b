/* Private to the room. */
#pragma once

#include "warden/warden.h"

/* Where the host gives us a range of uids, every live box gets two of its own: one for init, one
 * for the code. The range lies above everything Debian, systemd and shadow hand out. */
#define UID_BASE     0x70000000u
#define UID_COUNT    0x10000u
#define UID_SLOT     2u /* uids per box */
#define SLOTS        ((UID_COUNT / UID_SLOT) - 1)
#define DIRS_MAX     16
#define UID_MAP_TEXT 96

struct zygote_spec {
    bool has_range; /* else: one uid, the caller's */
    char *python, *preload, *guest_dir, *cache_dir; /* owned */
    char *dirs[DIRS_MAX + 1];                       /* owned, NULL-terminated */
};

void zygote_spec_done(struct zygote_spec *spec);

/* Starts a keeper and, below it, the zygote, which speaks on the other end of *ret_sock and whose
 * output goes to the file *ret_log. Returns the keeper's pidfd. */
int keeper_start(const struct zygote_spec *spec, int *ret_sock, int *ret_log, struct err *e)
    MUST_CHECK;
