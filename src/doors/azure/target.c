/*
 * Parses the path of a request into the pool and the operation.
 *
 * Clients join a base URL and a path with one slash, with two, or leave one at the end;
 * and names of Azure's own are the same in any case. So the path is cut into its parts,
 * empty ones left out, before anything is compared.
 */
#include "doors/azure/azure_int.h"

#include <strings.h>

#define PARTS_MAX 64

bool str_nocase(struct str a, struct str b)
{
    return a.n == b.n && (a.n == 0 || strncasecmp(a.p, b.p, a.n) == 0);
}

struct parts {
    struct str at[PARTS_MAX];
    size_t n;
};

/* Copies the parts to room, each with a slash before it but the first. */
static bool split(struct str path, char *room, struct parts *ret)
{
    ret->n = 0;
    while (path.n > 0) {
        const char *slash = memchr(path.p, '/', path.n);
        size_t n = slash ? (size_t)(slash - path.p) : path.n;
        if (n > 0 && ret->n == PARTS_MAX)
            return false;
        if (n > 0) {
            if (ret->n > 0)
                *room++ = '/';
            memcpy(room, path.p, n);
            ret->at[ret->n++] = (struct str){room, n};
            room += n;
        }
        path = (struct str){path.p + n + (slash ? 1 : 0), path.n - n - (slash ? 1 : 0)};
    }
    *room = '\0';
    return true;
}

static bool is(const struct parts *p, size_t i, const char *word)
{
    return i < p->n && str_nocase(p->at[i], str_of(word));
}

/* A name that is repeated in URLs and headers. */
static bool is_plain(struct str s)
{
    static const char more[] = "-_.()";

    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              memchr(more, c, sizeof(more) - 1)))
            return false;
    }
    return s.n > 0 && s.n <= NAME_IN_URL_MAX;
}

static bool take_name(const struct parts *p, size_t i, struct str *ret)
{
    if (i >= p->n || !is_plain(p->at[i]))
        return false;
    *ret = p->at[i];
    return true;
}

/* The rest from this part on; the parts stand side by side. */
static struct str from(const struct parts *p, size_t i)
{
    const char *end = p->n ? p->at[p->n - 1].p + p->at[p->n - 1].n : "";

    return i < p->n ? (struct str){p->at[i].p, (size_t)(end - p->at[i].p)} : STR("");
}

/* What follows providers/: the rows of the table are tried in their order. */
static const struct {
    const char *provider, *type; /* type NULL: the provider itself */
    bool named, in_group;        /* the type is followed by a name; it is of a group */
    enum target_kind kind;
} providers[] = {
    {"Microsoft.App",       "sessionPools",        true,  true,  TARGET_POOL       },
    {"Microsoft.App",       "sessionPools",        false, false, TARGET_POOLS      },
    {"Microsoft.App",       "managedEnvironments", true,  true,  TARGET_ENVIRONMENT},
    {"Microsoft.Resources", "deployments",         true,  true,  TARGET_DEPLOYMENT },
    {"Microsoft.Resources", "deployments",         false, true,  TARGET_DEPLOYMENTS},
    {"Microsoft.App",       NULL,                  false, false, TARGET_PROVIDER   },
};

/* locations/{l}/sessionPoolOperationStatuses/{id} */
static bool read_operation(const struct parts *p, size_t i, struct azure_target *ret)
{
    if (!is(p, i, "Microsoft.App") || !is(p, i + 1, "locations") || p->n != i + 5)
        return false;
    ret->kind = TARGET_OPERATION;
    return take_name(p, i + 4, &ret->pool);
}

static bool read_provider(const struct parts *p, size_t i, struct azure_target *ret)
{
    if (read_operation(p, i, ret))
        return true;
    for (size_t k = 0; k < COUNT(providers); k++) {
        size_t at = i + 1 + (providers[k].type != NULL);
        if (!is(p, i, providers[k].provider) ||
            (providers[k].type && !is(p, i + 1, providers[k].type)) ||
            (providers[k].in_group && ret->group.n == 0) || (providers[k].named && at >= p->n) ||
            (!providers[k].named && at < p->n && !(!providers[k].type && is(p, at, "register"))))
            continue;
        ret->kind = providers[k].kind;
        if (providers[k].named && !take_name(p, at++, &ret->pool))
            return false;
        ret->rest = from(p, at);
        return true;
    }
    return false;
}

/* {s}/resourceGroups/{g}/..., or {s}/providers/... for all groups. */
static bool read_arm(const struct parts *p, struct azure_target *ret)
{
    size_t i = 1;

    if (!take_name(p, 0, &ret->subscription))
        return false;
    if (is(p, i, "resourceGroups")) {
        if (!take_name(p, i + 1, &ret->group))
            return false;
        i += 2;
    }
    if (is(p, i, "providers"))
        return read_provider(p, i + 1, ret);
    ret->kind = TARGET_GROUP;
    if (i == p->n)
        return ret->group.n > 0;
    if (is(p, i, "deployments")) { /* its operations are here, without a provider */
        ret->kind = TARGET_DEPLOYMENT;
        ret->rest = from(p, i + 2);
        return ret->group.n > 0 && is(p, i + 2, "operations") && take_name(p, i + 1, &ret->pool);
    }
    ret->kind = i + 1 < p->n ? TARGET_POOL : TARGET_POOLS;
    if (!is(p, i, "sessionPools") || (i + 1 < p->n && ret->group.n == 0) ||
        (i + 1 < p->n && !take_name(p, i + 1, &ret->pool)))
        return false;
    ret->rest = from(p, i + 2);
    return true;
}

bool azure_target_read(struct str path, bool arm, char *room, struct azure_target *ret)
{
    struct parts p;

    *ret = (struct azure_target){.rest = STR("")};
    if (!split(path, room, &p))
        return false;
    if (arm)
        return read_arm(&p, ret);
    if (!is(&p, 0, "pools"))
        return false;
    ret->kind = p.n > 1 ? TARGET_POOL : TARGET_POOLS;
    if (p.n > 1 && !take_name(&p, 1, &ret->pool))
        return false;
    ret->rest = from(&p, 2);
    return true;
}

/* Whether s begins with the word, in any case; cuts it off. */
static bool cut_front(struct str *s, struct str word)
{
    if (s->n < word.n || !str_nocase((struct str){s->p, word.n}, word))
        return false;
    *s = (struct str){s->p + word.n, s->n - word.n};
    return true;
}

static bool cut_end(struct str *s, struct str word)
{
    if (s->n < word.n || !str_nocase((struct str){s->p + s->n - word.n, word.n}, word))
        return false;
    s->n -= word.n;
    return true;
}

bool rest_fits(const char *pattern, struct str rest, struct str *ret_name)
{
    const char *stars = strstr(pattern, "**");
    struct str name = rest;

    *ret_name = (struct str){0};
    if (!stars)
        return str_nocase(rest, str_of(pattern));
    if (!cut_front(&name, (struct str){pattern, (size_t)(stars - pattern)}) ||
        !cut_end(&name, str_of(stars + 2)) || name.n == 0)
        return false;
    *ret_name = name;
    return true;
}
