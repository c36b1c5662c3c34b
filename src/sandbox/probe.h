/*
 * Which layers of the sandbox this machine has. Every layer is tried; none is guessed from a
 * version number or a setting.
 *
 * Touches: processes of its own, and in them what box.h says. The processes are gone, with all that
 * they made, when the call returns.
 *
 * Call layer_try() for each row of layers[]. If a row of the floor is LAYER_MISSING, this machine
 * cannot run a sandbox.
 */
#pragma once

#include "base/base.h"

enum layer_state {
    LAYER_OK,
    LAYER_WEAKER,  /* absent or in part, and the sandbox holds without */
    LAYER_MISSING, /* absent, and there is no sandbox without */
};
const char *layer_state_name(enum layer_state s); /* "ok", "weaker", "missing" */

struct layer_found {
    enum layer_state state;
    bool blocked;     /* not reached, for want of a row above: that one is to be mended */
    char detail[400]; /* what was seen, or why it is not there */
    char remedy[240]; /* what to do about it; empty when there is nothing to do */
};

struct layer {
    const char *name;
    bool floor;
    int (*probe)(struct layer_found *ret, struct err *e); /* runs in a process of its own */
    const char *cost;                                     /* of its absence */
    const char *remedy; /* where the probe knows none that fits better; or NULL */
};

extern const struct layer layers[];
extern const size_t layers_count;

void layer_try(const struct layer *l, struct layer_found *ret);

/* Calls fn in a process of its own, on a copy of the n bytes at arg that comes back changed. -1
 * when it could not be started, died, or took longer than ms; then arg is as it was. */
int probe_apart(void (*fn)(void *arg), void *arg, size_t n, unsigned ms, struct err *e) MUST_CHECK;
