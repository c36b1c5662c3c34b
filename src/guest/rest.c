/*
 * A kernel at rest. What a session has written to is scattered over its memory: almost half of its
 * pages are again what they are in the image (reference counts came back), and most of the others
 * differ from it in a few words. So while it rests, it keeps a list of these words and lets go of
 * the pages; before anything runs again, the words are put back. A session that has run pandas
 * holds a fifth of its memory meanwhile.
 *
 * Between the two the heap is not what it should be, nor are the variables of any library. Hence:
 * one thread; no signal is delivered, as a handler would look; and nothing is called but functions
 * of this folder, with the stack and one mapping of their own. Only pages of the image are let go,
 * so what the code itself has mapped is never touched.
 */
#include "guest/heap_int.h"

#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#define RUN_BYTES (128 * KiB) /* at least two pages of any size */
#define WORDS_MAX (64 * KiB)  /* of all pages */
#define FEW_WORDS 96 /* of 4 KiB: a page that differs in more is kept; at 16 bytes for each */

struct changed_word {
    uint64_t *at;
    uint64_t value;
};

/* Lies in a mapping of its own. */
struct resting {
    int wakes, signals; /* what ends the rest */
    size_t count;
    struct changed_word words[WORDS_MAX];
    char kept[RUN_BYTES];
    struct maps maps;
};

static bool is_over(const struct resting *r, int wait_ms)
{
    struct pollfd p[] = {
        {r->wakes,   POLLIN, 0},
        {r->signals, POLLIN, 0},
    };
    struct timespec t = {0};

    return raw(SYS_ppoll, (long)p, COUNT(p), wait_ms < 0 ? 0 : (long)&t, 0, 0, 0) != 0;
}

/* How many words differ, or one more than are few. */
static size_t differing(const uint64_t *x, const uint64_t *y, size_t words, size_t few)
{
    size_t n = 0;

    for (size_t i = 0; i < words && n <= few; i++)
        n += x[i] != y[i];
    return n;
}

/* A page that has been let go of, which shows the image again: notes what it was, or puts it back.
 */
static void note_page(struct resting *r, uint64_t *page, const uint64_t *was)
{
    size_t words = r->maps.page / sizeof(*page), few = r->maps.page / 4096 * FEW_WORDS;
    size_t n = differing(page, was, words, few);
    bool keep = n > few || n > WORDS_MAX - r->count;

    for (size_t i = 0; i < words && n > 0; i++) {
        if (page[i] == was[i])
            continue;
        if (keep)
            page[i] = was[i];
        else
            r->words[r->count++] = (struct changed_word){page + i, was[i]};
    }
}

static void let_go_of_run(struct resting *r, char *at, size_t pages)
{
    size_t bytes = pages * r->maps.page;
    uint64_t *kept = (uint64_t *)r->kept;

    for (size_t i = 0; i < bytes / sizeof(*kept); i++)
        kept[i] = ((uint64_t *)at)[i];
    if (raw(SYS_madvise, (long)at, (long)bytes, MADV_DONTNEED, 0, 0, 0) < 0)
        return;
    for (size_t i = 0; i < bytes; i += r->maps.page)
        note_page(r, (uint64_t *)(at + i), (const uint64_t *)(r->kept + i));
}

/* False: something has come meanwhile. */
static bool let_go_of_map(struct resting *r, const struct map *m)
{
    uint64_t flags[PAGES_AT_ONCE];

    for (unsigned long at = m->from; at < m->to;) {
        size_t left = (m->to - at) / r->maps.page;
        size_t pages = left < PAGES_AT_ONCE ? left : PAGES_AT_ONCE;
        if (is_over(r, 0) || !maps_flags(&r->maps, at, flags, pages))
            return false;
        for (size_t i = 0; i < pages;) {
            size_t run = 0;
            while (i + run < pages && (run + 1) * r->maps.page <= RUN_BYTES &&
                   is_own(flags[i + run]))
                run++;
            if (run)
                let_go_of_run(r, (char *)at + i * r->maps.page, run);
            i += run ? run : 1;
        }
        at += pages * r->maps.page;
    }
    return true;
}

static void put_back(const struct resting *r)
{
    for (size_t i = 0; i < r->count; i++)
        *r->words[i].at = r->words[i].value;
}

static void rest(struct resting *r)
{
    bool quiet = true;

    for (size_t i = 0; i < r->maps.count && quiet; i++)
        if (r->maps.map[i].image && (r->maps.map[i].prot & PROT_WRITE))
            quiet = let_go_of_map(r, &r->maps.map[i]);
    if (quiet)
        is_over(r, -1);
    put_back(r);
}

void pages_rest(int until_readable)
{
    uint64_t all = ~0ull, before = 0;
    struct resting *r;

    if (heap_frozen_bytes() == 0 || !has_one_thread())
        return;
    r = mmap(NULL, sizeof(*r), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (r == MAP_FAILED)
        return;
    raw(SYS_rt_sigprocmask, SIG_SETMASK, (long)&all, (long)&before, 8, 0, 0);
    r->wakes = until_readable;
    r->maps.pagemap = -1;
    r->signals = (int)raw(SYS_signalfd4, -1, (long)&all, 8, SFD_CLOEXEC, 0, 0);
    if (r->signals >= 0 && maps_read(&r->maps))
        rest(r);
    maps_done(&r->maps);
    if (r->signals >= 0)
        raw(SYS_close, r->signals, 0, 0, 0, 0, 0);
    munmap(r, sizeof(*r));
    raw(SYS_rt_sigprocmask, SIG_SETMASK, (long)&before, 0, 8, 0, 0);
}
