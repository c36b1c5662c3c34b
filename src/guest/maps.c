/* This process's mappings and pages, as the kernel tells them. */
#include "guest/heap_int.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

long raw(long nr, long a, long b, long c, long d, long e, long f)
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

static bool starts_with(const char *p, const char *what)
{
    while (*what && *p == *what) {
        p++;
        what++;
    }
    return !*what;
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
    ret->image = starts_with(p, "/memfd:" HEAP_IMAGE_NAME " ");
    if (perms[3] != 'p' || !(ret->prot & PROT_READ) || (p[0] == '[' && p[1] != 'h'))
        return false; /* shared, unreadable, or one of the kernel's own: [stack], [vdso], ... */
    if (self >= ret->from && self < ret->to)
        return false;
    return !(thread >= ret->from && thread < ret->to); /* the kernel writes rseq there */
}

static bool read_text(struct maps *m)
{
    long fd = raw(SYS_openat, AT_FDCWD, (long)"/proc/self/maps", O_RDONLY | O_CLOEXEC, 0, 0, 0);
    size_t n = 0;
    long got = -1;

    while (fd >= 0 &&
           (got = raw(SYS_read, fd, (long)(m->text + n), (long)(MAPS_TEXT - 1 - n), 0, 0, 0)) > 0)
        n += (size_t)got;
    if (fd >= 0)
        raw(SYS_close, fd, 0, 0, 0, 0, 0);
    m->text[n] = '\0';
    return got == 0 && n < MAPS_TEXT - 1;
}

bool maps_read(struct maps *m)
{
    m->count = 0;
    m->page = (size_t)sysconf(_SC_PAGESIZE);
    m->pagemap =
        (int)raw(SYS_openat, AT_FDCWD, (long)"/proc/self/pagemap", O_RDONLY | O_CLOEXEC, 0, 0, 0);
    if (m->pagemap < 0 || !read_text(m)) {
        maps_done(m);
        return false;
    }
    for (const char *p = m->text; *p && m->count < MAPS_MAX;) {
        if (parse_map(p, &m->map[m->count]))
            m->count++;
        while (*p && *p++ != '\n')
            ;
    }
    return m->count < MAPS_MAX;
}

/* --- which are plain --- */

/* VmFlags of /proc/self/smaps that any memory may have; see proc(5). */
static bool is_plain_flag(char a, char b)
{
    static const char plain[] = "rd wr ex mr mw me ac nr sd hg nh mg ";

    for (const char *p = plain; *p; p += 3)
        if (p[0] == a && p[1] == b)
            return true;
    return false;
}

static bool all_plain(const char *p)
{
    for (; *p; p++)
        if (*p != ' ' && !is_plain_flag(p[0], p[1]))
            return false;
        else
            p += *p != ' ';
    return true;
}

/* Both lists are in the order of addresses. */
static void take_line(struct maps *m, const char *line, size_t *at, unsigned long *from)
{
    const char *p = line;
    unsigned long address = hex(&p);

    if (p > line && *p == '-')
        *from = address;
    if (!starts_with(line, "VmFlags:"))
        return;
    while (*at < m->count && m->map[*at].from < *from)
        ++*at;
    if (*at < m->count && m->map[*at].from == *from)
        m->map[*at].plain = all_plain(line + 8);
}

bool maps_read_plain(struct maps *m)
{
    long fd = raw(SYS_openat, AT_FDCWD, (long)"/proc/self/smaps", O_RDONLY | O_CLOEXEC, 0, 0, 0);
    char piece[4096], line[256];
    unsigned long from = 0;
    size_t n = 0, at = 0;
    long got = -1;

    for (size_t i = 0; i < m->count; i++)
        m->map[i].plain = false;
    while (fd >= 0 && (got = raw(SYS_read, fd, (long)piece, sizeof(piece), 0, 0, 0)) > 0) {
        for (long i = 0; i < got; i++) {
            if (piece[i] != '\n') { // NOLINT(clang-analyzer-core.*): the kernel has set it
                line[n] = piece[i];
                n += n < sizeof(line) - 1;
                continue;
            }
            line[n] = '\0';
            n = 0;
            take_line(m, line, &at, &from);
        }
    }
    if (fd >= 0)
        raw(SYS_close, fd, 0, 0, 0, 0, 0);
    return got == 0;
}

void maps_done(struct maps *m)
{
    if (m->pagemap >= 0)
        raw(SYS_close, m->pagemap, 0, 0, 0, 0, 0);
    m->pagemap = -1;
}

bool maps_flags(const struct maps *m, unsigned long at, uint64_t *ret, size_t pages)
{
    return raw(SYS_pread64, m->pagemap, (long)ret, (long)(pages * 8), (long)(at / m->page * 8), 0,
               0) == (long)(pages * 8);
}

bool is_own(uint64_t flags)
{
    return (flags & PAGEMAP_SWAP) || ((flags & PAGEMAP_IN) && !(flags & PAGEMAP_OF_FILE));
}

bool has_one_thread(void)
{
    DIR *d = opendir("/proc/self/task");
    int count = 0;

    while (d && readdir(d))
        count++;
    if (d)
        closedir(d);
    return count == 3; /* with . and .. */
}
