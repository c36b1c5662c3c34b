/* Option values between text and struct settings: one row per type. */
#include "cli/cli_int.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* digits[.digits], times scale, rounded down. Returns what follows, or NULL. */
static const char *read_decimal(const char *p, uint64_t scale, bool fraction, uint64_t *ret)
{
    uint64_t whole = 0, part = 0, unit = 1;

    if (*p < '0' || *p > '9')
        return NULL;
    for (; *p >= '0' && *p <= '9'; p++)
        if (__builtin_mul_overflow(whole, 10, &whole) ||
            __builtin_add_overflow(whole, (uint64_t)(*p - '0'), &whole))
            return NULL;
    if (fraction && p[0] == '.' && p[1] >= '0' && p[1] <= '9') {
        for (p++; *p >= '0' && *p <= '9'; p++) {
            if (unit < 1000000) { /* a millionth of a terabyte still fits */
                part = part * 10 + (uint64_t)(*p - '0');
                unit *= 10;
            }
        }
    }
    if (__builtin_mul_overflow(whole, scale, &whole) ||
        __builtin_add_overflow(whole, part * scale / unit, ret))
        return NULL;
    return p;
}

/* K, KB and KiB are all 1024. */
static uint64_t size_scale(const char *suffix)
{
    static const char letters[] = "KMGT";
    static const char *const ends[] = {"", "B", "b", "iB"};
    uint64_t scale = KiB;

    if (*suffix == '\0' || strcmp(suffix, "B") == 0)
        return 1;
    for (const char *l = letters; *l; l++, scale *= KiB)
        if (suffix[0] == *l || suffix[0] == *l + ('a' - 'A'))
            for (size_t i = 0; i < COUNT(ends); i++)
                if (strcmp(suffix + 1, ends[i]) == 0)
                    return scale;
    return 0;
}

static bool read_size(const char *text, uint64_t *ret)
{
    const char *suffix = text + strspn(text, "0123456789.");
    uint64_t scale = size_scale(suffix);

    /* "1.5" bytes are none; "1.5G" are some. */
    return scale != 0 && read_decimal(text, scale, scale > 1, ret) == suffix;
}

static bool read_seconds(const char *text, uint64_t *ret)
{
    const char *end = read_decimal(text, 1000, true, ret);

    return end && (*end == '\0' || strcmp(end, "s") == 0);
}

static bool read_cores(const char *text, uint64_t *ret)
{
    const char *end = read_decimal(text, 100, true, ret);

    return end && *end == '\0';
}

static bool read_count(const char *text, uint64_t *ret)
{
    const char *end = read_decimal(text, 1, false, ret);

    return end && *end == '\0';
}

static void show_size(uint64_t v, char *ret, size_t size)
{
    static const char suffix[] = "\0KMGT";
    size_t i = 0;

    while (v != 0 && v % KiB == 0 && i < 4) {
        v /= KiB;
        i++;
    }
    snprintf(ret, size, "%" PRIu64 "%.1s", v, &suffix[i]);
}

/* A number of units with as many decimals as it needs. */
static void show_decimal(uint64_t v, uint64_t scale, int digits, char *ret, size_t size)
{
    uint64_t part = v % scale;

    for (; digits > 0 && part % 10 == 0; digits--)
        part /= 10;
    if (digits > 0)
        snprintf(ret, size, "%" PRIu64 ".%0*" PRIu64, v / scale, digits, part);
    else
        snprintf(ret, size, "%" PRIu64, v / scale);
}

static void show_seconds(uint64_t v, char *ret, size_t size)
{
    show_decimal(v, 1000, 3, ret, size);
}

static void show_cores(uint64_t v, char *ret, size_t size)
{
    show_decimal(v, 100, 2, ret, size);
}

static void show_count(uint64_t v, char *ret, size_t size)
{
    snprintf(ret, size, "%" PRIu64, v);
}

/* The types that are kept as a number. */
static const struct number {
    bool (*read)(const char *text, uint64_t *ret);
    void (*show)(uint64_t v, char *ret, size_t size);
    const char *what; /* completes "'x' is not ..." */
} numbers[] = {
    [OPTION_SIZE] = {read_size,    show_size,    "a size such as 512M or 2G"            },
    [OPTION_SECONDS] = {read_seconds, show_seconds, "a number of seconds such as 30 or 0.5"},
    [OPTION_CORES] = {read_cores,   show_cores,   "a number of cores such as 1 or 0.5"   },
    [OPTION_COUNT] = {read_count,   show_count,   "a whole number"                       },
};

static const struct number *number_of(enum option_type t)
{
    return t < COUNT(numbers) && numbers[t].read ? &numbers[t] : NULL;
}

static int set_number(const struct option *o, uint64_t *field, const char *origin,
                      const char *value, struct err *e)
{
    const struct number *n = number_of(o->type);
    char name[NAME_SHOWN], bound[32];
    uint64_t v;

    if (!n->read(value, &v))
        return err_set(e, ERR_CALLER, "%s: '%s' is not %s", origin, name_show(name, str_of(value)),
                       n->what);
    if (v < o->min || v > o->max) {
        n->show(v < o->min ? o->min : o->max, bound, sizeof(bound));
        return err_set(e, ERR_CALLER, "%s: %s is too %s; the %s is %s", origin,
                       name_show(name, str_of(value)), v < o->min ? "little" : "much",
                       v < o->min ? "least" : "most", bound);
    }
    *field = v;
    return 0;
}

static int set_bool(bool *field, const char *origin, const char *value, struct err *e)
{
    static const char *const words[] = {"no", "yes", "false", "true", "off", "on", "0", "1"};
    char name[NAME_SHOWN];

    for (size_t i = 0; i < COUNT(words); i++) {
        if (strcmp(value, words[i]) == 0) {
            *field = i % 2;
            return 0;
        }
    }
    return err_set(e, ERR_CALLER, "%s: '%s' is neither yes nor no", origin,
                   name_show(name, str_of(value)));
}

void work_add(struct settings *s, enum work_kind kind, const char *arg)
{
    s->work.item = mem_realloc(s->work.item, (s->work.count + 1) * sizeof(*s->work.item));
    s->work.item[s->work.count++] = (struct work){kind, mem_strdup(arg)};
}

static void list_add(struct list *l, const char *value)
{
    l->item = mem_realloc(l->item, (l->count + 1) * sizeof(*l->item));
    l->item[l->count++] = mem_strdup(value);
}

static void set_text(char **field, const char *value)
{
    free(*field);
    *field = mem_strdup(value);
}

int option_set(const struct option *o, struct settings *s, const char *origin, const char *value,
               struct err *e)
{
    void *field = (char *)s + o->at;

    if (number_of(o->type))
        return set_number(o, field, origin, value, e);
    if (o->type == OPTION_BOOL)
        return set_bool(field, origin, value, e);
    if (*value == '\0' && (o->type == OPTION_PATH || o->type == OPTION_LIST))
        return err_set(e, ERR_CALLER, "%s: %s must not be empty", origin, o->metavar);
    if (o->type == OPTION_LIST)
        list_add(field, value);
    else if (o->type == OPTION_WORK)
        work_add(s, o->work, value);
    else
        set_text(field, value);
    return 0;
}

void option_show(const struct option *o, const struct settings *s, char *ret, size_t size)
{
    const char *field = (const char *)s + o->at;
    const struct number *n = number_of(o->type);

    *ret = '\0';
    if (n)
        n->show(*(const uint64_t *)(const void *)field, ret, size);
    else if (o->unset)
        snprintf(ret, size, "%s", o->unset);
}
