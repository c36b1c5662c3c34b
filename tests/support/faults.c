/*
 * A program's clock and disk, as a test wants them: for LD_PRELOAD. The file that
 * RETORT_TEST_FAULTS names is mapped, so that a change of it counts at once, whoever the program
 * has become by then.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct faults {
    int64_t clock_s; /* by how much the clock is ahead */
    int64_t device;  /* of the file system that fails */
    int64_t number;  /* with this errno; 0: it does not */
    int64_t holds;   /* long writes to it wait until this is 0 again */
    int64_t held;    /* how many do, or wait in syncfs(): told by the program */
    int64_t stuck;   /* syncs of it wait until this is 0 again, but for the file of this number */
};

#define LONG_WRITE ((size_t)64 * 1024)

static struct faults none;
static volatile struct faults *wanted = &none;

/* What the program starts is left alone. */
__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("RETORT_TEST_FAULTS");
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    void *map =
        fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(none), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    if (fd >= 0)
        close(fd);
    if (map != MAP_FAILED)
        wanted = map;
    unsetenv("LD_PRELOAD");
}

#define REAL(name) ((__typeof__(&(name)))dlsym(RTLD_NEXT, #name))

/* --- the clock --- */

int clock_gettime(clockid_t id, struct timespec *ret)
{
    int rc = REAL(clock_gettime)(id, ret);

    if (rc == 0 && id == CLOCK_REALTIME)
        ret->tv_sec += wanted->clock_s;
    return rc;
}

time_t time(time_t *ret)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    if (ret)
        *ret = t.tv_sec;
    return t.tv_sec;
}

/* --- the disk --- */

static int is_of_device(int fd)
{
    struct stat st;

    return fstat(fd, &st) == 0 && (int64_t)st.st_dev == wanted->device;
}

static int fails(int fd)
{
    if (!wanted->number || !is_of_device(fd))
        return 0;
    errno = (int)wanted->number;
    return 1;
}

/* Waits where nothing is to be synced. */
static void wait_for_sync(int fd, int64_t counts)
{
    struct stat st;

    if (!wanted->stuck || !is_of_device(fd) ||
        (fstat(fd, &st) == 0 && (int64_t)st.st_ino == wanted->stuck))
        return;
    __atomic_fetch_add(&wanted->held, counts, __ATOMIC_SEQ_CST);
    while (wanted->stuck)
        usleep(1000);
}

ssize_t write(int fd, const void *bytes, size_t n)
{
    if (n >= LONG_WRITE && wanted->holds && is_of_device(fd)) {
        __atomic_fetch_add(&wanted->held, 1, __ATOMIC_SEQ_CST);
        while (wanted->holds)
            usleep(1000);
    }
    return fails(fd) ? -1 : REAL(write)(fd, bytes, n);
}

ssize_t pwrite(int fd, const void *bytes, size_t n, off_t at)
{
    return fails(fd) ? -1 : REAL(pwrite)(fd, bytes, n, at);
}

int fsync(int fd)
{
    wait_for_sync(fd, 0);
    return fails(fd) ? -1 : REAL(fsync)(fd);
}

int syncfs(int fd)
{
    wait_for_sync(fd, 1);
    return fails(fd) ? -1 : REAL(syncfs)(fd);
}

int fdatasync(int fd)
{
    wait_for_sync(fd, 0);
    return fails(fd) ? -1 : REAL(fdatasync)(fd);
}

int mkdirat(int dir, const char *path, mode_t mode)
{
    return fails(dir) ? -1 : REAL(mkdirat)(dir, path, mode);
}
