/*
 * Makes JSON of a result's repr(). Clients of Azure get the number 2 for 1 + 1, and a string for a
 * string. The repr() of any other value is passed on as text.
 */
#include "doors/azure/azure_int.h"

#include <stdlib.h>

/* --- numbers --- */

static size_t digits(struct str s, size_t i)
{
    size_t n = 0;

    while (i + n < s.n && s.p[i + n] >= '0' && s.p[i + n] <= '9')
        n++;
    return n;
}

/* Whether s is a number as both JSON and Python write it; *ret_whole: without a fraction. */
static bool is_number(struct str s, bool *ret_whole)
{
    size_t i = s.n && s.p[0] == '-', n = digits(s, i);

    *ret_whole = true;
    if (n == 0 || (n > 1 && s.p[i] == '0'))
        return false;
    i += n;
    if (i < s.n && s.p[i] == '.') {
        n = digits(s, i + 1);
        *ret_whole = false;
        i += n + 1;
        if (n == 0)
            return false;
    }
    if (i < s.n && s.p[i] == 'e') {
        i += 1 + (i + 1 < s.n && (s.p[i + 1] == '+' || s.p[i + 1] == '-'));
        n = digits(s, i);
        *ret_whole = false;
        i += n;
        if (n == 0)
            return false;
    }
    return i == s.n;
}

/* Longer ones stay a text, as no double holds them. */
#define WHOLE_DIGITS 18
#define NUMBER_MAX   64

static json_t *number(struct str s)
{
    char text[NUMBER_MAX];
    bool whole;

    if (!is_number(s, &whole) || !str_to_cstr(s, text, sizeof(text)))
        return NULL;
    if (!whole)
        return json_real(strtod(text, NULL)); /* NULL when it is past all doubles */
    return s.n <= WHOLE_DIGITS ? json_integer(strtoll(text, NULL, 10)) : NULL;
}

/* --- strings --- */

static bool hex_number(struct str s, size_t at, size_t n, uint32_t *ret)
{
    *ret = 0;
    for (size_t i = at; i < at + n; i++) {
        int digit = i < s.n ? hex_digit(s.p[i]) : -1;
        if (digit < 0)
            return false;
        *ret = *ret * 16 + (uint32_t)digit;
    }
    return true;
}

/* The escape after a backslash at s.p[at]; how long it is, 0 for none that repr() writes. */
static size_t read_escape(struct str s, size_t at, uint32_t *ret)
{
    static const char from[] = "nrt\\'\"", to[] = "\n\r\t\\'\"";
    static const struct {
        char letter;
        size_t digits;
    } rows[] = {
        {'x', 2},
        {'u', 4},
        {'U', 8},
    };
    const char *simple = at < s.n && s.p[at] ? strchr(from, s.p[at]) : NULL;

    if (simple) {
        *ret = (unsigned char)to[simple - from];
        return 1;
    }
    for (size_t i = 0; at < s.n && i < COUNT(rows); i++)
        if (s.p[at] == rows[i].letter && hex_number(s, at + 1, rows[i].digits, ret))
            return 1 + rows[i].digits;
    return 0;
}

/* What is between the quotes, or NULL when this is not the repr of one string. */
static json_t *string(struct str s)
{
    char quote = '\0';
    AUTO_FREE char *text = NULL;
    size_t n = 0;

    if (s.n >= 2)
        quote = s.p[0];
    if ((quote != '\'' && quote != '"') || s.p[s.n - 1] != quote)
        return NULL;
    s = (struct str){s.p + 1, s.n - 2};
    text = mem_zalloc(s.n + 4); /* no escape is shorter than what it stands for */
    for (size_t i = 0; i < s.n;) {
        uint32_t c = 0;
        size_t used;
        if (s.p[i] == quote || s.p[i] == '\n')
            return NULL;
        if (s.p[i] != '\\') {
            text[n++] = s.p[i++];
            continue;
        }
        used = read_escape(s, i + 1, &c);
        if (used == 0)
            return NULL;
        n += utf8_print(text + n, c);
        i += used + 1;
    }
    return record_text((struct str){text, n});
}

/* --- any --- */

json_t *literal_value(struct str repr)
{
    json_t *v;

    if (str_is(repr, "True") || str_is(repr, "False"))
        return json_boolean(repr.p[0] == 'T');
    v = number(repr);
    if (!v)
        v = string(repr);
    return v ? v : record_text(repr);
}
