/*
 * Parses the answer of an interpreter to python_probe(): its version, and the directories it needs.
 */
#include "engine/engine_int.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

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
