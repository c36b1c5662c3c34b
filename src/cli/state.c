/* The state directory: finds it, makes it, locks it, and keeps the server's secret in it. */
#include "cli/state.h"

#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define FDS_OF_A_WALK 16
#define SECRET_NAME   "secret"
#define SECRET_TEMP   "secret.new"

int state_find(const struct settings *s, char ret[STATE_PATH_MAX], struct err *e)
{
    const char *xdg = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    char cwd[PATH_MAX] = "";
    int n;

    if (s->state && s->state[0] == '/')
        n = snprintf(ret, STATE_PATH_MAX, "%s", s->state);
    else if (s->state && getcwd(cwd, sizeof(cwd)))
        n = snprintf(ret, STATE_PATH_MAX, "%s/%s", cwd, s->state);
    else if (s->state)
        return err_set(e, ERR_CALLER, "--state: say the whole path: the folder we are in is gone");
    else if (geteuid() == 0)
        n = snprintf(ret, STATE_PATH_MAX, "/var/lib/retort");
    else if (xdg && *xdg == '/')
        n = snprintf(ret, STATE_PATH_MAX, "%s/retort", xdg);
    else if (home && *home == '/')
        n = snprintf(ret, STATE_PATH_MAX, "%s/.local/state/retort", home);
    else
        return err_set(e, ERR_CALLER, "there is no home directory; say where with --state DIR");
    if (n < 0 || n >= STATE_PATH_MAX)
        return err_set(e, ERR_CALLER, "the path of the state directory is too long");
    return 0;
}

static int make_dirs(const char *path, struct err *e)
{
    char part[STATE_PATH_MAX];

    for (const char *p = path + 1; *p; p++) {
        const char *end = strchrnul(p, '/');
        bool last = *end == '\0';
        snprintf(part, sizeof(part), "%.*s", (int)(end - path), path);
        if (mkdir(part, last ? 0700 : 0755) < 0 && errno != EEXIST) {
            err_sys(e, "cannot make the state directory %s", part);
            e->kind = ERR_CALLER;
            return -1;
        }
        p = last ? end - 1 : end;
    }
    return 0;
}

/* nftw() has no argument of ours. At start there is one thread. */
static const struct server_user *owner;

static int give(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)ftw;
    /* Under a second name it may be anybody's file. */
    if (type == FTW_F && st->st_nlink > 1)
        return 0;
    return lchown(path, owner->uid, owner->gid);
}

/* The directory itself comes last, so what was not finished is seen and done again. */
static int give_all(const char *path, const struct server_user *u, struct err *e)
{
    int rc;

    owner = u;
    rc = nftw(path, give, FDS_OF_A_WALK, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
    owner = NULL;
    return rc == 0 ? 0 : err_sys(e, "cannot give %s to user %u", path, (unsigned)u->uid);
}

int state_prepare(const char *path, const struct server_user *u, struct err *e)
{
    struct stat st;

    if (make_dirs(path, e) < 0)
        return -1;
    if (stat(path, &st) < 0 || !S_ISDIR(st.st_mode))
        return err_set(e, ERR_CALLER, "%s is not a directory", path);
    if (geteuid() != 0 || st.st_uid == u->uid)
        return 0;
    if (st.st_uid != 0 && st.st_uid != SERVER_UID)
        return err_set(e, ERR_CALLER,
                       "%s belongs to user %u, and the server would be user %u; say --user, or "
                       "another --state",
                       path, (unsigned)st.st_uid, (unsigned)u->uid);
    return give_all(path, u, e);
}

int state_lock(const char *path, struct err *e)
{
    AUTO_CLOSE int dir = open(path, O_DIRECTORY | O_CLOEXEC);

    if (dir >= 0 && flock(dir, LOCK_EX | LOCK_NB) == 0)
        return take_fd(&dir);
    if (dir >= 0 && errno == EWOULDBLOCK)
        return err_set(e, ERR_CALLER,
                       "another server uses %s; stop it, or give this one another --state", path);
    err_sys(e, "cannot use the state directory %s", path);
    e->kind = ERR_CALLER;
    return -1;
}

int state_become(const char *path, const struct settings *s, struct err *e)
{
    struct server_user u;
    struct stat st;

    if (stat(path, &st) < 0) {
        if (server_user_find(s->serve.user, &u, e) < 0 || state_prepare(path, &u, e) < 0)
            return -1;
    } else {
        u = (struct server_user){st.st_uid, st.st_gid, true};
    }
    if (geteuid() != 0 || u.uid == 0)
        return 0;
    return server_user_become(&u, e);
}

/* The first directory on the way to path that this process may not enter: a prefix of path, all of
 * it when the way is open. */
static struct str closed_part(const char *path)
{
    char part[PATH_MAX];
    const char *slash = path;

    while (*slash && (slash = strchr(slash + 1, '/'))) {
        struct str upto = {path, (size_t)(slash - path)};
        if (!str_to_cstr(upto, part, sizeof(part)) || access(part, X_OK) < 0)
            return upto;
    }
    return (struct str){path, strlen(path)};
}

int state_reach(const char *path, struct err *e)
{
    if (access(path, R_OK | W_OK | X_OK) == 0)
        return 0;
    err_sys(e, "the server's user cannot use the state directory %s", path);
    e->kind = ERR_CALLER;
    struct str part = closed_part(path);
    if (part.n < strlen(path))
        return err_set(
            e, ERR_CALLER,
            "the server's user cannot use the state directory %s, because %.*s is closed "
            "to others; give another --state, or open the way with: chmod o+x %.*s",
            path, (int)part.n, part.p, (int)part.n, part.p);
    return -1;
}

/* --- the secret --- */

/* Under its name it is whole, whenever we are killed. Only who holds the lock comes here. */
static int make_secret(int dir, const uint8_t *bytes, size_t n, struct err *e)
{
    AUTO_CLOSE int fd =
        openat(dir, SECRET_TEMP, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);

    if (fd < 0 || fchmod(fd, 0600) < 0)
        return err_sys(e, "make the secret");
    if (fd_write_all(fd, (struct str){(const char *)bytes, n}, e) < 0)
        return -1;
    if (fsync(fd) < 0 || renameat(dir, SECRET_TEMP, dir, SECRET_NAME) < 0)
        return err_sys(e, "keep the secret");
    return 0;
}

int state_secret(const char *path, uint8_t *ret, size_t n, struct err *e)
{
    AUTO_CLOSE int dir = open(path, O_DIRECTORY | O_CLOEXEC);
    AUTO_CLOSE int fd = -1;

    if (dir < 0)
        return err_sys(e, "open %s", path);
    fd = openat(dir, SECRET_NAME, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 && errno != ENOENT)
        return err_sys(e, "open %s/" SECRET_NAME, path);
    if (fd >= 0 && read(fd, ret, n) == (ssize_t)n)
        return 0;
    random_bytes(ret, n);
    return make_secret(dir, ret, n, e);
}

/* --- the store --- */

#define PASSWORD_MAX 1024

/* Blanks at its end are a text editor's. */
static char *read_password(const char *path, struct err *e)
{
    AUTO_FREE char *text = mem_zalloc(PASSWORD_MAX);
    ssize_t n = fd_read_file_at(AT_FDCWD, path, text, PASSWORD_MAX);

    if (n < 0) {
        err_sys(e, "cannot read store-password-file %s", path);
        e->kind = ERR_CALLER;
        return NULL;
    }
    while (n > 0 && strchr(" \t\r\n", text[n - 1]))
        text[--n] = '\0';
    if (n == 0) {
        err_set(e, ERR_CALLER, "store-password-file %s is empty", path);
        return NULL;
    }
    return take_ptr(&text);
}

int state_store(const struct settings *s, struct store_config *ret, char **ret_password,
                struct err *e)
{
    *ret_password = NULL;
    if (s->store_password_file) {
        *ret_password = read_password(s->store_password_file, e);
        if (!*ret_password)
            return -1;
    }
    *ret = (struct store_config){.dir = s->state,
                                 .durability = (enum durability)s->serve.durability,
                                 .url = s->store,
                                 .password = *ret_password};
    return 0;
}
