/*
 * Pages of a kernel. A new one shares all its memory with the zygote and pays about
 * 2.5 us for each page that it touches first. Which pages a first cell touches is
 * much the same every time, so the zygote has a child run typical cells, learns
 * what that child touched, and every kernel takes those pages while it waits for
 * its first cell: at once those that any cell touches, 4 MB; and when the server says
 * so (MSG_WARM) those of the pool's packages, 5 MB more with pandas. What becomes of
 * them when a session rests: rest.c.
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

/* Owned by the zygote, read by every kernel: behind the ranges of each lesson one without pages. */
static struct page_range *ranges;
static size_t range_count;
static size_t next_range;

/* --- learning --- */

struct learner {
    int out;
    struct page_range open; /* being extended */
    size_t told, known;     /* of ranges[]: told before this lesson; of these, all below here */
    struct maps maps;
};

static bool write_range(int out, const struct page_range *r)
{
    const char *p = (const char *)r;
    long n = sizeof(*r);

    while (n > 0) {
        long done = raw(SYS_write, out, (long)p, n, 0, 0, 0);
        if (done <= 0)
            return false;
        p += done;
        n -= done;
    }
    return true;
}

static bool put_range(struct learner *l)
{
    if (l->open.pages == 0)
        return true;
    if (range_count == RANGES_MAX || !write_range(l->out, &l->open))
        return false;
    ranges[range_count++] = l->open;
    l->open.pages = 0;
    return true;
}

/* Both go up in address. */
static bool is_told(struct learner *l, unsigned long page, uint32_t written)
{
    const struct page_range *r = &ranges[l->known];

    while (l->known < l->told && r->from + r->pages * l->maps.page <= page)
        r = &ranges[++l->known];
    return l->known < l->told && r->from <= page && r->written >= written;
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
            if (!(flags[i] & PAGEMAP_IN) || is_told(l, page, written))
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

static bool make_room(void)
{
    void *room = ranges ? ranges
                        : mmap(NULL, RANGES_MAX * sizeof(*ranges), PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (room != MAP_FAILED)
        ranges = room;
    return room != MAP_FAILED;
}

void pages_teach(int out)
{
    static const struct page_range end;
    struct learner l = {.out = out, .told = range_count};

    if (!make_room() || !maps_read(&l.maps))
        return;
    for (size_t i = 0; i < l.maps.count; i++)
        if ((l.maps.map[i].image || !l.maps.map[i].anonymous) && !learn_map(&l, &l.maps.map[i]))
            break;
    maps_done(&l.maps);
    (void)write_range(out, &end);
}

void pages_learn(int in)
{
    size_t size = RANGES_MAX * sizeof(*ranges), n = 0;
    ssize_t got;

    if (!make_room())
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

void pages_take(bool all, int until_readable)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);

    while (next_range < range_count && !is_readable(until_readable)) {
        for (int i = 0; i < STEP && next_range < range_count; i++, next_range++) {
            const struct page_range *r = &ranges[next_range];
            if (r->pages == 0 && !all)
                return;
            if (r->pages > 0)
                raw(SYS_madvise, (long)r->from, (long)(r->pages * page),
                    r->written ? MADV_POPULATE_WRITE : MADV_POPULATE_READ, 0, 0, 0);
        }
    }
}
