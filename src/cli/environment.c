/*
 * retort environment: makes, lists and deletes environments.
 *
 * The work of `create` is done by environment.py in a child, as the user who calls: a virtual
 * environment, pip, and an import of every package. Its progress goes to standard error; its last
 * line is the sentence to tell. A creation that was interrupted leaves a folder that is not ready.
 * The next `create` goes on in it, `delete` removes it.
 */
#include "cli/environment.h"

#include "cli/cli_int.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define READY_FILE    "retort.json"
#define LIST_FILE     "packages.txt"
#define SCIENCE       "science"
#define READY_MAX     (256 * KiB)
#define SENTENCE_MAX  2048
#define FOLDER_MAX    (ENVIRONMENTS_PATH_MAX + ENVIRONMENT_NAME_MAX + 2)
#define FDS_OF_A_WALK 16
/* What another command calls a Python, and so no name of an environment. */
#define NO_NAME "python"

/* Made by text_to_c.py. */
extern const char environment_py[], science_txt[];

/* --- where they are --- */

/* The folder of all environments: that of the settings, or the default of this user. */
static int environments_find(const struct settings *s, char ret[ENVIRONMENTS_PATH_MAX],
                             struct err *e)
{
    /* `run` and `doctor` read no settings from the environment but this one: it says to all
     * commands where `environment create` has put its work. */
    const char *wanted = s->environments_dir ? s->environments_dir : getenv("RETORT_ENVIRONMENTS"),
               *xdg = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
    char cwd[PATH_MAX] = "";
    int n;

    if (wanted && !*wanted)
        wanted = NULL;
    if (wanted && wanted[0] == '/')
        n = snprintf(ret, ENVIRONMENTS_PATH_MAX, "%s", wanted);
    else if (wanted && getcwd(cwd, sizeof(cwd)))
        n = snprintf(ret, ENVIRONMENTS_PATH_MAX, "%s/%s", cwd, wanted);
    else if (wanted)
        return err_set(e, ERR_CALLER, "--environments: say the whole path");
    else if (geteuid() == 0)
        n = snprintf(ret, ENVIRONMENTS_PATH_MAX, "/var/lib/retort-environments");
    else if (xdg && *xdg == '/')
        n = snprintf(ret, ENVIRONMENTS_PATH_MAX, "%s/retort/environments", xdg);
    else if (home && *home == '/')
        n = snprintf(ret, ENVIRONMENTS_PATH_MAX, "%s/.local/share/retort/environments", home);
    else
        return err_set(e, ERR_CALLER,
                       "there is no home directory; say where with --environments DIR");
    if (n < 0 || n >= ENVIRONMENTS_PATH_MAX)
        return err_set(e, ERR_CALLER, "the path of the environments is too long");
    return 0;
}

static bool is_name(const char *name)
{
    size_t n = strlen(name);

    return n > 0 && n <= ENVIRONMENT_NAME_MAX &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789._-") == n && name[0] != '.' &&
           name[0] != '-' && strncmp(name, NO_NAME, strlen(NO_NAME)) != 0;
}

static int check_name(const char *name, struct err *e)
{
    char shown[NAME_SHOWN];

    if (is_name(name))
        return 0;
    return err_set(e, ERR_CALLER,
                   "'%s' cannot be the name of an environment: at most %d small letters, digits, "
                   "'.', '_' and '-', not beginning with '.', '-' or '" NO_NAME "'",
                   name_show(shown, str_of(name)), ENVIRONMENT_NAME_MAX);
}

static bool is_there(const char *dir, const char *name, const char *file)
{
    char path[PATH_MAX];
    int n = snprintf(path, sizeof(path), "%s/%s/%s", dir, name, file);

    return n > 0 && (size_t)n < sizeof(path) && access(path, F_OK) == 0;
}

/* --- a pool's Python by the name of an environment --- */

static bool is_program(const char *name)
{
    struct str rest = str_of(getenv("PATH")), one;
    char path[PATH_MAX];

    while (str_next(&rest, ':', &one))
        if (snprintf(path, sizeof(path), "%.*s/%s", (int)one.n, one.p, name) < PATH_MAX &&
            access(path, X_OK) == 0)
            return true;
    return false;
}

static int resolve(char **python, const char *dir, struct err *e)
{
    char shown[NAME_SHOWN], path[PATH_MAX];

    if (!*python || strchr(*python, '/') || !is_name(*python))
        return 0;
    name_show(shown, str_of(*python));
    if (is_there(dir, *python, READY_FILE)) {
        snprintf(path, sizeof(path), "%s/%s/bin/python", dir, *python);
        free(*python);
        *python = mem_strdup(path);
        return 0;
    }
    if (is_there(dir, *python, ""))
        return err_set(e, ERR_CALLER,
                       "python: environment %s is not finished; call retort environment create %s "
                       "again",
                       shown, shown);
    if (is_program(*python))
        return 0;
    return err_set(e, ERR_CALLER,
                   "python: there is no environment %s in %s, and no such program; see retort "
                   "environment list",
                   shown, dir);
}

int environments_resolve(struct settings *s, struct err *e)
{
    char dir[ENVIRONMENTS_PATH_MAX];
    struct err none;

    /* Without a home there are no environments, and paths are paths. */
    if (environments_find(s, dir, &none) < 0)
        return 0;
    if (resolve(&s->pool.python, dir, e) < 0)
        return -1;
    for (size_t i = 0; i < s->pool_count; i++)
        if (resolve(&s->pools[i].python, dir, e) < 0)
            return err_wrap(e, "pool %s", s->pools[i].name);
    for (size_t i = 0; i < s->environment_count; i++)
        if (resolve(&s->environments[i].python, dir, e) < 0)
            return err_wrap(e, "environment %s", s->environments[i].name);
    return 0;
}

/* --- one environment as JSON --- */

/* What retort.json tells, or NULL. */
static json_t *read_ready(const char *dir, const char *name)
{
    char path[PATH_MAX];
    AUTO_CLOSE int fd = -1;
    struct stat st;

    if (snprintf(path, sizeof(path), "%s/%s/" READY_FILE, dir, name) >= (int)sizeof(path))
        return NULL;
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > (off_t)READY_MAX)
        return NULL;
    return json_loadfd(fd, 0, NULL);
}

static json_t *describe(const char *dir, const char *name)
{
    json_t *ready = read_ready(dir, name);
    json_t *packages = json_object_get(ready, "packages");
    json_t *one = json_pack("{s:s, s:b, s:s?, s:O}", "name", name, "ready", ready != NULL, "python",
                            json_string_value(json_object_get(ready, "python")), "packages",
                            packages ? packages : json_null());

    json_decref(ready);
    return one;
}

static void put_json(json_t *value) /* takes value */
{
    json_dumpf(value, stdout, JSON_INDENT(2) | JSON_ENSURE_ASCII);
    putchar('\n');
    json_decref(value);
}

/* --- create --- */

static int make_dirs(const char *path, struct err *e)
{
    char part[PATH_MAX];

    for (const char *end = path; *end;) {
        end = strchrnul(end + 1, '/');
        snprintf(part, sizeof(part), "%.*s", (int)(end - path), path);
        if (mkdir(part, 0755) < 0 && errno != EEXIST) {
            err_sys(e, "cannot make %s", part);
            e->kind = ERR_CALLER;
            return -1;
        }
    }
    return 0;
}

/* One creation of a name at a time: the lock is held for as long as the fd stays open. */
static int open_locked(const char *folder, const char *name, struct err *e)
{
    AUTO_CLOSE int fd = open(folder, O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0)
        return err_sys(e, "open %s", folder);
    if (flock(fd, LOCK_EX | LOCK_NB) < 0)
        return err_set(e, ERR_CALLER, "another command works on environment %s; wait for its end",
                       name);
    return take_fd(&fd);
}

/* A file, which pip reads more than once, or the word for the list that comes with retort. */
static int check_list(const char *packages, struct err *e)
{
    char shown[NAME_SHOWN];
    struct stat st;

    if (!packages)
        return err_set(e, ERR_CALLER,
                       "which packages? say --packages FILE, with a package a line, or --packages "
                       "science");
    if (strcmp(packages, SCIENCE) == 0)
        return 0;
    if (stat(packages, &st) < 0)
        return err_set(e, ERR_CALLER,
                       "--packages: there is no file %s; '" SCIENCE
                       "' is the one list that comes with retort",
                       name_show(shown, str_of(packages)));
    if (!S_ISREG(st.st_mode))
        return err_set(e, ERR_CALLER, "--packages: %s is not a file; save the list in one",
                       name_show(shown, str_of(packages)));
    return 0;
}

/* What can be wrong with the arguments, before anything is made. ret_wheels is "" without wheels.
 */
static int check_arguments(const struct settings *s, const char *dir, const char *name,
                           char ret_wheels[PATH_MAX], struct err *e)
{
    const char *wheels = s->environment.wheels;
    struct stat st;

    if (check_name(name, e) < 0 || check_list(s->environment.packages, e) < 0)
        return -1;
    if (strncmp(dir, "/tmp/", 5) == 0 || strcmp(dir, "/tmp") == 0)
        return err_set(e, ERR_CALLER,
                       "environments cannot be below /tmp, where every session has files of its "
                       "own; name another folder with --environments DIR");
    ret_wheels[0] = '\0';
    if (wheels && (!realpath(wheels, ret_wheels) || stat(ret_wheels, &st) < 0 ||
                   (!S_ISDIR(st.st_mode) && (errno = ENOTDIR)))) {
        err_sys(e, "--wheels: %s", wheels);
        e->kind = ERR_CALLER;
        return -1;
    }
    return 0;
}

/* Path of the list: a file of the user, or one that is part of the program and is put into the
 * folder. */
static int find_list(const char *wanted, int folder_fd, const char *folder, char ret[PATH_MAX],
                     struct err *e)
{
    AUTO_CLOSE int fd = -1;

    if (strcmp(wanted, SCIENCE) != 0)
        return realpath(wanted, ret) ? 0 : err_sys(e, "--packages: %s", wanted);
    fd = openat(folder_fd, LIST_FILE, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0)
        return err_sys(e, "make %s/" LIST_FILE, folder);
    snprintf(ret, PATH_MAX, "%s/" LIST_FILE, folder);
    return fd_write_all(fd, str_of(science_txt), e);
}

static _Noreturn void run_helper(const struct settings *s, const char *folder, const char *list,
                                 const char *wheels, int out)
{
    const char *python = s->environment.base ? s->environment.base : "/usr/bin/python3";
    const char *argv[] = {python,
                          "-c",
                          environment_py,
                          folder,
                          list,
                          wheels,
                          s->environment.offline ? "1" : "0",
                          s->environment.system_packages ? "1" : "0",
                          NULL};

    if (!s->environment.base && access(python, X_OK) < 0)
        argv[0] = python = "python3";
    if (dup2(out, STDOUT_FILENO) >= 0)
        execvp(python, (char **)argv);
    dprintf(STDOUT_FILENO, "cannot run Python '%s': %s\n", python, strerror(errno));
    _exit(127);
}

/* The last line that the helper printed, in ret. */
static int follow_helper(int fd, pid_t pid, char *ret, size_t size, struct err *e)
{
    size_t n = 0;
    ssize_t got;
    int status;

    while (n + 1 < size &&
           ((got = read(fd, ret + n, size - 1 - n)) > 0 || (got < 0 && errno == EINTR)))
        n += got > 0 ? (size_t)got : 0;
    while (n > 0 && ret[n - 1] == '\n')
        n--;
    ret[n] = '\0';
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return err_sys(e, "wait for Python");
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    return err_set(e, ERR_CALLER, "%s", n ? ret : "Python ended without a word");
}

static int fill(const struct settings *s, const char *folder, const char *list, const char *wheels,
                char *ret, size_t size, struct err *e)
{
    int out[2], rc;
    pid_t pid;

    if (pipe2(out, O_CLOEXEC) < 0)
        return err_sys(e, "pipe");
    /* Ctrl-C reaches the helper too, and its sentence is the one to tell. */
    signal(SIGINT, SIG_IGN);
    pid = fork();
    if (pid == 0) {
        signal(SIGINT, SIG_DFL);
        run_helper(s, folder, list, wheels, out[1]);
    }
    close(out[1]);
    rc = pid < 0 ? err_sys(e, "fork") : follow_helper(out[0], pid, ret, size, e);
    close(out[0]);
    return rc;
}

static int create(const struct settings *s, const char *dir, const char *name, struct err *e)
{
    char folder[FOLDER_MAX], list[PATH_MAX], wheels[PATH_MAX], sentence[SENTENCE_MAX];
    AUTO_CLOSE int fd = -1;

    if (check_arguments(s, dir, name, wheels, e) < 0)
        return -1;
    snprintf(folder, sizeof(folder), "%s/%s", dir, name);
    if (make_dirs(folder, e) < 0 || (fd = open_locked(folder, name, e)) < 0)
        return -1;
    if (is_there(dir, name, READY_FILE))
        return err_set(e, ERR_CALLER,
                       "there is an environment %s; delete it first, or take another name", name);
    if (find_list(s->environment.packages, fd, folder, list, e) < 0 ||
        fill(s, folder, list, wheels, sentence, sizeof(sentence), e) < 0)
        return err_wrap(e, "%s", name);
    if (s->json)
        put_json(describe(dir, name));
    else
        printf("%s is ready: %s. Use it with --python %s, or \"python = %s\" of a pool.\n", name,
               sentence, name, name);
    return 0;
}

/* --- list --- */

static void show_one(const char *dir, const char *name)
{
    json_t *one = describe(dir, name);
    const char *python = json_string_value(json_object_get(one, "python"));

    printf("%-24s  %-8s  %8zu  %s\n", name, python ? python : "-",
           json_array_size(json_object_get(one, "packages")),
           json_is_true(json_object_get(one, "ready"))
               ? "ready"
               : "not finished: create it again, or delete it");
    json_decref(one);
}

static int is_environment(const struct dirent *entry)
{
    return is_name(entry->d_name);
}

static int list(const struct settings *s, const char *dir, const char *unused, struct err *e)
{
    struct dirent **found = NULL;
    json_t *all = json_array();
    int n = scandir(dir, &found, is_environment, alphasort);

    (void)unused;
    if (n < 0 && errno != ENOENT) {
        json_decref(all);
        return err_sys(e, "cannot read %s", dir);
    }
    if (!s->json)
        printf("%-24s  %-8s  %8s  %s\n", "NAME", "PYTHON", "PACKAGES", "STATE");
    for (int i = 0; i < n; i++) {
        if (s->json)
            json_array_append_new(all, describe(dir, found[i]->d_name));
        else
            show_one(dir, found[i]->d_name);
        free(found[i]);
    }
    free(found);
    if (s->json)
        put_json(all);
    else
        json_decref(all);
    return 0;
}

/* --- delete --- */

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static int delete (const struct settings *s, const char *dir, const char *name, struct err *e)
{
    char folder[FOLDER_MAX], ready[FOLDER_MAX + sizeof(READY_FILE)];
    AUTO_CLOSE int fd = -1;

    if (check_name(name, e) < 0)
        return -1;
    snprintf(folder, sizeof(folder), "%s/%s", dir, name);
    snprintf(ready, sizeof(ready), "%s/" READY_FILE, folder);
    if (!is_there(dir, name, ""))
        return err_set(e, ERR_CALLER, "there is no environment %s in %s", name, dir);
    if ((fd = open_locked(folder, name, e)) < 0)
        return -1;
    /* First, so that half of it is never taken for the whole. */
    if ((unlink(ready) < 0 && errno != ENOENT) ||
        nftw(folder, remove_one, FDS_OF_A_WALK, FTW_DEPTH | FTW_PHYS | FTW_MOUNT) != 0) {
        err_sys(e, "cannot delete %s", folder);
        e->kind = ERR_CALLER;
        return -1;
    }
    if (s->json)
        put_json(json_pack("{s:s, s:b}", "name", name, "deleted", 1));
    else
        printf("%s is deleted\n", name);
    return 0;
}

/* --- which --- */

static const struct environment_verb {
    const char *name;
    size_t args;
    const char *usage;
    int (*run)(const struct settings *s, const char *dir, const char *name, struct err *e);
} verbs[] = {
    {"create", 1,
     "retort environment create NAME --packages FILE [--wheels DIR] [--offline] "
     "[--system-packages] [--base PYTHON]",           create},
    {"list",   0, "retort environment list [--json]", list  },
    {"delete", 1, "retort environment delete NAME",   delete},
};

static int run(const struct settings *s, struct err *e)
{
    const struct list *words = &s->words;
    char dir[ENVIRONMENTS_PATH_MAX], shown[NAME_SHOWN];

    if (words->count == 0)
        return err_set(e, ERR_CALLER, "environment: create, list or delete?");
    for (size_t i = 0; i < COUNT(verbs); i++) {
        if (strcmp(words->item[0], verbs[i].name) != 0)
            continue;
        if (words->count != verbs[i].args + 1)
            return err_set(e, ERR_CALLER, "write it like this: %s", verbs[i].usage);
        if (environments_find(s, dir, e) < 0)
            return -1;
        return verbs[i].run(s, dir, verbs[i].args ? words->item[1] : NULL, e);
    }
    return err_set(e, ERR_CALLER, "environment has no '%s'; it has create, list and delete",
                   name_show(shown, str_of(words->item[0])));
}

int environment_main(const struct settings *s)
{
    struct err e = {0};

    if (run(s, &e) == 0 && fflush(stdout) == 0)
        return EXIT_OK;
    if (!e.kind)
        err_sys(&e, "cannot write to standard output");
    return command_failed(&e);
}
