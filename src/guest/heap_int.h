/*
 * Private to the room: functions that look at and change the memory of this process, with system
 * calls and the stack alone. Their callers run while the heap must not be touched.
 */
#pragma once

#include "guest/guest.h"

#define MAPS_MAX        2048
#define MAPS_TEXT       (384 * KiB)
#define PAGES_AT_ONCE   512
#define PAGEMAP_IN      (1ull << 63)
#define PAGEMAP_SWAP    (1ull << 62) /* swapped out, or on its way to another page frame */
#define PAGEMAP_OF_FILE (1ull << 61)
/* What a file gives to read, up to here, is taken into the image. Of 354 such mappings with numpy,
 * pandas and matplotlib 328 are as small, which is 22 of 94 MB. */
#define HEAP_SMALL (512 * KiB)

struct map {
    unsigned long from, to;
    int prot;
    bool anonymous; /* has no file behind it: absent pages are zero pages */
    bool image;     /* comes from the frozen file */
    bool plain;     /* memory and nothing else: see maps_read_plain() */
};

struct maps {
    int pagemap; /* owned */
    size_t page; /* bytes of one: 4 KiB on x86, up to 64 KiB elsewhere */
    size_t count;
    struct map map[MAPS_MAX];
    char text[MAPS_TEXT];
};

/* System call without libc, whose errno lives on a page of its own. Returns -errno. */
long raw(long nr, long a, long b, long c, long d, long e, long f);

/* The private, readable mappings but for the stack and the thread's own block. With maps_done(). */
bool maps_read(struct maps *m);
void maps_done(struct maps *m);
/* Finds out which of them are plain. A mapping that the kernel treats in a way of its own is not:
 * above all one that fork() wipes, where glibc and the vDSO keep the state of getrandom(). */
bool maps_read_plain(struct maps *m);
/* Flags of pages (at most PAGES_AT_ONCE) from `at` on. */
bool maps_flags(const struct maps *m, unsigned long at, uint64_t *ret, size_t pages);
/* A page of this process's own, not the file's or the zygote's. */
bool is_own(uint64_t flags);
bool has_one_thread(void);
