/* What an execution is given beside its code: variables and files. */
#include "doors/values/values.h"

#include <stdio.h>
#include <stdlib.h>

void exec_inputs_done(struct exec_inputs *g)
{
    for (size_t i = 0; i < g->file_count; i++)
        free(g->decoded[i]);
    free(g->decoded);
    free(g->file);
    free(g->env);
    *g = (struct exec_inputs){0};
}

/* --- env --- */

static bool is_env_name(struct str s)
{
    if (s.n == 0 || s.n > ENV_NAME_MAX)
        return false;
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        bool letter = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
        if (!letter && !(i > 0 && c >= '0' && c <= '9'))
            return false;
    }
    return true;
}

static int check_env(struct env_var v, struct err *e)
{
    if (!is_env_name(v.name))
        return err_set(e, ERR_CALLER,
                       "a variable's name is 1 to %d letters, digits and underscores, and does not "
                       "begin with a digit",
                       ENV_NAME_MAX);
    if (!v.value.p)
        return err_set(e, ERR_CALLER, "a variable's value must be a string");
    if (v.value.n > ENV_VALUE_MAX)
        return err_set(e, ERR_LIMIT, "a variable's value has at most %zu bytes", ENV_VALUE_MAX);
    if (memchr(v.value.p, '\0', v.value.n))
        return err_set(e, ERR_CALLER, "a variable's value cannot hold a NUL");
    return 0;
}

int exec_inputs_env(struct exec_inputs *g, const json_t *map, char ret_param[PARAM_MAX],
                    struct err *e)
{
    const char *name;
    json_t *value;

    snprintf(ret_param, PARAM_MAX, "env");
    if (json_object_size(map) > ENV_COUNT_MAX)
        return err_set(e, ERR_LIMIT, "at most %d variables", ENV_COUNT_MAX);
    g->env = mem_zalloc((json_object_size(map) + 1) * sizeof(g->env[0]));
    json_object_foreach((json_t *)map, name, value) {
        struct env_var v = {str_of(name), json_view(value)};
        if (check_env(v, e) < 0) {
            snprintf(ret_param, PARAM_MAX, "env.%.*s", ENV_NAME_MAX, name);
            return -1;
        }
        g->env[g->env_count++] = v;
    }
    return 0;
}

/* --- files --- */

static int decode(struct str text, char **ret, struct str *ret_bytes, struct err *e)
{
    AUTO_FREE char *bytes = mem_zalloc(text.n / 4 * 3 + 1);
    size_t n;

    if (!base64_decode(text, bytes, &n))
        return err_set(e, ERR_CALLER, "not base64: A-Z a-z 0-9 + / in groups of four, padded");
    *ret_bytes = (struct str){bytes, n};
    *ret = take_ptr(&bytes);
    return 0;
}

static int check_path(struct str path, bool needed, struct err *e)
{
    char clean[SPACE_PATH_MAX];

    if (path.n > 0)
        return space_path_clean(path, clean, e);
    return needed ? err_set(e, ERR_CALLER, "content needs a path to be put at") : 0;
}

static size_t count_sources(const json_t *one)
{
    static const char *const sources[] = {"id", "url", "content", "content_base64"};
    size_t n = 0;

    for (size_t i = 0; i < COUNT(sources); i++)
        n += json_is_string(json_object_get(one, sources[i]));
    return n;
}

/* ret_member: which member is wrong, "" for the element. */
static int take_file(const json_t *one, struct file_input *f, char **ret_decoded,
                     const char **ret_member, struct err *e)
{
    json_t *encoded = json_object_get(one, "content_base64");

    *ret_member = "";
    if (count_sources(one) != 1)
        return err_set(e, ERR_CALLER,
                       "a file has exactly one of \"id\", \"url\", \"content\", "
                       "\"content_base64\"");
    *f = (struct file_input){
        .path = json_view(json_object_get(one, "path")),
        .file_id = json_view(json_object_get(one, "id")),
        .url = json_view(json_object_get(one, "url")),
        .content = json_view(json_object_get(one, "content")),
    };
    f->has_content = f->content.p || encoded;
    *ret_member = ".path";
    if (check_path(f->path, f->has_content, e) < 0)
        return -1;
    *ret_member = ".content_base64";
    return encoded ? decode(json_view(encoded), ret_decoded, &f->content, e) : 0;
}

int exec_inputs_files(struct exec_inputs *g, const json_t *list, char ret_param[PARAM_MAX],
                      struct err *e)
{
    const char *member;
    size_t count = json_array_size(list);

    snprintf(ret_param, PARAM_MAX, "files");
    if (count > INPUT_COUNT_MAX)
        return err_set(e, ERR_LIMIT, "at most %d files", INPUT_COUNT_MAX);
    g->file = mem_zalloc((count + 1) * sizeof(g->file[0]));
    g->decoded = mem_zalloc((count + 1) * sizeof(g->decoded[0]));
    for (g->file_count = 0; g->file_count < count; g->file_count++) {
        size_t i = g->file_count;
        if (take_file(json_array_get(list, i), &g->file[i], &g->decoded[i], &member, e) < 0) {
            snprintf(ret_param, PARAM_MAX, "files[%zu]%s", i, member);
            return -1;
        }
    }
    return 0;
}
