/* What makes a forked interpreter cheap: see heap_plug() and heap_freeze() in guest.h. */
#include "guest/heap_int.h"

#include <fcntl.h>
#include <malloc.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

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
 * offset of its own address (neighbours then merge), and mapped from there. Only plain
 * memory is: see maps_read_plain().
 *
 * A fork also copies every mapping, at more than a microsecond each, and a library is five of them:
 * headers, code, constants, what the linker has filled in, variables. So the small mappings of
 * files that nobody can write to are taken into the image as well, and whatever is read-only there
 * is executable, too: then a library is two. It opens no door, since the code in a sandbox may make
 * any memory executable. Large ones stay what they are, and are shared with all who use the file.
 *
 * While this runs, a write to any such page between its copy and its new mapping
 * would be lost. Hence: one thread, nothing but this stack frame is written (the
 * stack and the thread block are left as they are), system calls without libc.
 */

#define FILE_SIZE                                                                                  \
    (1ul << 56)      /* past every address: x86 gives out 47 or 56 bits of it, ARM 48 or 52 */
#define PIECE 4096ul /* divides every page size */

static unsigned long frozen_bytes;

unsigned long heap_frozen_bytes(void)
{
    return frozen_bytes;
}

struct freezer {
    int file;
    unsigned long bytes;
    struct maps maps;
};

/* What is read back is compared in words: a libc function may be one of the pages. */
static bool is_written(const struct freezer *z, unsigned long page)
{
    uint64_t copy[PIECE / 8];

    for (unsigned long at = page; at < page + z->maps.page; at += PIECE) {
        const uint64_t *memory = (const uint64_t *)at;
        if (raw(SYS_pread64, z->file, (long)copy, PIECE, (long)at, 0, 0) != (long)PIECE)
            return false;
        for (size_t i = 0; i < PIECE / 8; i++)
            if (copy[i] != memory[i])
                return false;
    }
    return true;
}

static bool write_page(struct freezer *z, unsigned long page)
{
    long size = (long)z->maps.page;

    z->bytes += z->maps.page;
    return raw(SYS_pwrite64, z->file, (long)page, size, (long)page, 0, 0) == size &&
           is_written(z, page);
}

/* Calls for a whole mapping: does it have a page of its own; write it out. */
static bool scan(struct freezer *z, const struct map *m, bool write, bool *ret_own)
{
    uint64_t flags[PAGES_AT_ONCE];

    for (unsigned long at = m->from; at < m->to;) {
        size_t left = (m->to - at) / z->maps.page;
        size_t pages = left < PAGES_AT_ONCE ? left : PAGES_AT_ONCE;
        if (!maps_flags(&z->maps, at, flags, pages))
            return false;
        for (size_t i = 0; i < pages; i++) {
            *ret_own |= is_own(flags[i]);
            /* An absent page of a file mapping is the file's, not zero: take it too. */
            if (write && ((flags[i] & (PAGEMAP_IN | PAGEMAP_SWAP)) || !m->anonymous) &&
                !write_page(z, at + i * z->maps.page))
                return false;
        }
        at += pages * z->maps.page;
    }
    return true;
}

static bool map_image(const struct freezer *z, const struct map *m, int prot)
{
    return raw(SYS_mmap, (long)m->from, (long)(m->to - m->from), prot, MAP_PRIVATE | MAP_FIXED,
               z->file, (long)m->from) == (long)m->from;
}

static bool is_small_file(const struct map *m)
{
    return m->plain && !m->anonymous && !(m->prot & PROT_WRITE) && m->to - m->from <= HEAP_SMALL;
}

static const char *freeze_all(struct freezer *z)
{
    for (size_t i = 0; i < z->maps.count; i++) {
        const struct map *m = &z->maps.map[i];
        bool own = false;
        if (m->plain && !scan(z, m, false, &own))
            return "cannot read page flags";
        if (!own && !is_small_file(m))
            continue;
        if (!scan(z, m, true, &own)) {
            if (own)
                return "cannot copy memory";
            continue; /* such as a file that has become shorter */
        }
        /* A system may forbid to execute what is no file of its own. */
        if (!(m->prot & PROT_WRITE) && map_image(z, m, m->prot | PROT_EXEC))
            continue;
        if (own && !map_image(z, m, m->prot))
            return "cannot map the image";
    }
    return NULL;
}

int heap_freeze(struct err *e)
{
    struct freezer z; /* half a megabyte of stack, on purpose: see above */
    const char *failed;

    if (!has_one_thread())
        return err_set(e, ERR_HOST, "more than one thread");
    z.bytes = 0;
    z.file = memfd_create(HEAP_IMAGE_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (z.file < 0 || ftruncate(z.file, FILE_SIZE) < 0)
        return err_sys(e, "make the image file");
    failed = maps_read(&z.maps) && maps_read_plain(&z.maps) ? freeze_all(&z)
                                                            : "cannot read the memory map";
    maps_done(&z.maps);
    /* The mappings hold it, and from here on nobody can write to it. */
    if (fcntl(z.file, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
        failed = failed ? failed : "cannot seal the image";
    close(z.file);
    frozen_bytes = z.bytes;
    return failed ? err_set(e, ERR_HOST, "%s", failed) : 0;
}
