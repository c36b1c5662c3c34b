/* A directory tree to fuzz in: a place that must be kept to, and one outside that must stay as it
 * is. */
#pragma once

#include "support/fuzz.h"

struct trees {
    char path[40];
    int top, inside, outside; /* owned */
};

void trees_open(struct trees *t);
/* Empties the inside and plants links, a FIFO and folders there. */
void trees_reset(struct trees *t);
/* Fails when anything outside has changed. */
void trees_check(struct trees *t);
/* True when fd is a file of the inside. */
bool trees_holds(const struct trees *t, int fd);
void trees_close(struct trees *t);
