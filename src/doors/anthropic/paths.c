/* Turns a path that a model wrote into a path in the workspace. */
#include "doors/anthropic/anthropic_int.h"

#include <stdio.h>

static struct str without_end(struct str path)
{
    while (path.n > 1 && path.p[path.n - 1] == '/')
        path.n--;
    return path;
}

/* Whether the path is this folder, or in it; *rest is what follows the folder. */
static bool is_in(struct str path, const char *folder, struct str *rest)
{
    size_t n = strlen(folder);

    if (path.n < n || memcmp(path.p, folder, n) != 0 || (path.n > n && path.p[n] != '/'))
        return false;
    *rest = path.n > n ? (struct str){path.p + n + 1, path.n - n - 1} : (struct str){0};
    return true;
}

/* The folder that the variable at the start of the path names; false: there is no variable. */
static bool variable_of(struct str path, const struct editor_dirs *dirs, const char **ret,
                        struct str *rest)
{
    const struct {
        const char *name, *folder;
    } vars[] = {
        {"$INPUT_DIR",    dirs->input },
        {"${INPUT_DIR}",  dirs->input },
        {"$OUTPUT_DIR",   dirs->output},
        {"${OUTPUT_DIR}", dirs->output},
    };

    for (size_t i = 0; i < COUNT(vars); i++)
        if (is_in(path, vars[i].name, rest)) {
            *ret = vars[i].folder;
            return true;
        }
    return false;
}

int editor_path(struct str given, const struct editor_dirs *dirs, char ret[SPACE_PATH_MAX],
                struct err *e)
{
    struct str path = without_end(given), rest;
    const char *folder = NULL;
    char whole[SPACE_PATH_MAX];

    *ret = '\0';
    if (path.n == 0)
        return err_set(e, ERR_CALLER, "path is missing");
    if (memchr(path.p, '\0', path.n))
        return err_set(e, ERR_CALLER, "the path holds a NUL");
    if (variable_of(path, dirs, &folder, &rest)) {
        if (!folder)
            return err_set(e, ERR_CALLER, "there is no such folder here");
        if (snprintf(whole, sizeof(whole), "%s/%.*s", folder, (int)rest.n, rest.n ? rest.p : "") >=
            (int)sizeof(whole))
            return err_set(e, ERR_CALLER, "the path is too long");
        path = without_end(str_of(whole));
    } else if (is_in(path, "/workspace", &rest) || is_in(path, "/mnt/data", &rest)) {
        path = rest;
    } else if (path.p[0] == '/') {
        return err_set(e, ERR_CALLER,
                       "the editor reaches what is below /workspace; use a command for the rest");
    }
    if (path.n == 0 || str_is(path, "."))
        return 0;
    return space_path_clean(path, ret, e);
}
