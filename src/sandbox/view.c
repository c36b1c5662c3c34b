/*
 * What a box is told about the machine it runs on: the box's own size, and nothing of the host's.
 * Programs that size themselves read a handful of files in /proc. Those are ordinary files of ours,
 * made once for each size by the zygote and bound over the kernel's. Nothing else in /proc is there
 * but processes.
 *
 * How the rest is taken away: each box mounts a whole proc of its own; looks up the few entries
 * that it keeps, which stay for as long as something holds them (a mount, an open descriptor of
 * init); and then turns on `subset=pid`, after which the kernel finds no entry that nobody holds.
 * So the list below is complete, whatever a kernel or a module adds to /proc tomorrow. Measured on
 * a busy machine: this costs 55 us a box (`./dev bench box`); a tmpfs with files for each box would
 * cost 65 us more, a mask over every other entry 5 us for each of sixty entries.
 *
 * A second user namespace inside (a branch of a session) still works. The kernel allows a new mount
 * of proc only where a proc without covers can be seen. A branch begins in the zygote's mount
 * namespace, and the zygote's proc has none.
 */
#include "sandbox/box_int.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define VIEW_DIR   "/var/lib/retort"
#define VIEW_NONE  VIEW_DIR "/none" /* an empty directory */
#define SIZES_KEPT 16               /* of a pool whose limits are changed */
#define TEXT_MAX   (256 * KiB)
#define BLOCK_MAX  (16 * KiB)
#define CPUS_MAX   128 /* told to a box, however many it has: TEXT_MAX holds as many */

/* What the zygote knows; its children have it by the fork. */
static struct {
    int dir;    /* owned: VIEW_DIR, writable in spite of the seal */
    int uptime; /* owned */
    int64_t boot_us;
    uint64_t memory_bytes;
    unsigned cpus;
    unsigned number; /* of the directory with files of that size */
} view = {.dir = -1, .uptime = -1};

/* --- the zygote: files --- */

/* CLOCK_BOOTTIME, which counts from the start of the pool where view_own_clock() could see to it.
 */
static int64_t boot_clock_us(void)
{
    struct timespec t = {0};

    clock_gettime(CLOCK_BOOTTIME, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

int64_t view_uptime_us(void)
{
    return boot_clock_us() - view.boot_us;
}

unsigned view_cpus(void)
{
    return view.cpus;
}

int view_own_clock(struct err *e)
{
    struct timespec boot = {0}, mono = {0};
    char text[96];

    if (unshare(CLONE_NEWTIME) < 0)
        return 1; /* doctor tells */
    clock_gettime(CLOCK_BOOTTIME, &boot);
    clock_gettime(CLOCK_MONOTONIC, &mono);
    /* One second after its start: a clock that says 0 looks to some programs like no clock. */
    snprintf(text, sizeof(text), "boottime %lld 0\nmonotonic %lld 0\n", 1 - (long long)boot.tv_sec,
             1 - (long long)mono.tv_sec);
    prctl(PR_SET_DUMPABLE, 1); /* else the file would be the host's root's */
    if (fd_write_file_at(AT_FDCWD, "/proc/self/timens_offsets", str_of(text)) < 0)
        return err_sys(e, "set the clock of the pool");
    return 0;
}

int view_open(struct err *e)
{
    struct mount_attr ro = {.attr_set = MOUNT_ATTR_RDONLY};

    if (mount("tmpfs", VIEW_DIR, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC,
              "size=16m,nr_inodes=4096,mode=755") < 0)
        return err_sys(e, "mount %s", VIEW_DIR);
    view.dir = (int)syscall(SYS_open_tree, AT_FDCWD, VIEW_DIR, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    if (view.dir < 0 || mkdir(VIEW_NONE, 0555) < 0)
        return err_sys(e, "prepare %s", VIEW_DIR);
    view.uptime = openat(view.dir, "uptime", O_CREAT | O_WRONLY | O_CLOEXEC, 0444);
    if (view.uptime < 0)
        return err_sys(e, "make the file of the uptime");
    if (syscall(SYS_mount_setattr, AT_FDCWD, VIEW_DIR, 0, &ro, sizeof(ro)) < 0)
        return err_sys(e, "seal %s", VIEW_DIR);
    view.boot_us = boot_clock_us() - 1000000;
    view_tick();
    return 0;
}

/* A fixed width, written over what was there: a reader never finds it empty. */
void view_tick(void)
{
    int64_t us = view_uptime_us();
    char text[64];
    int n = snprintf(text, sizeof(text), "%.2f %.2f", (double)us / 1e6, (double)us / 1e6);

    n += snprintf(text + n, sizeof(text) - (size_t)n, "%*s\n", 40 - n > 0 ? 40 - n : 0, "");
    (void)!pwrite(view.uptime, text, (size_t)n, 0);
}

static void put_meminfo(struct buf *b)
{
    static const char *const none[] = {"Buffers",  "Cached",    "SwapCached", "Active",
                                       "Inactive", "SwapTotal", "SwapFree",   "Dirty",
                                       "Mapped",   "Shmem",     "Slab",       "SReclaimable"};
    unsigned long long total = view.memory_bytes / KiB;

    buf_printf(b, "MemTotal:       %8llu kB\nMemFree:        %8llu kB\nMemAvailable:   %8llu kB\n",
               total, total, total);
    for (size_t i = 0; i < COUNT(none); i++)
        buf_printf(b, "%s:%*s 0 kB\n", none[i], (int)(22 - strlen(none[i])), "");
}

/* Fields of /proc/cpuinfo that tell how many there are, and which of the host's this is. The model
 * and what it can do are the instruction set's to tell, and libraries ask for them. */
static const struct cpu_field {
    const char *name;
    enum { IS_INDEX, IS_COUNT, IS_ZERO, IS_HIDDEN } is;
} cpu_fields[] = {
    {"processor",      IS_INDEX },
    {"physical id",    IS_ZERO  },
    {"siblings",       IS_COUNT },
    {"core id",        IS_INDEX },
    {"cpu cores",      IS_COUNT },
    {"apicid",         IS_INDEX },
    {"initial apicid", IS_INDEX },
    {"microcode",      IS_HIDDEN},
};

static void put_cpu_line(struct buf *b, struct str line, unsigned index)
{
    const char *colon = memchr(line.p, ':', line.n);
    struct str name = str_trim((struct str){line.p, colon ? (size_t)(colon - line.p) : line.n});

    for (size_t i = 0; i < COUNT(cpu_fields); i++) {
        const unsigned value[] = {[IS_INDEX] = index, [IS_COUNT] = view.cpus, [IS_ZERO] = 0};
        if (!colon || !str_is(name, cpu_fields[i].name))
            continue;
        if (cpu_fields[i].is != IS_HIDDEN)
            buf_printf(b, "%.*s: %u\n", (int)(colon - line.p), line.p, value[cpu_fields[i].is]);
        return;
    }
    buf_put(b, line);
    buf_put(b, STR("\n"));
}

/* The host's first processor, as often as the box has one. */
static void put_cpuinfo(struct buf *b)
{
    char *host = b->p + TEXT_MAX; /* see view_make() */
    ssize_t n = fd_read_file_at(AT_FDCWD, "/proc/cpuinfo", host, BLOCK_MAX);
    const char *end = n > 0 ? strstr(host, "\n\n") : NULL;
    struct str block = {end ? host : NULL, end ? (size_t)(end - host) : 0};

    for (unsigned i = 0; i < view.cpus; i++) {
        struct str rest = block, line;
        if (!end)
            buf_printf(b, "processor\t: %u\n", i);
        while (str_next(&rest, '\n', &line))
            put_cpu_line(b, line, i);
        buf_put(b, STR("\n"));
    }
}

/* A counter that does not move: what the host's processors do is not told, and what this box does
 * is told by getrusage() and the files of its processes. */
static void put_stat(struct buf *b)
{
    struct timespec now = {0};

    clock_gettime(CLOCK_REALTIME, &now);
    buf_put(b, STR("cpu  0 0 0 0 0 0 0 0 0 0\n"));
    for (unsigned i = 0; i < view.cpus; i++)
        buf_printf(b, "cpu%u 0 0 0 0 0 0 0 0 0 0\n", i);
    buf_printf(b, "intr 0\nctxt 0\nbtime %lld\nprocesses 1\nprocs_running 1\nprocs_blocked 0\n",
               (long long)(now.tv_sec - view_uptime_us() / 1000000));
}

static void put_loadavg(struct buf *b)
{
    buf_put(b, STR("0.00 0.00 0.00 1/1 1\n"));
}

static const struct view_file {
    const char *name;
    void (*put)(struct buf *b); /* NULL: the one file of the uptime */
} view_files[] = {
    {"meminfo", put_meminfo},
    {"cpuinfo", put_cpuinfo},
    {"stat",    put_stat   },
    {"loadavg", put_loadavg},
    {"uptime",  NULL       },
};

static int make_file(int dir, const struct view_file *f, struct buf *text)
{
    AUTO_CLOSE int fd = -1;
    struct err e;

    if (!f->put)
        return linkat(view.dir, f->name, dir, f->name, 0);
    text->n = 0;
    f->put(text);
    fd = openat(dir, f->name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0444);
    return fd < 0 ? -1 : fd_write_all(fd, buf_str(text), &e);
}

/* Boxes that were given these files have them still: a mount holds what it shows. */
static void forget(unsigned number)
{
    char name[16], path[48];

    snprintf(name, sizeof(name), "%u", number);
    for (size_t i = 0; i < COUNT(view_files); i++) {
        snprintf(path, sizeof(path), "%s/%s", name, view_files[i].name);
        (void)!unlinkat(view.dir, path, 0);
    }
    (void)!unlinkat(view.dir, name, AT_REMOVEDIR);
}

static unsigned cpus_of(const struct box_plan *p)
{
    unsigned want = (unsigned)((p->cpu_percent + 99) / 100);
    cpu_set_t have;
    int most = sched_getaffinity(0, sizeof(have), &have) == 0 ? CPU_COUNT(&have) : 1;

    most = most < CPUS_MAX ? most : CPUS_MAX;
    return want < 1 ? 1 : want > (unsigned)most ? (unsigned)most : want;
}

int view_make(const struct box_plan *p, struct err *e)
{
    unsigned cpus = cpus_of(p);
    char name[16];
    AUTO_CLOSE int dir = -1;
    char *text;
    int rc = 0;

    if (view.cpus == cpus && view.memory_bytes == p->memory_bytes)
        return 0;
    view.cpus = cpus;
    view.memory_bytes = p->memory_bytes;
    snprintf(name, sizeof(name), "%u", ++view.number);
    if (view.number > SIZES_KEPT)
        forget(view.number - SIZES_KEPT);
    /* Not from the heap: what is touched there is touched in every child. */
    text = mmap(NULL, TEXT_MAX + BLOCK_MAX, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                0);
    if (text == MAP_FAILED || mkdirat(view.dir, name, 0755) < 0)
        rc = -1;
    dir = rc < 0 ? -1 : openat(view.dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (size_t i = 0; i < COUNT(view_files) && rc == 0; i++) {
        struct buf b = {.p = text, .cap = TEXT_MAX, .max = TEXT_MAX};
        rc = dir < 0 ? -1 : make_file(dir, &view_files[i], &b);
    }
    if (rc < 0) {
        view.cpus = 0; /* the next one tries again */
        err_sys(e, "tell a box its size");
    }
    if (text != MAP_FAILED)
        munmap(text, TEXT_MAX + BLOCK_MAX);
    return rc;
}

/* --- init: its own /proc --- */

/* Entries of the kernel's own that stay: links to what is of each process, and what uname() says
 * as well. */
static const char *const kept[] = {"/proc/mounts", "/proc/net", "/proc/version"};

static_assert(COUNT(kept) == BOX_PROC_FDS, "a descriptor of init's for each");

static int keep(const char *path, int fd, struct err *e)
{
    AUTO_CLOSE int at = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);

    if (at < 0 || (at != fd && dup3(at, fd, O_CLOEXEC) < 0))
        return err_sys(e, "keep %s", path);
    if (at == fd)
        take_fd(&at);
    return 0;
}

int view_show(const struct box_plan *p, struct err *e)
{
    char from[64], at[32];

    for (size_t i = 0; i < COUNT(view_files); i++) {
        snprintf(from, sizeof(from), VIEW_DIR "/%u/%s", view.number, view_files[i].name);
        snprintf(at, sizeof(at), "/proc/%s", view_files[i].name);
        if (mount(from, at, NULL, MS_BIND, NULL) < 0)
            return err_sys(e, "show %s", at);
    }
    /* With one uid for all, the directory of init's descriptors is the code's own to list. */
    if (p->init_uid != 0 && mount(VIEW_NONE, "/proc/1/fd", NULL, MS_BIND, NULL) < 0)
        return err_sys(e, "hide init's descriptors");
    for (size_t i = 0; i < COUNT(kept); i++)
        if (keep(kept[i], BOX_PROC_FD + (int)i, e) < 0)
            return -1;
    if (mount(NULL, "/proc", NULL, MS_REMOUNT | MS_NOSUID | MS_NODEV | MS_NOEXEC, "subset=pid") < 0)
        return err_sys(e, "take the host out of /proc");
    return 0;
}

int view_verify(const struct box_plan *p, struct err *e)
{
    static const char *const gone[] = {"/proc/cmdline", "/proc/sys", "/proc/vmstat"};
    char text[64];

    for (size_t i = 0; i < COUNT(gone); i++)
        if (probe_refused(access(gone[i], F_OK), ENOENT, gone[i], e) < 0)
            return -1;
    if (fd_read_file_at(AT_FDCWD, "/proc/meminfo", text, sizeof(text)) < 0 ||
        text_number_at(text, 1) != p->memory_bytes / KiB)
        return err_set(e, ERR_HOST, "/proc tells a size that is not the box's");
    return 0;
}
