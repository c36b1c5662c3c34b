/*
 * Looks for the numbers of an answer in what executions printed, what was asked, and what was
 * given. An answer writes them as people do: 1,234.5 or 1.234,5 or 1 234.5, rounded, as a
 * percentage, in millions. A number counts as seen in any way of reading it.
 */
#include "agent/agent_int.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <strings.h>

#define SEEN_MAX 20000

/* --- reading --- */

static bool is_digit_at(struct str text, size_t i)
{
    return i < text.n && isdigit((unsigned char)text.p[i]);
}

static bool is_letter_at(struct str text, size_t i)
{
    return i < text.n && (isalpha((unsigned char)text.p[i]) || text.p[i] == '_');
}

/* What parts groups of three digits, beside the comma and the point. */
static const char *const blanks[] = {" ", "'", "\u2019", "\u00a0", "\u2009", "\u202f"};

/* The bytes of such a blank at i, with three digits and no more behind it; 0: there is none. */
static size_t blank_at(struct str text, size_t i)
{
    for (size_t k = 0; k < COUNT(blanks); k++) {
        size_t n = strlen(blanks[k]), at = i + n;
        if (at < text.n && memcmp(text.p + i, blanks[k], n) == 0 && is_digit_at(text, at) &&
            is_digit_at(text, at + 1) && is_digit_at(text, at + 2) && !is_digit_at(text, at + 3))
            return n;
    }
    return 0;
}

/* The length of digits with single commas and points between them. */
static size_t plain_end(struct str text, size_t i)
{
    while (is_digit_at(text, i) ||
           (i > 0 && i < text.n && strchr(",.", text.p[i]) && is_digit_at(text, i + 1)))
        i++;
    return i;
}

/* The same, where groups of three may be parted by blanks, too. */
static size_t grouped_end(struct str text)
{
    size_t i = plain_end(text, 0), n;

    while ((n = blank_at(text, i)) > 0)
        i = plain_end(text, i + n);
    return i;
}

/* One way to read the number: without `apart`, and with `point` as a point. */
static void add_reading(struct number *ret, char apart, char point)
{
    struct str shown = ret->shown;
    char *text = ret->readings[ret->count];
    size_t n = 0;

    for (size_t i = 0; i < shown.n && n < sizeof(*ret->readings) - 1; i++) {
        if (is_digit_at(shown, i))
            text[n++] = shown.p[i];
        else if (shown.p[i] == point && shown.p[i] != apart)
            text[n++] = '.';
    }
    text[n] = '\0';
    ret->count++;
}

/* What the word behind a number makes of it: 1.2 million. */
static double scale_of(struct str text, size_t i)
{
    static const struct {
        const char *word;
        double scale;
    } words[] = {
        {"thousand", 1e3 },
        {"million",  1e6 },
        {"mio",      1e6 },
        {"billion",  1e9 },
        {"milliard", 1e9 },
        {"mrd",      1e9 },
        {"bn",       1e9 },
        {"trillion", 1e12},
    };

    while (i < text.n && strchr(" -", text.p[i]))
        i++;
    for (size_t k = 0; k < COUNT(words); k++) {
        size_t n = strlen(words[k].word);
        if (text.n - i >= n && strncasecmp(text.p + i, words[k].word, n) == 0)
            return words[k].scale;
    }
    return 1;
}

/* A word with digits in it is a name. */
static size_t word_end(struct str text)
{
    size_t i = 0;

    while (is_letter_at(text, i))
        for (i++; is_digit_at(text, i);)
            i++;
    return i > 0 ? i : 1;
}

static void read_number(struct number *ret, struct str text, size_t n)
{
    *ret = (struct number){
        .text = text, .shown = {text.p, n},
             .scale = scale_of(text, n)
    };
    for (size_t i = 0; i < n; i++)
        ret->digits += is_digit_at(text, i);
    add_reading(ret, ',', '.');
    add_reading(ret, '.', ',');
}

bool number_next(struct str *text, struct number *ret)
{
    while (text->n > 0) {
        struct str left = *text;
        size_t n = plain_end(left, 0);

        *text = str_from(left, n > 0 ? n : word_end(left));
        if (n == 0 || is_letter_at(left, n) || (n < left.n && left.p[n] == '^'))
            continue;
        read_number(ret, left, n);
        return true;
    }
    return false;
}

bool number_widen(const struct number *one, struct number *ret, struct str *rest)
{
    size_t n = grouped_end(one->text);

    if (n == one->shown.n || is_letter_at(one->text, n))
        return false;
    read_number(ret, one->text, n);
    *rest = str_from(one->text, n);
    return true;
}

/* --- looking --- */

void numbers_see(struct numbers_seen *seen, const struct str *sources, size_t count)
{
    struct number one;

    *seen = (struct numbers_seen){.values = mem_zalloc(SEEN_MAX * sizeof(*seen->values))};
    for (size_t i = 0; i < count && i < COUNT(seen->sources); i++) {
        struct str text = sources[i];
        seen->sources[i] = text;
        while (seen->count < SEEN_MAX && number_next(&text, &one))
            seen->values[seen->count++] = strtod(one.readings[0], NULL);
    }
}

void numbers_seen_done(struct numbers_seen *seen)
{
    free(take_ptr(&seen->values));
}

/* Whether a number goes on at i, in the direction of step: with a digit, or with a point and one.
 */
static bool goes_on(struct str text, ptrdiff_t i, ptrdiff_t step)
{
    bool point = i >= 0 && i < (ptrdiff_t)text.n && text.p[i] == '.';

    i = point ? i + step : i;
    return i >= 0 && is_digit_at(text, (size_t)i);
}

/* Whether the number stands in text by itself: 42 is not in 1425, nor 58 in 1.58. */
static bool stands_in(struct str text, const char *number)
{
    size_t n = strlen(number);
    const char *at;

    for (struct str left = text; left.n && (at = memmem(left.p, left.n, number, n));
         left = str_from(text, (size_t)(at - text.p) + 1))
        if (!goes_on(text, at - text.p - 1, -1) && !goes_on(text, at - text.p + (ptrdiff_t)n, 1))
            return true;
    return false;
}

/* Whether one of the seen numbers, or it as a percentage, rounds to this one. */
static bool is_rounded(const struct numbers_seen *seen, const char *number, double scale)
{
    const char *point = strchr(number, '.');
    double value = scale * strtod(number, NULL);
    double half = scale * 0.5 * (1 + 1e-9); /* of its last digit */

    for (size_t n = point ? strlen(point + 1) : 0; n > 0; n--)
        half /= 10;
    for (size_t i = 0; i < seen->count; i++)
        if (fabs(seen->values[i] - value) <= half || fabs(100 * seen->values[i] - value) <= half)
            return true;
    return false;
}

bool number_is_seen(const struct numbers_seen *seen, const struct number *one)
{
    for (size_t i = 0; i < one->count; i++) {
        const char *number = one->readings[i];
        for (size_t k = 0; k < COUNT(seen->sources); k++)
            if (stands_in(seen->sources[k], number))
                return true;
        if (is_rounded(seen, number, 1) || (one->scale > 1 && is_rounded(seen, number, one->scale)))
            return true;
    }
    return false;
}
