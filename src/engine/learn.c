/*
 * Which modules the next interpreter of a pool has from the start: those that many of its last
 * sessions have imported. A session has one vote for each module. With every SESSIONS_KEPT sessions
 * all votes are halved, so that what nobody wants any more goes.
 *
 * A session's word is not to be trusted, as its code may speak in the place of its interpreter. So
 * there is a limit to everything here, and a module is only a wish: the interpreter imports what
 * its environment has and what does no harm (src/guest/py/retort_guest/learned.py).
 */
#include "engine/engine_int.h"

#include <stdlib.h>

#define ROWS_MAX      256
#define SESSIONS_KEPT 64
#define VOTES_MIN     2
#define SHARE         16 /* one session in as many */
#define VOTE_MAX      64 /* names at a time */

struct votes {
    char module[WIRE_MODULE_MAX + 1];
    unsigned count;
    uint64_t voter; /* the last */
    bool asked;     /* of the interpreter that is coming up */
    bool learned;   /* the interpreter has it */
    bool failed;    /* it could not be had, and is not asked for again */
};

struct learn {
    unsigned sessions;
    size_t row_count;
    struct votes rows[ROWS_MAX];
};

struct learn *learn_new(void)
{
    return mem_zalloc(sizeof(struct learn));
}

void learn_free(struct learn *l)
{
    free(l);
}

void learn_session(struct learn *l)
{
    if (++l->sessions < 2 * SESSIONS_KEPT)
        return;
    l->sessions /= 2;
    for (size_t i = 0; i < l->row_count; i++)
        l->rows[i].count /= 2;
}

static struct votes *find(struct learn *l, struct str module)
{
    for (size_t i = 0; i < l->row_count; i++)
        if (str_is(module, l->rows[i].module))
            return &l->rows[i];
    return NULL;
}

/* What has the fewest votes makes room, if nothing is known about it but these. */
static struct votes *add(struct learn *l, struct str module)
{
    struct votes *row = NULL;

    if (l->row_count < ROWS_MAX)
        row = &l->rows[l->row_count++];
    for (size_t i = 0; !row && i < ROWS_MAX; i++)
        if (l->rows[i].count <= 1 && !l->rows[i].learned && !l->rows[i].asked)
            row = &l->rows[i];
    if (row) {
        *row = (struct votes){0};
        memcpy(row->module, module.p, module.n);
    }
    return row;
}

int learn_vote(struct learn *l, uint64_t session, struct str modules)
{
    struct str module;

    if (!wire_are_modules(modules))
        return -1;
    for (int n = 0; n < VOTE_MAX && str_next(&modules, ',', &module); n++) {
        struct votes *row = find(l, module);
        if (!row && !(row = add(l, module)))
            continue;
        row->count += row->voter != session && row->count < UINT32_MAX / 2;
        row->voter = session;
    }
    return 0;
}

static bool is_wanted(const struct learn *l, const struct votes *row)
{
    if (row->failed || row->count == 0)
        return false;
    /* What is there stays for as long as anybody wants it: its pages are shared by all. */
    return row->learned || (row->count >= VOTES_MIN && row->count * SHARE >= l->sessions);
}

static int by_votes(const void *a, const void *b)
{
    const struct votes *x = *(struct votes *const *)a, *y = *(struct votes *const *)b;

    if (x->count != y->count)
        return x->count < y->count ? 1 : -1;
    return strcmp(x->module, y->module); /* a package before its modules */
}

static size_t wanted(struct learn *l, struct votes *ret[ROWS_MAX])
{
    size_t n = 0;

    for (size_t i = 0; i < l->row_count; i++)
        if (is_wanted(l, &l->rows[i]))
            ret[n++] = &l->rows[i];
    qsort(ret, n, sizeof(*ret), by_votes);
    return n < LEARNED_MAX ? n : LEARNED_MAX;
}

bool learn_is_due(struct learn *l)
{
    struct votes *want[ROWS_MAX];
    size_t n = wanted(l, want);

    for (size_t i = 0; i < n; i++)
        if (!want[i]->learned)
            return true;
    return false;
}

void learn_ask(struct learn *l, struct buf *ret)
{
    struct votes *want[ROWS_MAX];
    size_t n = wanted(l, want);

    for (size_t i = 0; i < n; i++) {
        want[i]->asked = true;
        buf_printf(ret, "%s%s", i ? "," : "", want[i]->module);
    }
}

void learn_take(struct learn *l, struct str modules)
{
    struct str module;

    for (size_t i = 0; i < l->row_count; i++) {
        struct votes *row = &l->rows[i];
        row->learned = false;
        row->failed |= row->asked; /* unless it is named below */
    }
    while (wire_are_modules(modules) && str_next(&modules, ',', &module)) {
        struct votes *row = find(l, module);
        if (row && row->asked) {
            row->learned = true;
            row->failed = false;
        }
    }
    for (size_t i = 0; i < l->row_count; i++)
        l->rows[i].asked = false;
}

void learn_give_up(struct learn *l)
{
    for (size_t i = 0; i < l->row_count; i++) {
        l->rows[i].failed |= l->rows[i].asked;
        l->rows[i].asked = false;
    }
}

size_t learn_tell(const struct learn *l, const char *ret[LEARNED_MAX])
{
    size_t n = 0;

    for (size_t i = 0; i < l->row_count && n < LEARNED_MAX; i++)
        if (l->rows[i].learned)
            ret[n++] = l->rows[i].module;
    return n;
}
