/* The ways to run a statement: rows become its arguments, and its answer becomes rows. */
#include "store/sql_int.h"

#include <stdlib.h>

#define ARGS_MAX 32

/* --- rows --- */

static struct arg arg_of(const struct column *c, const char *field)
{
    switch (c->kind) {
    case COLUMN_FIXED:
        return (struct arg)TEXT(field);
    case COLUMN_TEXT:
        return (struct arg)TEXT(*(char *const *)field);
    case COLUMN_PATH:
    case COLUMN_HASH:
        return (struct arg)BYTES(column_bytes(c, field));
    default:
        return (struct arg)NUMBER(column_number(c, field));
    }
}

static void read_column(struct db *db, struct answer *a, size_t at, const struct column *c,
                        char *field)
{
    if (c->kind == COLUMN_INT || c->kind == COLUMN_UINT)
        column_set_number(c, field, db->sql->number(a, at));
    else
        column_set_bytes(c, field, db->sql->bytes(a, at));
}

static void read_row(struct db *db, struct answer *a, size_t n, const struct row_type *t, void *ret)
{
    memset(ret, 0, t->size);
    for (size_t i = 0; i < t->count && i < n; i++)
        read_column(db, a, i, &t->columns[i], (char *)ret + t->columns[i].at);
}

/* Grows where the count is a power of two, so that no capacity need be known. */
static void *room_for_one(void *rows, size_t count, size_t size)
{
    return count & (count - 1) ? rows : mem_realloc(rows, (count ? 2 * count : 1) * size);
}

/* --- one statement --- */

/* Whatever the job makes of a failure: an engine that answers later could not have told it in time.
 */
static int note(struct db *db, const char *text, const struct arg *args, size_t count, int rc,
                const struct err *e)
{
    if (rc >= 0)
        redo_note(db, text, args, count);
    else if (db->write_failed.kind == ERR_NONE)
        db->write_failed = *e;
    return rc;
}

int sql_run(struct db *db, const char *text, const struct arg *args, size_t count, struct err *e)
{
    return note(db, text, args, count, db->sql->run(db, text, args, count, e), e);
}

int sql_post(struct db *db, const char *text, const struct arg *args, size_t count, struct err *e)
{
    return note(db, text, args, count, db->sql->post(db, text, args, count, e), e);
}

int sql_put(struct db *db, const char *text, const struct row_type *t, const void *row,
            const struct arg *args, size_t count, struct err *e)
{
    struct arg all[ARGS_MAX];

    assert(t->count + count <= ARGS_MAX);
    for (size_t i = 0; i < t->count; i++)
        all[i] = arg_of(&t->columns[i], (const char *)row + t->columns[i].at);
    for (size_t i = 0; i < count; i++)
        all[t->count + i] = args[i];
    count += t->count;
    return note(db, text, all, count, db->sql->post(db, text, all, count, e), e);
}

int sql_one(struct db *db, const char *text, const struct arg *args, size_t count,
            const struct row_type *t, void *ret, struct err *e)
{
    struct answer *a = db->sql->ask(db, text, args, count, e);
    int rc = a ? db->sql->next(db, a, e) : -1;

    if (rc == 1 && ret)
        read_row(db, a, db->sql->columns(a), t, ret);
    if (a)
        db->sql->close(a);
    return rc;
}

void *sql_all(struct db *db, const char *text, const struct arg *args, size_t count,
              const struct row_type *t, size_t *ret_count, struct err *e)
{
    struct answer *a = db->sql->ask(db, text, args, count, e);
    char *rows = NULL;
    size_t n = 0;
    int rc = -1;

    *ret_count = 0;
    while (a && (rc = db->sql->next(db, a, e)) == 1) {
        rows = room_for_one(rows, n, t->size);
        read_row(db, a, db->sql->columns(a), t, rows + n++ * t->size);
    }
    if (a)
        db->sql->close(a);
    if (rc < 0) {
        rows_free(t, rows, n);
        return NULL;
    }
    *ret_count = n;
    return rows ? rows : mem_zalloc(t->size);
}

/* --- pages --- */

#define LOOK_MAX 1000 /* rows looked at in one call */

static const size_t look_columns = 3; /* LOOK_AT() */

void progress_done(struct progress *p)
{
    mem_freep(&p->id);
}

/* One list on its way. */
struct page_read {
    struct db *db;
    const char *text;
    const struct row_type *type;
    struct page page;
    struct progress *progress; /* the page's, or one for this call alone */
    bool to_end;
    void **rows;
    size_t *count;
    size_t looked, asked;  /* rows, in this call; of the statement that runs */
    struct progress place; /* the last row of that statement */
};

static bool wants_more(const struct page_read *l)
{
    return l->to_end || *l->count < l->page.limit;
}

/* As many as can be wanted; then more and more, as few of those that are there seem to be. */
static size_t to_ask(const struct page_read *l)
{
    size_t n = l->page.limit - *l->count, left = LOOK_MAX - l->looked;

    if (l->page.skip > l->progress->seen)
        n += l->page.skip - l->progress->seen;
    if (n < 2 * l->asked)
        n = 2 * l->asked;
    if (l->to_end || n > LOOK_MAX)
        n = LOOK_MAX;
    return l->page.progress && n > left ? left : n;
}

static void note_place(struct page_read *l, struct answer *a, size_t own)
{
    l->place.ms = l->db->sql->number(a, own);
    l->place.id = mem_strndup(l->db->sql->bytes(a, own + 1));
}

/* The next statement, or the next call, goes on after this row. Not while a statement runs: the
 * place that it began at is one of its arguments. */
static void move_place(struct page_read *l)
{
    if (!l->place.id)
        return;
    free(l->progress->id);
    l->progress->ms = l->place.ms;
    l->progress->id = take_ptr(&l->place.id);
}

static void take_row(struct page_read *l, struct answer *a, size_t own)
{
    const struct row_type *t = l->type;

    if (!l->db->sql->number(a, own + 2) || l->progress->seen++ < l->page.skip ||
        *l->count == l->page.limit)
        return;
    *l->rows = room_for_one(*l->rows, *l->count, t->size);
    read_row(l->db, a, own, t, (char *)*l->rows + (*l->count)++ * t->size);
}

/* How many rows there were, or -1. */
static ssize_t look_once(struct page_read *l, const struct arg *args, size_t count, struct err *e)
{
    struct answer *a = l->db->sql->ask(l->db, l->text, args, count, e);
    size_t own = a ? l->db->sql->columns(a) - look_columns : 0;
    ssize_t n = 0;
    int rc = -1;

    while (a && (rc = l->db->sql->next(l->db, a, e)) == 1) {
        take_row(l, a, own);
        l->looked++;
        if (++n == (ssize_t)l->asked)
            note_place(l, a, own);
    }
    if (a)
        l->db->sql->close(a);
    move_place(l);
    return rc < 0 ? -1 : n;
}

static void span_move(struct span *s, int64_t ms, const char *id)
{
    if (s->oldest_first) {
        s->above_ms = ms;
        s->above_id = id;
    } else {
        s->below_ms = ms;
        s->below_id = id;
    }
}

/* 1: there may be more rows than one call looks at. */
static int look_on(struct page_read *l, struct span span, struct arg *all, size_t count,
                   struct err *e)
{
    ssize_t n = 0;

    while (wants_more(l)) {
        if (l->page.progress && l->looked == LOOK_MAX)
            return 1;
        l->asked = to_ask(l);
        all[0] = (struct arg)NUMBER(span.above_ms);
        all[1] = (struct arg)TEXT(span.above_id);
        all[2] = (struct arg)NUMBER(span.below_ms);
        all[3] = (struct arg)TEXT(span.below_id);
        all[4] = (struct arg)NUMBER(l->asked);
        n = look_once(l, all, count, e);
        if (n < 0)
            return -1;
        if ((size_t)n < l->asked)
            return 0;
        span_move(&span, l->progress->ms, l->progress->id);
    }
    return 0;
}

int sql_page(struct db *db, const char *text, struct span span, const struct arg *args,
             size_t count, const struct row_type *t, struct page page, bool to_end, void **rows,
             size_t *row_count, struct err *e)
{
    static const size_t first = 5; /* IN_SPAN, and LIMIT */
    AUTO(progress_done) struct progress whole = {0};
    struct arg all[ARGS_MAX];
    struct page_read l = {.db = db,
                          .text = text,
                          .type = t,
                          .page = page,
                          .progress = page.progress ? page.progress : &whole,
                          .to_end = to_end,
                          .rows = rows,
                          .count = row_count};
    int rc;

    assert(first + count <= ARGS_MAX);
    memcpy(all + first, args, count * sizeof(*args));
    if (!*rows)
        *row_count = 0;
    rc = look_on(&l, span, all, first + count, e);
    if (rc < 0) {
        rows_free(t, take_ptr(rows), *row_count);
        *row_count = 0;
    } else if (rc == 0 && !*rows) {
        *rows = mem_zalloc(t->size);
    }
    return rc;
}

int span_go_on(struct db *db, struct span *s, const char *made_when, const char *tenant,
               struct page page, struct err *e)
{
    const char *after = page.after;
    int64_t ms = page.after_ms;

    if (page.progress && page.progress->id) {
        after = page.progress->id;
        ms = page.progress->ms;
    } else if (!after) {
        return 0;
    } else if (!ms) {
        int rc = sql_one(db, made_when, ARGS(TEXT(page.after), TEXT(tenant)), &number_type, &ms, e);
        if (rc < 0)
            return -1;
        if (rc == 0) /* deleted since; its id says where it was */
            ms = id_time(str_of(page.after));
        if (ms == 0)
            return err_set(e, ERR_CALLER, "there is nothing with this id to go on after");
    }
    if (s->oldest_first ? ms >= s->above_ms : ms < s->below_ms)
        span_move(s, ms, after);
    return 0;
}
