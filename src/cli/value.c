/* Option values between text and struct settings: one row per type. */
#include "cli/cli_int.h"
#include "fetch/fetch.h"

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

/* The longest first: a time is shown in the longest unit that it has several of. */
static const struct {
    char suffix;
    uint64_t ms;
} time_units[] = {
    {'d', 24ull * 60 * 60 * 1000},
    {'h', 60ull * 60 * 1000     },
    {'m', 60ull * 1000          },
    {'s', 1000                  },
};

static bool read_seconds(const char *text, uint64_t *ret)
{
    const char *end = text + strspn(text, "0123456789.");
    uint64_t scale = *end == '\0' ? 1000 : strcmp(end, "ms") == 0 ? 1 : 0;

    for (size_t i = 0; i < COUNT(time_units); i++)
        if (end[0] == time_units[i].suffix && end[1] == '\0')
            scale = time_units[i].ms;
    return scale != 0 && read_decimal(text, scale, true, ret) == end;
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

static bool read_mode(const char *text, uint64_t *ret)
{
    char *end;

    *ret = strtoull(text, &end, 8);
    return *text >= '0' && *text <= '7' && *end == '\0' && end - text <= 4;
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
    for (size_t i = 0; i < COUNT(time_units); i++) {
        uint64_t unit = time_units[i].ms;
        if (unit > 1000 && v >= 2 * unit && v % unit == 0) {
            snprintf(ret, size, "%" PRIu64 "%c", v / unit, time_units[i].suffix);
            return;
        }
    }
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

static void show_mode(uint64_t v, char *ret, size_t size)
{
    snprintf(ret, size, "%04" PRIo64, v);
}

/* The types that are kept as a number. */
static const struct option_number {
    bool (*read)(const char *text, uint64_t *ret);
    void (*show)(uint64_t v, char *ret, size_t size);
    const char *what; /* completes "'x' is not ..." */
} numbers[] = {
    [OPTION_SIZE] = {read_size,    show_size,    "a size such as 512M or 2G"            },
    [OPTION_SECONDS] = {read_seconds, show_seconds, "a number of seconds such as 30 or 0.5"},
    [OPTION_CORES] = {read_cores,   show_cores,   "a number of cores such as 1 or 0.5"   },
    [OPTION_COUNT] = {read_count,   show_count,   "a whole number"                       },
    [OPTION_MODE] = {read_mode,    show_mode,    "a mode in octal such as 0660"         },
};

static const struct option_number *number_of(enum option_type t)
{
    return t < COUNT(numbers) && numbers[t].read ? &numbers[t] : NULL;
}

static int set_number(const struct option *o, uint64_t *field, const char *origin,
                      const char *value, struct err *e)
{
    const struct option_number *n = number_of(o->type);
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
    s->work.item[s->work.count++] = (struct cli_work){kind, mem_strdup(arg)};
}

void list_add(struct list *l, const char *value)
{
    l->item = mem_realloc(l->item, (l->count + 1) * sizeof(*l->item));
    l->item[l->count++] = mem_strdup(value);
}

/* "a, b": each word without the spaces around it. */
static int add_words(struct list *l, const char *origin, const char *value, struct err *e)
{
    for (const char *p = value, *end; p; p = *end ? end + 1 : NULL) {
        AUTO_FREE char *word = NULL;
        p += strspn(p, " \t");
        end = strchrnul(p, ',');
        size_t n = (size_t)(end - p);
        while (n > 0 && (p[n - 1] == ' ' || p[n - 1] == '\t'))
            n--;
        if (n == 0)
            return err_set(e, ERR_CALLER, "%s: something is missing beside a comma", origin);
        word = mem_strndup((struct str){p, n});
        list_add(l, word);
    }
    return 0;
}

/* The n-th of "a|b|c"; empty past the last. */
static struct str choice_word(const char *choices, unsigned n)
{
    for (; n > 0; n--) {
        choices = strchr(choices, '|');
        if (!choices)
            return (struct str){0};
        choices++;
    }
    return (struct str){choices, (size_t)(strchrnul(choices, '|') - choices)};
}

static int set_choice(const struct option *o, unsigned *field, const char *origin,
                      const char *value, struct err *e)
{
    char name[NAME_SHOWN], all[128] = "";
    struct str word;
    size_t at = 0;

    for (unsigned i = 0; (word = choice_word(o->choices, i)).n > 0; i++) {
        if (str_is(word, value)) {
            *field = i;
            return 0;
        }
        bool last = choice_word(o->choices, i + 1).n == 0;
        at += (size_t)snprintf(all + at, sizeof(all) - at, "%s%.*s",
                               i == 0 ? ""
                               : last ? " nor "
                                      : ", ",
                               (int)word.n, word.p);
    }
    return err_set(e, ERR_CALLER, "%s: '%s' is neither %s", origin, name_show(name, str_of(value)),
                   all);
}

static void set_text(char **field, const char *value)
{
    free(*field);
    *field = value ? mem_strdup(value) : NULL;
}

/* An empty text is none where none is the default. Elsewhere it says something: an empty list. */
static bool is_none(const struct option *o, const char *value)
{
    return !*value && o->unset && strcmp(o->unset, "none") == 0;
}

static int check_hosts(const char *origin, const char *value, struct err *e)
{
    struct host_list *l = host_list_new(value, e);

    if (!l)
        return err_wrap(e, "%s", origin);
    host_list_free(l);
    return 0;
}

int option_set(const struct option *o, struct settings *s, const char *origin, const char *value,
               struct err *e)
{
    void *field = (char *)s + o->at;

    if (number_of(o->type))
        return set_number(o, field, origin, value, e);
    if (o->type == OPTION_BOOL)
        return set_bool(field, origin, value, e);
    if (o->type == OPTION_CHOICE)
        return set_choice(o, field, origin, value, e);
    if (o->type == OPTION_HOSTS && check_hosts(origin, value, e) < 0)
        return -1;
    if (*value == '\0' && o->type != OPTION_TEXT && o->type != OPTION_HOSTS &&
        o->type != OPTION_WORK)
        return err_set(e, ERR_CALLER, "%s: %s must not be empty", origin, o->metavar);
    if (o->type == OPTION_WORDS)
        return add_words(field, origin, value, e);
    if (o->type == OPTION_LIST)
        list_add(field, value);
    else if (o->type == OPTION_WORK)
        work_add(s, o->work, value);
    else
        set_text(field, is_none(o, value) ? NULL : value);
    return 0;
}

int setting_set(const struct option *o, struct settings *s, enum source_kind source,
                const char *origin, const char *value, struct err *e)
{
    unsigned char *from = &s->from[option_index(o)];

    if (o->type == OPTION_WORDS && *from < source)
        list_done((void *)((char *)s + o->at));
    *from = (unsigned char)source;
    return option_set(o, s, origin, value, e);
}

/* Rows point into struct settings, so a pool borrows one for a moment. */
int pool_set(const struct option *o, struct service_pool *p, const char *origin, const char *value,
             struct err *e)
{
    struct settings s = {.pool = *p};
    int rc;

    assert(option_is_pools(o));
    rc = option_set(o, &s, origin, value, e);
    *p = s.pool;
    return rc;
}

int endpoint_set(const struct option *o, struct endpoint_settings *m, const char *origin,
                 const char *value, struct err *e)
{
    struct settings s = {.model.one = *m};
    int rc;

    assert(option_is_models(o));
    rc = option_set(o, &s, origin, value, e);
    *m = s.model.one;
    return rc;
}

static void show_list(const struct list *l, char *ret, size_t size)
{
    size_t at = 0;

    for (size_t i = 0; i < l->count && at < size; i++)
        at += (size_t)snprintf(ret + at, size - at, "%s%s", i ? ", " : "", l->item[i]);
}

void option_show(const struct option *o, const struct settings *s, char *ret, size_t size)
{
    const void *field = (const char *)s + o->at;
    const struct option_number *n = number_of(o->type);

    *ret = '\0';
    if (o->secret)
        return;
    if (n) {
        n->show(*(const uint64_t *)field, ret, size);
    } else if (o->type == OPTION_BOOL) {
        snprintf(ret, size, "%s", *(const bool *)field ? "yes" : "no");
    } else if (o->type == OPTION_CHOICE) {
        struct str word = choice_word(o->choices, *(const unsigned *)field);
        snprintf(ret, size, "%.*s", (int)word.n, word.p);
    } else if (o->type == OPTION_WORDS) {
        show_list(field, ret, size);
    } else if (o->type == OPTION_TEXT || o->type == OPTION_PATH || o->type == OPTION_HOSTS) {
        const char *text = *(char *const *)field;
        snprintf(ret, size, "%s", text ? text : "");
    }
}

void option_show_default(const struct option *o, const struct settings *defaults, char *ret,
                         size_t size)
{
    if (o->unset || o->type == OPTION_BOOL)
        snprintf(ret, size, "%s", o->unset ? o->unset : "");
    else
        option_show(o, defaults, ret, size);
}
