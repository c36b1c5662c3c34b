/* Environment variables: of a session, kept with it; of one execution, never on record. */
#include "service/service_int.h"

#include "sandbox/box.h"

#include <strings.h>

#define NAME_MAX_ 256
#define TEXT_(x)  #x
#define TEXT(x)   TEXT_(x)
#define PROXY     "http://127.0.0.1:" TEXT(BOX_PROXY_PORT)

static bool is_name(struct str s)
{
    if (s.n == 0 || s.n > NAME_MAX_ || (s.p[0] >= '0' && s.p[0] <= '9'))
        return false;
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        if (!(c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
              (c >= '0' && c <= '9')))
            return false;
    }
    return true;
}

/* Neither names nor values are repeated in what goes wrong: they may be secrets. */
int vars_from(const struct env_var *env, size_t count, json_t **ret, struct err *e)
{
    size_t bytes = 0;
    json_t *vars;

    *ret = NULL;
    if (count == 0)
        return 0;
    if (count > EXEC_ENV_MAX)
        return err_set(e, ERR_LIMIT, "more than %d environment variables", EXEC_ENV_MAX);
    vars = json_object();
    for (size_t i = 0; i < count; i++) {
        struct str name = env[i].name, value = env[i].value;
        bool good = is_name(name) && str_utf8_len(value) == value.n &&
                    !(value.n && memchr(value.p, '\0', value.n));
        char key[NAME_MAX_ + 1];
        bytes += name.n + value.n + 2;
        if (bytes > EXEC_ENV_BYTES || !good || !str_to_cstr(name, key, sizeof(key))) {
            json_decref(vars);
            return bytes > EXEC_ENV_BYTES
                       ? err_set(e, ERR_LIMIT,
                                 "environment variables with more than %zu bytes in all",
                                 EXEC_ENV_BYTES)
                       : err_set(e, ERR_CALLER,
                                 "environment variable %zu has a name other than letters, digits "
                                 "and '_', or a value that is not text",
                                 i + 1);
        }
        json_object_set_new(vars, key, json_stringn_nocheck(value.n ? value.p : "", value.n));
    }
    *ret = vars;
    return 0;
}

/* --- the way out --- */

static bool has_in_any_case(json_t *vars, const char *name)
{
    const char *other;
    json_t *value;

    json_object_foreach(vars, other, value)
        if (strcasecmp(other, name) == 0)
            return true;
    return false;
}

/* Some clients read one spelling and some the other, and of two they differ in which they prefer.
 * So both are set, and a spelling that is given stands for both. */
void vars_add_proxy(json_t *vars)
{
    static const struct {
        const char *name, *also, *value;
    } rows[] = {
        {"http_proxy",  "HTTP_PROXY",  PROXY                    },
        {"https_proxy", "HTTPS_PROXY", PROXY                    },
        {"all_proxy",   "ALL_PROXY",   PROXY                    },
        {"no_proxy",    "NO_PROXY",    "localhost,127.0.0.1,::1"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        if (has_in_any_case(vars, rows[i].name))
            continue;
        json_object_set_new(vars, rows[i].name, json_string(rows[i].value));
        json_object_set_new(vars, rows[i].also, json_string(rows[i].value));
    }
}
