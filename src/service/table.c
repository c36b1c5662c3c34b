/* A hash table of values by name: chained buckets, twice as many when it fills up. */
#include "service/service_int.h"

#include <stdlib.h>

#define FIRST_CAP 64

struct link {
    struct link *next;
    const char *key; /* borrowed: in the value */
    void *value;
};

static size_t place(const char *key, size_t cap)
{
    uint64_t hash = 14695981039346656037u; /* FNV-1a */

    for (; *key; key++)
        hash = (hash ^ (unsigned char)*key) * 1099511628211u;
    return (size_t)(hash ^ hash >> 32) & (cap - 1);
}

static struct link **find(const struct table *t, const char *key)
{
    struct link **at = &t->at[place(key, t->cap)];

    while (*at && strcmp((*at)->key, key) != 0)
        at = &(*at)->next;
    return at;
}

static void grow(struct table *t)
{
    struct table bigger = {.cap = t->cap ? t->cap * 2 : FIRST_CAP, .n = t->n};

    bigger.at = mem_zalloc(bigger.cap * sizeof(struct link *));
    for (size_t i = 0; i < t->cap; i++) {
        for (struct link *l = t->at[i], *next; l; l = next) {
            struct link **to = &bigger.at[place(l->key, bigger.cap)];
            next = l->next;
            l->next = *to;
            *to = l;
        }
    }
    free(t->at);
    *t = bigger;
}

void *table_get(const struct table *t, const char *key)
{
    struct link *l = t->cap ? *find(t, key) : NULL;

    return l ? l->value : NULL;
}

void table_put(struct table *t, const char *key, void *value)
{
    struct link *l = mem_zalloc(sizeof(*l));

    if (t->n >= t->cap)
        grow(t);
    struct link **at = find(t, key);
    assert(!*at);
    *l = (struct link){.key = key, .value = value};
    *at = l;
    t->n++;
}

void table_drop(struct table *t, const char *key)
{
    struct link **at = find(t, key);
    struct link *l = *at;

    assert(l);
    *at = l->next;
    free(l);
    t->n--;
}

void **table_all(const struct table *t)
{
    void **all = mem_zalloc((t->n + 1) * sizeof(*all));
    size_t n = 0;

    for (size_t i = 0; i < t->cap; i++)
        for (struct link *l = t->at[i]; l; l = l->next)
            all[n++] = l->value;
    return all;
}

void table_done(struct table *t)
{
    for (size_t i = 0; i < t->cap; i++) {
        for (struct link *l = t->at[i], *next; l; l = next) {
            next = l->next;
            free(l);
        }
    }
    free(t->at);
    *t = (struct table){0};
}
