/*
 * Landlock: no device nodes, no ioctls on devices, no abstract sockets and no signals across the
 * edge of the box.
 *
 * Landlock allows writing everywhere; the read-only mounts decide where writing works. Landlock's
 * rules belong to inodes: a rule for the workspace alone would not cover another directory that is
 * mounted on /workspace later, as a branch of a session does.
 */
#include "sandbox/box_int.h"

#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Newer than the headers of the reference platform. */
struct ruleset_attr {
    uint64_t handled_access_fs;
    uint64_t handled_access_net;
    uint64_t scoped;
};
#define FS_TRUNCATE    (1ull << 14)
#define FS_IOCTL_DEV   (1ull << 15)
#define SCOPE_ABSTRACT (1ull << 0)
#define SCOPE_SIGNAL   (1ull << 1)
#define FS_ABI_1       ((1ull << 13) - 1)
#define FS_REFER       (1ull << 13)
#define FS_NEVER       (LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_BLOCK | FS_IOCTL_DEV)

static uint64_t fs_of_abi(int abi)
{
    return FS_ABI_1 | (abi >= 2 ? FS_REFER : 0) | (abi >= 3 ? FS_TRUNCATE : 0) |
           (abi >= 5 ? FS_IOCTL_DEV : 0);
}

int landlock_enter(struct box *b, struct err *e)
{
    int abi = (int)syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    struct ruleset_attr attr = {0};
    struct landlock_path_beneath_attr rule = {0};
    AUTO_CLOSE int set = -1;
    AUTO_CLOSE int root = -1;
    size_t size;

    (void)b;
    if (abi < 1)
        return 1; /* not built in or not enabled: doctor tells, isolation_floor decides */
    attr.handled_access_fs = fs_of_abi(abi);
    attr.scoped = abi >= 6 ? SCOPE_ABSTRACT | SCOPE_SIGNAL : 0;
    size = abi >= 6 ? sizeof(attr) : abi >= 4 ? 16 : 8;
    set = (int)syscall(SYS_landlock_create_ruleset, &attr, size, 0);
    root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (set < 0 || root < 0)
        return err_sys(e, "make the rule set");
    rule.allowed_access = attr.handled_access_fs & ~FS_NEVER;
    rule.parent_fd = root;
    if (syscall(SYS_landlock_add_rule, set, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0)
        return err_sys(e, "add the rule");
    if (syscall(SYS_landlock_restrict_self, set, 0) < 0)
        return err_sys(e, "restrict");
    return 0;
}

/* A character device 0:0 needs no capability (it is overlayfs's whiteout), so nothing but
 * Landlock can be what refuses it. */
int landlock_verify(struct box *b, struct err *e)
{
    (void)b;
    return probe_refused(mknod("/tmp/.probe", S_IFCHR | 0600, 0), EACCES, "making a device node",
                         e);
}
