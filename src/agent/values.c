/* Reads and writes JSON values that may be missing or of another type. */
#include "agent/agent_int.h"

struct str json_text(const json_t *v)
{
    return (struct str){v && json_is_string(v) ? json_string_value(v) : "", json_string_length(v)};
}

struct str json_str(const json_t *object, const char *key)
{
    const json_t *v = json_object_get(object, key);

    return v && json_is_string(v) ? json_text(v) : (struct str){0};
}

bool json_is(const json_t *object, const char *key, const char *text)
{
    return str_is(json_str(object, key), text);
}

int64_t json_num(const json_t *object, const char *key)
{
    const json_t *v = json_object_get(object, key);

    return json_is_integer(v) ? (int64_t)json_integer_value(v) : 0;
}

bool json_on(const json_t *object, const char *key)
{
    return json_is_true(json_object_get(object, key));
}

json_t *text_value(struct str s)
{
    return json_stringn_nocheck(s.n ? s.p : "", str_utf8_len(s));
}

void json_put(json_t **field, json_t *v)
{
    json_decref(*field);
    *field = v;
}

void json_put_str(json_t *object, const char *key, struct str s)
{
    json_object_set_new(object, key, text_value(s));
}

void json_put_num(json_t *object, const char *key, int64_t n)
{
    json_object_set_new(object, key, json_integer((json_int_t)n));
}

void json_put_on(json_t *object, const char *key, bool on)
{
    json_object_set_new(object, key, json_boolean(on));
}

json_t *line_value(struct str s, size_t max)
{
    AUTO_FREE char *line = mem_zalloc(max + 4);
    size_t n = 0;

    for (size_t i = 0; i < s.n && n < max; i++) {
        bool blank = (unsigned char)s.p[i] <= ' ' || s.p[i] == 0x7f;
        if (!blank || (n > 0 && line[n - 1] != ' '))
            line[n++] = (char)(blank ? ' ' : s.p[i]);
    }
    while (n > 0 && line[n - 1] == ' ')
        n--;
    if (n == max) {
        n -= utf8_torn((struct str){line, n});
        for (size_t i = 0; i < 3; i++)
            line[n++] = '.';
    }
    return text_value((struct str){line, n});
}
