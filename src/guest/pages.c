/*
 * Pages of a kernel. A new one shares all its memory with the zygote and pays about
 * 2.5 us for each page that it touches first. Which pages a first cell touches is
 * much the same every time, so the zygote has a child run typical cells, learns
 * what that child touched, and every kernel takes those pages while it waits for
 * its first cell. And when a session rests, almost half of the pages it has written
 * to are again what they were (reference counts came back): they are given back.
 */
#include "guest/heap_int.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif

#define RANGES_MAX 8192
#define STEP       16 /* ranges between two looks at the socket: about 0.1 ms */

struct page_range {
    unsigned long from;
    uint32_t pages;
    uint32_t written; /* else only read */
};

static struct page_range *ranges; /* owned by the zygote, read by every kernel */
static size_t range_count;
static size_t next_range;

/* --- learning --- */

struct learner {
    int out;
    struct page_range open; /* being extended */
    struct maps maps;
};

static bool put_range(struct learner *l)
{
    const char *p = (const char *)&l->open;
    long n = sizeof(l->open);

    while (l->open.pages && n > 0) {
        long done = raw(SYS_write, l->out, (long)p, n, 0, 0, 0);
        if (done <= 0)
            return false;
        p += done;
        n -= done;
    }
    l->open.pages = 0;
    return true;
}

static bool learn_map(struct learner *l, const struct map *m)
{
    uint64_t flags[PAGES_AT_ONCE];

    for (unsigned long at = m->from; at < m->to;) {
        size_t left = (m->to - at) / l->maps.page;
        size_t pages = left < PAGES_AT_ONCE ? left : PAGES_AT_ONCE;
        if (!maps_flags(&l->maps, at, flags, pages))
            return false;
        for (size_t i = 0; i < pages; i++) {
            unsigned long page = at + i * l->maps.page;
            uint32_t written = is_own(flags[i]) && m->image;
            if (!(flags[i] & PAGEMAP_IN))
                continue;
            if (l->open.pages && l->open.written == written &&
                l->open.from + l->open.pages * l->maps.page == page) {
                l->open.pages++;
                continue;
            }
            if (!put_range(l))
                return false;
            l->open = (struct page_range){page, 1, written};
        }
        at += pages * l->maps.page;
    }
    return put_range(l);
}

void pages_teach(int out)
{
    struct learner l = {.out = out};

    if (!maps_read(&l.maps))
        return;
    for (size_t i = 0; i < l.maps.count; i++)
        if ((l.maps.map[i].image || !l.maps.map[i].anonymous) && !learn_map(&l, &l.maps.map[i]))
            break;
    maps_done(&l.maps);
}

void pages_learn(int in)
{
    size_t size = RANGES_MAX * sizeof(*ranges), n = 0;
    ssize_t got;

    ranges = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (ranges == MAP_FAILED)
        return;
    while (n < size && (got = read(in, (char *)ranges + n, size - n)) > 0)
        n += (size_t)got;
    range_count = n / sizeof(*ranges);
}

/* --- taking pages beforehand --- */

static bool is_readable(int fd)
{
    struct pollfd p = {fd, POLLIN, 0};

    return poll(&p, 1, 0) != 0;
}

void pages_take(int until_readable)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);

    while (next_range < range_count && !is_readable(until_readable)) {
        for (int i = 0; i < STEP && next_range < range_count; i++, next_range++) {
            const struct page_range *r = &ranges[next_range];
            raw(SYS_madvise, (long)r->from, (long)(r->pages * page),
                r->written ? MADV_POPULATE_WRITE : MADV_POPULATE_READ, 0, 0, 0);
        }
    }
    next_range = range_count; /* once the first cell has come it is too late to be early */
}

/* --- giving pages back --- */

#define RUN_BYTES (128 * KiB) /* on the stack; at least two pages of any size */

static bool page_same(const char *a, const char *b, size_t page)
{
    const uint64_t *x = (const uint64_t *)a, *y = (const uint64_t *)b;

    for (size_t i = 0; i < page / sizeof(*x); i++)
        if (x[i] != y[i])
            return false;
    return true;
}

static void page_copy(char *to, const char *from, size_t page)
{
    uint64_t *x = (uint64_t *)to;
    const uint64_t *y = (const uint64_t *)from;

    for (size_t i = 0; i < page / sizeof(*x); i++)
        x[i] = y[i];
}

/* Drops a run of pages, so that the image shows through, and puts back those that differ from it.
 * In between the heap is not what it should be: nobody may look but this function. */
static void give_back_run(char *at, size_t pages, size_t page)
{
    char kept[RUN_BYTES];

    for (size_t i = 0; i < pages; i++)
        page_copy(kept + i * page, at + i * page, page);
    if (raw(SYS_madvise, (long)at, (long)(pages * page), MADV_DONTNEED, 0, 0, 0) < 0)
        return;
    for (size_t i = 0; i < pages; i++)
        if (!page_same(kept + i * page, at + i * page, page))
            page_copy(at + i * page, kept + i * page, page);
}

static void give_back_map(const struct maps *maps, const struct map *m)
{
    uint64_t flags[PAGES_AT_ONCE];

    for (unsigned long at = m->from; at < m->to;) {
        size_t left = (m->to - at) / maps->page;
        size_t pages = left < PAGES_AT_ONCE ? left : PAGES_AT_ONCE;
        if (!maps_flags(maps, at, flags, pages))
            return;
        for (size_t i = 0; i < pages;) {
            size_t run = 0;
            while (i + run < pages && (run + 1) * maps->page <= RUN_BYTES && is_own(flags[i + run]))
                run++;
            if (run)
                give_back_run((char *)at + i * maps->page, run, maps->page);
            i += run ? run : 1;
        }
        at += pages * maps->page;
    }
}

void pages_give_back(void)
{
    struct maps maps;
    uint64_t all = ~0ull, before = 0;

    if (range_count == 0 || !has_one_thread() || !maps_read(&maps))
        return;
    raw(SYS_rt_sigprocmask, SIG_SETMASK, (long)&all, (long)&before, 8, 0, 0);
    for (size_t i = 0; i < maps.count; i++)
        if (maps.map[i].image && (maps.map[i].prot & PROT_WRITE))
            give_back_map(&maps, &maps.map[i]);
    raw(SYS_rt_sigprocmask, SIG_SETMASK, (long)&before, 0, 8, 0, 0);
    maps_done(&maps);
}
