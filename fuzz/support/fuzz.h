/*
 * What the fuzz targets share: a script read from the input, a count of what is
 * open, and a loop whose clock and whose order of events are the target's.
 */
#pragma once

#include "base/base.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Like assert, but never compiled out, and it says what was expected. */
#define EXPECT(what)                                                                               \
    do {                                                                                           \
        if (!(what))                                                                               \
            fuzz_fail(__FILE__, __LINE__, #what);                                                  \
    } while (0)

_Noreturn void fuzz_fail(const char *file, int line, const char *what);

/* --- the input as a script: past its end every number is 0 and every text empty --- */

struct feed {
    const uint8_t *p;
    size_t n;
};

uint8_t feed_byte(struct feed *f);
uint64_t feed_num(struct feed *f, unsigned bytes); /* little-endian */
struct str feed_text(struct feed *f, size_t n);    /* at most n bytes of what is left */

/* --- what is open --- */

/* Descriptors below 256; the same number before and after means that none was lost. */
unsigned fds_open(void);

/* Reads every byte, so that a view of memory that is not ours is noticed. */
void touch(struct str s);

/* --- the loop of loop.h, driven by hand: see support/loop.c --- */

struct loop;

/* Runs what loop_later() was asked for and every readable watch once, in the order they were made.
 * Returns how many callbacks ran. */
unsigned loop_turn(struct loop *l);
/* Moves the clock and runs the timers that are due, earliest first. */
void loop_advance(struct loop *l, uint64_t ms);
/* Watches, timers and later calls that are alive. */
unsigned loop_alive(const struct loop *l);
