/*
 * Turns root into the service user, who keeps two capabilities over the user ids of the sandboxes:
 *   CAP_SETUID, CAP_SETGID  to open files of a workspace as the sandbox's own user
 *
 * Theory of operation: the server enters a user namespace. In this namespace uid 0 is the service
 * user, and the ids of sandboxes are mapped to themselves, so that an id means the same here, in
 * the warden and in the kernel. No other id of the host is mapped: the two capabilities cannot be
 * used on anything else. A process cannot write such a map for itself. So a child that stays
 * outside of the namespace writes the map, and exits.
 */
#include "sandbox/server.h"

#include "sandbox/box_int.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define SERVER_NAME "retort"
#define SERVER_CAPS (1u << CAP_SETUID | 1u << CAP_SETGID)
#define LAST_CAP    63

/* --- who --- */

static int find_number(const char *name, struct server_user *ret)
{
    char *end;
    unsigned long id = strtoul(name, &end, 10);

    if (*name < '0' || *name > '9' || *end != '\0' || id == 0 || id >= UID_BASE)
        return -1;
    ret->uid = ret->gid = (uid_t)id;
    return 0;
}

int server_user_find(const char *name, struct server_user *ret, struct err *e)
{
    const struct passwd *pw = geteuid() == 0 ? getpwnam(name ? name : SERVER_NAME) : NULL;

    *ret = (struct server_user){geteuid(), getegid(), false};
    if (geteuid() != 0) {
        pw = name ? getpwnam(name) : NULL;
        if (name && (!pw || pw->pw_uid != geteuid()))
            return err_set(e, ERR_CALLER, "only root can serve as somebody else, such as %s", name);
        return 0;
    }
    if (name && strcmp(name, "root") == 0)
        return 0;
    ret->changes = true;
    if (pw && pw->pw_uid != 0) {
        ret->uid = pw->pw_uid;
        ret->gid = pw->pw_gid;
    } else if (!name) {
        ret->uid = ret->gid = SERVER_UID;
    } else if (pw || find_number(name, ret) < 0) {
        return err_set(e, ERR_CALLER, "there is no user %s to serve as", name);
    }
    if (ret->uid >= UID_BASE || ret->gid == 0 || ret->gid >= UID_BASE)
        return err_set(e, ERR_CALLER, "user %u of group %u cannot be the one to serve as",
                       (unsigned)ret->uid, (unsigned)ret->gid);
    return 0;
}

/* --- the map --- */

static int write_map(pid_t of, const char *file, unsigned own)
{
    char path[64], text[128];

    snprintf(path, sizeof(path), "/proc/%d/%s", (int)of, file);
    snprintf(text, sizeof(text), "0 %u 1\n%u %u %u\n", own, UID_BASE, UID_BASE,
             UID_COUNT * UID_BLOCKS);
    return fd_write_file_at(AT_FDCWD, path, str_of(text));
}

/* Waits for the word that the namespace is there. Its status is the errno. */
static _Noreturn void map_from_outside(int ready, pid_t of, const struct server_user *u)
{
    char word;

    if (read(ready, &word, 1) != 1)
        _exit(ECANCELED);
    if (write_map(of, "uid_map", u->uid) < 0 || write_map(of, "gid_map", u->gid) < 0)
        _exit(errno);
    _exit(0);
}

static int enter_namespace(const struct server_user *u, struct err *e)
{
    int ready[2], status;
    pid_t self = getpid(), child;

    if (pipe2(ready, O_CLOEXEC) < 0)
        return err_sys(e, "pipe");
    child = _Fork(); /* without the event loop's fork handlers */
    if (child == 0) {
        close(ready[1]);
        map_from_outside(ready[0], self, u);
    }
    close(ready[0]);
    /* As root still: where ordinary users may make none, root may. */
    if (child < 0 || unshare(CLONE_NEWUSER) < 0) {
        err_sys(e, "make a user namespace for the server");
        close(ready[1]);
        if (child > 0)
            waitpid(child, NULL, 0);
        return -1;
    }
    (void)!write(ready[1], "", 1);
    close(ready[1]);
    if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        errno = WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
        return err_sys(e, "map the user ids of the server");
    }
    return 0;
}

/* --- rights --- */

static int drop_rights(struct err *e)
{
    /* Uid 0 of the namespace gives nothing at exec either. */
    if (prctl(PR_SET_SECUREBITS, SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_KEEP_CAPS_LOCKED) <
        0)
        return err_sys(e, "set securebits");
    for (int cap = 0; cap <= LAST_CAP; cap++)
        if (prctl(PR_CAPBSET_DROP, cap) < 0 && errno != EINVAL)
            return err_sys(e, "drop capability %d from the bounding set", cap);
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
        return err_sys(e, "clear ambient capabilities");
    if (caps_set(SERVER_CAPS) < 0)
        return err_sys(e, "drop capabilities");
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return err_sys(e, "set no_new_privs");
    return 0;
}

static int verify(struct err *e)
{
    AUTO_CLOSE int secret = open("/etc/shadow", O_RDONLY | O_CLOEXEC);

    if (secret >= 0)
        return err_set(e, ERR_HOST, "root's files can still be read");
    if (probe_refused(setresuid(7, 7, 7), EINVAL, "becoming another user", e) < 0 ||
        probe_refused(mount("none", "/", "tmpfs", 0, NULL), EPERM, "a mount", e) < 0 ||
        probe_refused(caps_set(SERVER_CAPS | 1u << CAP_SYS_ADMIN), EPERM, "a dropped capability",
                      e) < 0)
        return -1;
    return 0;
}

int server_rights_drop(struct err *e)
{
    return drop_rights(e) < 0 || verify(e) < 0 ? -1 : 0;
}

int server_user_become(const struct server_user *u, struct err *e)
{
    if (setgroups(0, NULL) < 0 || setresgid(u->gid, u->gid, u->gid) < 0 ||
        setresuid(u->uid, u->uid, u->uid) < 0)
        return err_sys(e, "become user %u", (unsigned)u->uid);
    return 0;
}

int server_user_enter(const struct server_user *u, struct err *e)
{
    if (!u->changes)
        return 0;
    if (!uids_are_mapped())
        return err_set(e, ERR_HOST,
                       "the user ids of sandboxes are not there, so the server cannot give up "
                       "root; start it as an ordinary user, or say --user root");
    if (enter_namespace(u, e) < 0)
        return err_wrap(e, "the server cannot give up root; start it as an ordinary user, or say "
                           "--user root");
    if (setgroups(0, NULL) < 0 || setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0)
        return err_sys(e, "become user %u", (unsigned)u->uid);
    if (server_rights_drop(e) < 0)
        return err_wrap(e, "the server cannot give up root");
    /* In a container we may be process 1 ourselves. */
    if (getpid() != 1 && probe_refused(kill(1, 0), EPERM, "a signal to process 1", e) < 0)
        return err_wrap(e, "the server cannot give up root");
    return 0;
}

/* --- its priority --- */

/* All sandboxes together weigh as much as sixteen processes, so the server would wait for a
 * processor as long as they have work, and with it all those whose answers are due. */
#define AHEAD 10

int server_go_first(void)
{
    int was = getpriority(PRIO_PROCESS, 0);

    (void)setpriority(PRIO_PROCESS, 0, was - AHEAD);
    return was;
}
