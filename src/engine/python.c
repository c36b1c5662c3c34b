/* What Python a pool names, and which directories it needs: asked of the interpreter itself. */
#include "engine/engine_int.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROBE_MS   15000
#define ANSWER_MAX (16 * KiB)

extern char **environ;

/* One value a line: executable, version, then every directory it was installed in. */
static const char question[] =
    "import sys, os\n"
    "print(os.path.abspath(sys.executable))\n"
    "print('%d.%d.%d' % sys.version_info[:3])\n"
    "for p in (sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix,\n"
    "          os.path.dirname(os.path.dirname(os.path.realpath(sys.executable)))):\n"
    "    print(os.path.abspath(p))\n";

static const char *find_default(void)
{
    return access("/usr/bin/python3", X_OK) == 0 ? "/usr/bin/python3" : "python3";
}

static int start(const char *python, const char *source, int out, pid_t *ret_pid)
{
    const char *argv[] = {python, "-I", "-c", source, NULL};
    posix_spawn_file_actions_t actions;
    int rc;

    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, out, 1);
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    rc = posix_spawnp(ret_pid, python, &actions, NULL, (char **)argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    return rc;
}

/* Reads until end of file, at most PROBE_MS. */
static void read_answer(int fd, char *ret, size_t size)
{
    int64_t until = time_mono_us() + (int64_t)PROBE_MS * 1000;
    size_t n = 0;

    for (;;) {
        struct pollfd p = {fd, POLLIN, 0};
        int64_t left_ms = (until - time_mono_us()) / 1000;
        ssize_t got;
        if (n + 1 >= size || left_ms <= 0 || poll(&p, 1, (int)left_ms) <= 0)
            break;
        got = read(fd, ret + n, size - 1 - n);
        if (got <= 0)
            break;
        n += (size_t)got;
    }
    ret[n] = '\0';
}

static bool is_below(const char *path, const char *dir)
{
    size_t n = strlen(dir);

    return strncmp(path, dir, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

/* A prefix such as / or /home would show the host's files to the box. */
static bool is_too_wide(const char *dir)
{
    static const char *const wide[] = {"/",    "/home",  "/root", "/etc", "/var",  "/opt", "/srv",
                                       "/mnt", "/media", "/tmp",  "/run", "/proc", "/dev", "/sys"};
    const char *home = getenv("HOME");

    for (size_t i = 0; i < COUNT(wide); i++)
        if (strcmp(dir, wide[i]) == 0)
            return true;
    return home && *home && is_below(home, dir);
}

/* A sandbox has its own files there, which would hide the interpreter's. */
static bool is_covered(const char *dir)
{
    static const char *const own[] = {"/tmp", "/workspace", "/dev", "/proc"};

    for (size_t i = 0; i < COUNT(own); i++)
        if (is_below(dir, own[i]))
            return true;
    return false;
}

static int add_dir(struct python_info *info, const char *dir, struct err *e)
{
    char real[PATH_MAX];

    if (is_below(dir, "/usr"))
        return 0;
    for (size_t i = 0; i < info->dir_count; i++)
        if (is_below(dir, info->dirs[i]))
            return 0;
    /* What the name leads to is what would be shown. */
    if (is_too_wide(dir) || (realpath(dir, real) && is_too_wide(real)))
        return err_set(e, ERR_CALLER,
                       "Python at '%s' is installed in '%s', which would show that whole directory "
                       "to the sandbox; use a virtual environment",
                       info->executable, dir);
    if (is_covered(dir))
        return err_set(e, ERR_CALLER,
                       "Python at '%s' is installed in '%s', where a sandbox has its own files; "
                       "put it elsewhere, such as below your home directory",
                       info->executable, dir);
    if (info->dir_count == PYTHON_DIRS_MAX || strlen(dir) >= sizeof(info->dirs[0]))
        return err_set(e, ERR_LIMIT, "Python at '%s' has too many directories", info->executable);
    snprintf(info->dirs[info->dir_count++], sizeof(info->dirs[0]), "%s", dir);
    return 0;
}

int python_parse(char *text, const char *python, struct python_info *ret, struct err *e)
{
    char *save = NULL;
    char *exe = strtok_r(text, "\n", &save);
    char *version = exe ? strtok_r(NULL, "\n", &save) : NULL;

    if (!version || exe[0] != '/' || strlen(exe) >= sizeof(ret->executable))
        return err_set(e, ERR_CALLER, "'%s' is not a Python 3 interpreter that runs here", python);
    snprintf(ret->executable, sizeof(ret->executable), "%s", exe);
    snprintf(ret->version, sizeof(ret->version), "%s", version);
    for (char *dir; (dir = strtok_r(NULL, "\n", &save));)
        if (dir[0] == '/' && add_dir(ret, dir, e) < 0)
            return -1;
    return 0;
}

int python_ask(const char *python, const char *source, char *ret, size_t size, struct err *e)
{
    int pipe_fds[2];
    pid_t pid;
    int rc;

    if (!python)
        python = find_default();
    if (pipe2(pipe_fds, O_CLOEXEC) < 0)
        return err_sys(e, "pipe");
    rc = start(python, source, pipe_fds[1], &pid);
    close(pipe_fds[1]);
    if (rc != 0) {
        close(pipe_fds[0]);
        return err_set(e, ERR_CALLER, "cannot run Python '%s': %s", python, strerror(rc));
    }
    read_answer(pipe_fds[0], ret, size);
    close(pipe_fds[0]);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    return 0;
}

int python_probe(const char *python, struct python_info *ret, struct err *e)
{
    char text[ANSWER_MAX];

    *ret = (struct python_info){0};
    if (python_ask(python, question, text, sizeof(text), e) < 0)
        return -1;
    return python_parse(text, python ? python : find_default(), ret, e);
}

/* --- the cache of known Pythons --- */

struct known_python {
    struct known_python *next;
    char *name; /* owned, or NULL: the default */
    struct python_info info;
};

static bool is_called(const struct known_python *k, const char *name)
{
    return k->name && name ? strcmp(k->name, name) == 0 : !k->name && !name;
}

int python_known(struct engine *en, const char *python, struct python_info *ret, struct err *e)
{
    struct known_python *k = en->known_pythons;

    while (k && !is_called(k, python))
        k = k->next;
    if (k) {
        *ret = k->info;
        return 0;
    }
    if (python_probe(python, ret, e) < 0)
        return -1;
    k = mem_zalloc(sizeof(*k));
    *k = (struct known_python){en->known_pythons, python ? mem_strdup(python) : NULL, *ret};
    en->known_pythons = k;
    return 0;
}

void pythons_forget(struct engine *en)
{
    while (en->known_pythons) {
        struct known_python *k = en->known_pythons;
        en->known_pythons = k->next;
        free(k->name);
        free(k);
    }
}

int engine_meet(struct engine *en, const char *python, struct err *e)
{
    struct python_info info;

    return python_known(en, python, &info, e);
}
