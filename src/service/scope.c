/*
 * The limits of a key: pools, doors, reading, time. This is the one place that decides about them.
 *
 * A caller carries the id of its key, and each question looks the limits up in the list of keys. So
 * the limits are always those of the key, wherever the caller was copied to: a conversation, a run
 * of the agent after a restart, a token that was signed for an end user.
 */
#include "service/service_int.h"

#include <stdio.h>
#include <stdlib.h>

/* Every door's name, and the parts that a key can be made for alone. A door opens its parts. */
static const char *const doors[] = {
    "rest", "mcp", "anthropic", "azure", "azure/mcp", "ubik", "prisme", "qwen", "operator",
};

bool scope_door_known(struct str name)
{
    for (size_t i = 0; i < COUNT(doors); i++)
        if (str_is(name, doors[i]))
            return true;
    return false;
}

/* --- lists of names --- */

/* Whether a comma-separated list has the name. */
static bool has_name(const char *list, struct str name)
{
    struct str rest = str_of(list), item;

    while (str_next(&rest, ',', &item))
        if (item.n > 0 && str_eq(item, name))
            return true;
    return false;
}

bool pools_have(const char *pools, const char *pool)
{
    return !pools || has_name(pools, str_of(pool));
}

static int by_name(const void *a, const void *b)
{
    const struct str *x = a, *y = b;
    size_t n = x->n < y->n ? x->n : y->n;
    int order = memcmp(x->p, y->p, n);

    return order ? order : (x->n > y->n) - (x->n < y->n);
}

static bool is_pool(struct str name)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";

    for (size_t i = 0; i < name.n; i++)
        if (!memchr(letters, name.p[i], sizeof(letters) - 1))
            return false;
    return name.n > 0 && name.n < 64;
}

/* In order, each once, so that two keys of the same pools have the same text. Owned; NULL and no
 * error: the list is empty. */
static int take_names(struct str list, bool (*good)(struct str), const char *what, char **ret,
                      struct err *e)
{
    struct str names[SCOPE_NAMES_MAX], item;
    AUTO(buf_done) struct buf b = BUF(4 * KiB);
    char shown[NAME_SHOWN];
    size_t n = 0;

    *ret = NULL;
    while (str_next(&list, ',', &item)) {
        item = str_trim(item);
        if (item.n == 0)
            continue;
        if (!good(item))
            return err_set(e, ERR_CALLER, "%s is not the name of a %s", name_show(shown, item),
                           what);
        if (n == COUNT(names))
            return err_set(e, ERR_CALLER, "a key is limited to %d %ss at most", SCOPE_NAMES_MAX,
                           what);
        names[n++] = item;
    }
    qsort(names, n, sizeof(*names), by_name);
    for (size_t i = 0; i < n; i++)
        if (i == 0 || !str_eq(names[i], names[i - 1]))
            buf_printf(&b, "%s%.*s", i ? "," : "", (int)names[i].n, names[i].p);
    if (n > 0)
        *ret = mem_strndup(buf_str(&b));
    return 0;
}

int key_limit(struct key_row *row, const struct key_limits *l, struct err *e)
{
    if (row->admin && (l->pools.n || l->doors.n))
        return err_set(e, ERR_CALLER,
                       "an administrator's key is not limited to pools or doors: it could make "
                       "another key that is not");
    if (row->approver && l->read_only)
        return err_set(e, ERR_CALLER, "a key that only reads cannot approve anything");
    if (take_names(l->pools, is_pool, "pool", &row->pools, e) < 0 ||
        take_names(l->doors, scope_door_known, "door", &row->doors, e) < 0)
        return -1;
    row->read_only = l->read_only;
    row->expires_ms = l->expires_ms ? row->created_ms + (int64_t)l->expires_ms : 0;
    return 0;
}

/* --- what a caller may --- */

static const struct key_row *key_of(const struct service *sv, const struct caller *c)
{
    static char none[] = "";
    static const struct key_row nobody = {.pools = none, .doors = none, .read_only = true};
    static const struct key_row anybody = {0};

    if (!*c->key || sv->key_count == 0)
        return &anybody;
    for (size_t i = 0; i < sv->key_count; i++)
        if (strcmp(sv->keys[i].id, c->key) == 0)
            return &sv->keys[i];
    return &nobody;
}

const char *scope_pools(const struct service *sv, const struct caller *c)
{
    return key_of(sv, c)->pools;
}

char *scope_pools_copy(const struct service *sv, const struct caller *c)
{
    const char *pools = scope_pools(sv, c);

    return pools ? mem_strdup(pools) : NULL;
}

bool service_sees_pool(struct service *sv, const struct caller *c, const char *pool)
{
    return pools_have(scope_pools(sv, c), pool);
}

bool service_only_reads(struct service *sv, const struct caller *c)
{
    return key_of(sv, c)->read_only;
}

int scope_writes(const struct service *sv, const struct caller *c, struct err *e)
{
    return key_of(sv, c)->read_only ? err_set(e, ERR_DENIED, "this key may only read") : 0;
}

int service_may(struct service *sv, const struct caller *c, const char *door, bool reads,
                struct err *e)
{
    const struct key_row *k = key_of(sv, c);
    const char *slash = strchr(door, '/');
    struct str whole = {door, slash ? (size_t)(slash - door) : strlen(door)};

    if (k->doors && !has_name(k->doors, whole) && !(slash && has_name(k->doors, str_of(door))))
        return err_set(e, ERR_DENIED, "this key does not open the door %s", door);
    return reads ? 0 : scope_writes(sv, c, e);
}

bool service_is_limited(struct service *sv, const struct caller *c)
{
    const struct key_row *k = key_of(sv, c);

    return k->doors || k->read_only;
}

struct pool_entry *scope_pool_entry(struct service *sv, const struct caller *c, struct str pool,
                                    struct err *e)
{
    const char *pools = scope_pools(sv, c);
    struct str rest = str_of(pools), first = {0};
    struct pool_entry *env;
    char shown[NAME_SHOWN];

    if (pool.n == 0 && pools && !has_name(pools, str_of(sv->pools->config.name)) &&
        str_next(&rest, ',', &first))
        pool = first;
    env = pool_entry_find(sv, pool);
    if (pools && !has_name(pools, pool.n ? pool : str_of(sv->pools->config.name))) {
        err_set(e, ERR_DENIED, "this key does not open the pool %s", name_show(shown, pool));
        return NULL;
    }
    if (!env)
        err_set(e, ERR_CALLER, "there is no such pool");
    return env;
}
