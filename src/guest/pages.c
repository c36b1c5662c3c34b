/*
 * Pages of a kernel. A new one shares all its memory with the zygote and pays about
 * 2.5 us for each page that it touches first. Which pages a first cell touches is
 * much the same every time, so the zygote has a child run typical cells, learns
 * what that child touched, and every kernel takes those pages while it waits for
 * its first cell. What becomes of them when a session rests: rest.c.
 */
#include "guest/heap_int.h"

#include <poll.h>
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
