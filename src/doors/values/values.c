/* Parses values that clients write as text: times, seconds. */
#include "doors/values/values.h"

#include <stdio.h>
#include <time.h>

/* --- times --- */

void time_print(int64_t ms, char ret[TIME_TEXT])
{
    time_t s = ms / 1000 - (ms % 1000 < 0);
    struct tm tm = {0};

    gmtime_r(&s, &tm);
    snprintf(ret, TIME_TEXT, "%04u-%02u-%02uT%02u:%02u:%02u.%03uZ",
             (unsigned)(tm.tm_year + 1900) % 10000, (unsigned)tm.tm_mon % 12 + 1,
             (unsigned)tm.tm_mday % 32, (unsigned)tm.tm_hour % 24, (unsigned)tm.tm_min % 60,
             (unsigned)tm.tm_sec % 61, (unsigned)(ms - (int64_t)s * 1000) % 1000);
}

json_t *time_json(int64_t ms)
{
    char text[TIME_TEXT];

    time_print(ms, text);
    return ms ? json_string(text) : json_null();
}

/* Takes n digits off the front. */
static bool take_number(struct str *s, size_t n, int max, int *ret)
{
    if (s->n < n)
        return false;
    *ret = 0;
    for (size_t i = 0; i < n; i++) {
        if (s->p[i] < '0' || s->p[i] > '9')
            return false;
        *ret = *ret * 10 + (s->p[i] - '0');
    }
    *s = (struct str){s->p + n, s->n - n};
    return *ret <= max;
}

static bool take_char(struct str *s, const char *one_of)
{
    if (s->n == 0 || s->p[0] == '\0' || !strchr(one_of, s->p[0]))
        return false;
    *s = (struct str){s->p + 1, s->n - 1};
    return true;
}

static bool take_date_time(struct str *s, struct tm *ret)
{
    return take_number(s, 4, 9999, &ret->tm_year) && take_char(s, "-") &&
           take_number(s, 2, 12, &ret->tm_mon) && take_char(s, "-") &&
           take_number(s, 2, 31, &ret->tm_mday) && take_char(s, "Tt") &&
           take_number(s, 2, 23, &ret->tm_hour) && take_char(s, ":") &&
           take_number(s, 2, 59, &ret->tm_min) && take_char(s, ":") &&
           take_number(s, 2, 60, &ret->tm_sec) && ret->tm_mon > 0 && ret->tm_mday > 0;
}

static bool take_fraction(struct str *s, int *ret_ms)
{
    int scale = 100, digit;

    *ret_ms = 0;
    if (!take_char(s, "."))
        return true;
    if (s->n == 0 || s->p[0] < '0' || s->p[0] > '9')
        return false;
    while (s->n > 0 && take_number(s, 1, 9, &digit)) {
        *ret_ms += digit * scale;
        scale /= 10;
    }
    return true;
}

/* A "+" in a query that nobody escaped arrives as a blank. */
static bool take_offset(struct str *s, int *ret_minutes)
{
    int hours, minutes;
    bool behind = s->n > 0 && s->p[0] == '-';

    *ret_minutes = 0;
    if (take_char(s, "Zz"))
        return true;
    if (!take_char(s, "+- ") || !take_number(s, 2, 23, &hours) || !take_char(s, ":") ||
        !take_number(s, 2, 59, &minutes))
        return false;
    *ret_minutes = (hours * 60 + minutes) * (behind ? -1 : 1);
    return true;
}

bool time_parse(struct str text, int64_t *ret_ms)
{
    struct tm tm = {0};
    int ms, offset, day, month;

    if (!take_date_time(&text, &tm) || !take_fraction(&text, &ms) || !take_offset(&text, &offset) ||
        text.n > 0)
        return false;
    tm.tm_year -= 1900;
    month = --tm.tm_mon;
    day = tm.tm_mday;
    if (tm.tm_sec == 60) /* a leap second; POSIX time has none */
        tm.tm_sec = 59;
    *ret_ms = (int64_t)timegm(&tm) * 1000 + ms - (int64_t)offset * 60000;
    return tm.tm_mday == day && tm.tm_mon == month; /* timegm() makes March 2 of February 30 */
}

/* --- JSON --- */

uint64_t json_ms(const json_t *v)
{
    double s = json_is_number(v) ? json_number_value(v) : 0;

    if (!(s > 0))
        return 0;
    return s >= SECONDS_MAX ? SECONDS_MAX * 1000ull : s < 0.001 ? 1 : (uint64_t)(s * 1000 + 0.5);
}
