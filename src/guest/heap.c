/* What makes a forked interpreter cheap: see heap_plug() and heap_freeze() in guest.h. */
#include "guest/guest.h"

#include <dirent.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE 4096ul

void heap_plug(void)
{
    char *high = NULL;

    malloc_trim(0);
    for (int i = 0; i < 64; i++) {
        char *p = malloc(120000);
        if (p > high)
            high = p;
    }
    /* Never freed, by intent: each allocation below the high mark fills a hole for good. */
    for (size_t size = 120000; size >= 24; size -= size > 4096 ? 512 : 16) {
        for (;;) {
            char *p = malloc(size);
            if (!p || p > high)
                break;
        }
    }
}

/*
 * Freezing. fork() copies page tables of memory that has anonymous pages, 18 us a
 * megabyte; of a private file mapping that nobody has written to it copies nothing.
 * So every mapping with anonymous pages is written into one memory file, at the
 * offset of its own address (neighbours then merge), and mapped from there.
 *
 * While this runs, a write to any such page between its copy and its new mapping
 * would be lost. Hence: one thread, nothing but this stack frame is written (the
 * stack and the thread block are left as they are), system calls without libc.
 */

#define MAPS_MAX   2048
#define MAPS_TEXT  (384 * KiB)
#define FILE_SIZE  (1ul << 47)
#define PAGEMAP_IN (1ull << 63)
#define PAGEMAP_OF_FILE (1ull << 61)

struct map {
    unsigned long from, to;
    int prot;
    bool anonymous; /* has no file behind it: absent pages are zero pages */
};

struct freezer {
    int maps_fd, pagemap, file;
    size_t count;
    unsigned long bytes;
    struct map map[MAPS_MAX];
    char text[MAPS_TEXT];
};

static unsigned long frozen_bytes;

unsigned long heap_frozen_bytes(void)
{
    return frozen_bytes;
}

static long raw(long nr, long a, long b, long c, long d, long e, long f)
{
#if defined(__x86_64__)
    long ret;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "=a"(ret)
                     : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return ret;
#elif defined(__aarch64__)
    register long x8 __asm__("x8") = nr;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;
    __asm__ volatile("svc 0"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                     : "memory");
    return x0;
#else
    return syscall(nr, a, b, c, d, e, f);
#endif
}

static unsigned long hex(const char **p)
{
    unsigned long v = 0;

    for (;; (*p)++) {
        char c = **p;
        int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
        if (digit < 0)
            return v;
        v = v << 4 | (unsigned long)digit;
    }
}

/* One line of /proc/self/maps; false when it is not for us. */
static bool parse_map(const char *p, struct map *ret)
{
    unsigned long self = (unsigned long)__builtin_frame_address(0);
    unsigned long thread = (unsigned long)__builtin_thread_pointer();
    unsigned long inode = 0;
    const char *perms;

    ret->from = hex(&p);
    p++;
    ret->to = hex(&p);
    perms = ++p;
    ret->prot = (perms[0] == 'r' ? PROT_READ : 0) | (perms[1] == 'w' ? PROT_WRITE : 0) |
                (perms[2] == 'x' ? PROT_EXEC : 0);
    for (int field = 0; field < 3; field++) { /* permissions, offset, device */
        while (*p != ' ')
            p++;
        p++;
    }
    while (*p >= '0' && *p <= '9')
        inode = inode * 10 + (unsigned long)(*p++ - '0');
    while (*p == ' ')
        p++;
    ret->anonymous = inode == 0;
    if (perms[3] != 'p' || !(ret->prot & PROT_READ) || (p[0] == '[' && p[1] != 'h'))
        return false; /* shared, unreadable, or one of the kernel's own: [stack], [vdso], ... */
    if (self >= ret->from && self < ret->to)
        return false;
    return !(thread >= ret->from && thread < ret->to); /* the kernel writes rseq there */
}

static bool read_maps(struct freezer *z)
{
    size_t n = 0;
    long got;

    while ((got = raw(SYS_read, z->maps_fd, (long)(z->text + n), (long)(MAPS_TEXT - 1 - n), 0, 0,
                      0)) > 0)
        n += (size_t)got;
    if (got < 0 || n == MAPS_TEXT - 1)
        return false;
    z->text[n] = '\0';
    for (const char *p = z->text; *p;) {
        if (z->count == MAPS_MAX)
            return false;
        if (parse_map(p, &z->map[z->count]))
            z->count++;
        while (*p && *p++ != '\n')
            ;
    }
    return true;
}

/* Page flags of up to 512 pages from `at`. */
static bool read_pagemap(const struct freezer *z, unsigned long at, uint64_t *ret, size_t pages)
{
    return raw(SYS_pread64, z->pagemap, (long)ret, (long)(pages * 8), (long)(at / PAGE * 8), 0, 0) ==
           (long)(pages * 8);
}

static bool write_run(const struct freezer *z, unsigned long from, unsigned long to)
{
    while (from < to) {
        long n = raw(SYS_pwrite64, z->file, (long)from, (long)(to - from), (long)from, 0, 0);
        if (n <= 0)
            return false;
        from += (unsigned long)n;
    }
    return true;
}

/* Copies one mapping; *ret_any tells whether it had a page of its own at all. */
static bool copy_map(struct freezer *z, const struct map *m, bool dry, bool *ret_any)
{
    uint64_t flags[512];

    for (unsigned long at = m->from; at < m->to;) {
        size_t pages = (m->to - at) / PAGE < 512 ? (m->to - at) / PAGE : 512;
        if (!read_pagemap(z, at, flags, pages))
            return false;
        for (size_t i = 0; i < pages; i++) {
            bool in = flags[i] & PAGEMAP_IN;
            if (in && !(flags[i] & PAGEMAP_OF_FILE))
                *ret_any = true;
            /* An absent page of a file mapping is the file's, not zero: take it too. */
            if (!dry && (in || !m->anonymous)) {
                unsigned long page = at + i * PAGE;
                if (!write_run(z, page, page + PAGE))
                    return false;
                z->bytes += PAGE;
            }
        }
        at += pages * PAGE;
    }
    return true;
}

static const char *freeze_all(struct freezer *z)
{
    for (size_t i = 0; i < z->count; i++) {
        const struct map *m = &z->map[i];
        bool any = false, ignored = false;
        if (!copy_map(z, m, true, &any))
            return "cannot read page flags";
        if (!any)
            continue;
        if (!copy_map(z, m, false, &ignored))
            return "cannot copy memory";
        if (raw(SYS_mmap, (long)m->from, (long)(m->to - m->from), m->prot, MAP_PRIVATE | MAP_FIXED,
                z->file, (long)m->from) != (long)m->from)
            return "cannot map the image";
    }
    return NULL;
}

static bool has_one_thread(void)
{
    DIR *d = opendir("/proc/self/task");
    int count = 0;

    while (d && readdir(d))
        count++;
    if (d)
        closedir(d);
    return count == 3; /* with . and .. */
}

int heap_freeze(struct err *e)
{
    struct freezer z; /* half a megabyte of stack, on purpose: see above */
    const char *failed;

    if (!has_one_thread())
        return err_set(e, ERR_HOST, "more than one thread");
    z.count = 0;
    z.bytes = 0;
    z.maps_fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    z.pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    z.file = memfd_create("zygote", MFD_CLOEXEC);
    if (z.maps_fd < 0 || z.pagemap < 0 || z.file < 0 || ftruncate(z.file, FILE_SIZE) < 0)
        return err_sys(e, "open what freezing needs");
    failed = read_maps(&z) ? freeze_all(&z) : "cannot read the memory map";
    close(z.maps_fd);
    close(z.pagemap);
    close(z.file); /* the mappings hold it; nobody can write to it any more */
    frozen_bytes = z.bytes;
    return failed ? err_set(e, ERR_HOST, "%s", failed) : 0;
}
