/*
 * Rows of one database, to another, whatever engine each of them is: one walk for all tables. What
 * a table is made of is asked of the database's own catalog, so a table or a column that a step of
 * the schema adds is copied without a word here.
 *
 * A table is walked in the order of its primary key, which is the same in every engine: numbers by
 * their value, texts and bytes by their bytes. A batch of rows is one transaction. What was copied
 * before the process ended is therefore the beginning of the table, and its last key says where to
 * go on; nothing else need be remembered.
 *
 * Batches are bounded in bytes: how long rows are is asked first.
 */
#include "store/copy_int.h"

#include <endian.h>
#include <stdio.h>
#include <stdlib.h>

#define TABLES_MAX  64
#define COLUMNS_MAX 31 /* an engine takes 32 arguments */
#define KEYS_MAX    4
#define NAME_MAX_   64
#define SQL_MAX     1900
#define BATCH_ROWS  500
#define BATCH_CHARS (4 * MiB)

enum copy_kind { KIND_NUMBER, KIND_TEXT, KIND_BYTES };

struct copy_column {
    char name[NAME_MAX_];
    enum copy_kind kind;
};

struct copy_table {
    char name[NAME_MAX_];
    struct copy_column column[COLUMNS_MAX];
    size_t columns;
    size_t key[KEYS_MAX]; /* columns, in the order of the key */
    size_t keys;
    bool first;        /* rows of other tables refer to these */
    bool by_trigger;   /* copied rows of another table make these */
    const char *where; /* of interest are only these; or NULL */
};

struct copy_tables {
    struct copy_table at[TABLES_MAX];
    size_t count;
};

static const struct {
    const char *name;
    bool first, by_trigger;
    const char *where;
} special[] = {
    {"sessions",          .first = true        },
 /* Of a tenant who had items once nothing has to be known. */
    { "item_bytes", .by_trigger = true, .where = "bytes <> 0"},
};

/* An engine's own, and the mark of a copy. */
#define OWN_PREFIX "retort_"

/* --- what there is --- */

static void name_from(struct db *db, struct answer *a, char ret[NAME_MAX_])
{
    if (!str_to_cstr(db->sql->bytes(a, 0), ret, NAME_MAX_))
        *ret = '\0';
}

static int read_column(struct db *db, struct answer *a, struct copy_table *t, struct err *e)
{
    int64_t place = db->sql->number(a, 2);

    if (t->columns == COLUMNS_MAX || place > KEYS_MAX)
        return err_set(e, ERR_HOST, "the table %s has too many columns", t->name);
    name_from(db, a, t->column[t->columns].name);
    t->column[t->columns].kind = (enum copy_kind)db->sql->number(a, 1);
    if (place > 0)
        t->key[place - 1] = t->columns;
    t->keys += place > 0;
    t->columns++;
    return 0;
}

static int read_columns(struct db *db, struct copy_table *t, struct err *e)
{
    struct answer *a = db->sql->ask(db, db->sql->columns_of, ARGS(TEXT(t->name)), e);
    int rc = -1;

    while (a && (rc = db->sql->next(db, a, e)) > 0)
        if ((rc = read_column(db, a, t, e)) < 0)
            break;
    if (a)
        db->sql->close(a);
    if (rc == 0 && t->keys == 0)
        return err_set(e, ERR_HOST, "the table %s has no primary key", t->name);
    return rc;
}

static int read_names(struct db *db, struct copy_tables *ret, struct err *e)
{
    struct answer *a = db->sql->ask(db, db->sql->tables, NULL, 0, e);
    int rc = -1;

    while (a && (rc = db->sql->next(db, a, e)) > 0) {
        struct copy_table *t = &ret->at[ret->count];
        if (ret->count == TABLES_MAX) {
            rc = err_set(e, ERR_HOST, "the database has too many tables");
            break;
        }
        name_from(db, a, t->name);
        ret->count += strncmp(t->name, OWN_PREFIX, strlen(OWN_PREFIX)) != 0;
    }
    if (a)
        db->sql->close(a);
    return rc;
}

static int by_order(const void *a, const void *b)
{
    const struct copy_table *x = a, *y = b;

    return x->first != y->first ? y->first - x->first : strcmp(x->name, y->name);
}

/* Owned, or NULL. */
static struct copy_tables *tables_of(struct db *db, struct err *e)
{
    AUTO_FREE struct copy_tables *ret = mem_zalloc(sizeof(*ret));

    if (read_names(db, ret, e) < 0)
        return NULL;
    for (size_t i = 0; i < ret->count; i++) {
        struct copy_table *t = &ret->at[i];
        for (size_t k = 0; k < COUNT(special); k++)
            if (strcmp(special[k].name, t->name) == 0) {
                t->first = special[k].first;
                t->by_trigger = special[k].by_trigger;
                t->where = special[k].where;
            }
        if (read_columns(db, t, e) < 0)
            return NULL;
    }
    qsort(ret->at, ret->count, sizeof(*ret->at), by_order);
    return take_ptr(&ret);
}

int rows_has_table(struct db *db, const char *name, struct err *e)
{
    struct answer *a = db->sql->ask(db, db->sql->tables, NULL, 0, e);
    bool found = false;
    int rc = -1;

    while (a && (rc = db->sql->next(db, a, e)) > 0)
        found |= str_is(db->sql->bytes(a, 0), name);
    if (a)
        db->sql->close(a);
    return rc < 0 ? -1 : found;
}

/* --- statements --- */

static void put_names(struct buf *b, const struct copy_table *t)
{
    for (size_t i = 0; i < t->columns; i++)
        buf_printf(b, "%s%s", i ? ", " : "", t->column[i].name);
}

static void put_keys(struct buf *b, const struct copy_table *t, const char *behind)
{
    for (size_t i = 0; i < t->keys; i++)
        buf_printf(b, "%s%s%s", i ? ", " : "", t->column[t->key[i]].name, behind);
}

/* How long a row is, nearly: a character may have four bytes. */
static void put_length(struct buf *b, const struct copy_table *t)
{
    buf_put(b, STR("0"));
    for (size_t i = 0; i < t->columns; i++)
        if (t->column[i].kind != KIND_NUMBER)
            buf_printf(b, " + coalesce(length(%s), 0)", t->column[i].name);
}

/* FROM t, those behind a key, in order, so many: ?1 ... are the key, and the number. */
static void put_some(struct buf *b, const struct copy_table *t, bool after)
{
    buf_printf(b, " FROM %s", t->name);
    if (t->where || after)
        buf_printf(b, " WHERE %s%s", t->where ? t->where : "", t->where && after ? " AND " : "");
    for (size_t i = 0; after && i < t->keys; i++)
        buf_printf(b, "%s%s", i ? ", " : "(", t->column[t->key[i]].name);
    for (size_t i = 0; after && i < t->keys; i++)
        buf_printf(b, "%s?%zu", i ? ", " : ") > (", i + 1);
    buf_printf(b, "%s ORDER BY ", after ? ")" : "");
    put_keys(b, t, "");
    buf_printf(b, " LIMIT ?%zu", after ? t->keys + 1 : 1);
}

/* --- rows --- */

struct copy_value {
    bool is_null;
    int64_t number;
    char *bytes; /* owned, with a NUL behind them */
    size_t n;
};

struct copy_rows {
    const struct copy_table *of; /* borrowed */
    struct copy_value *at;       /* owned: of->columns for each row */
    size_t count;
};

static void rows_clear(struct copy_rows *r)
{
    for (size_t i = 0; r->of && i < r->count * r->of->columns; i++)
        free(r->at[i].bytes);
    free(r->at);
    *r = (struct copy_rows){0};
}

static const struct copy_value *last_of(const struct copy_rows *r)
{
    return &r->at[(r->count - 1) * r->of->columns];
}

static struct arg arg_of(const struct copy_column *c, const struct copy_value *v)
{
    switch (c->kind) {
    case KIND_NUMBER:
        return (struct arg)NUMBER(v->number);
    case KIND_TEXT:
        return (struct arg)TEXT(v->bytes);
    default:
        return (struct arg)BYTES(((struct str){v->bytes, v->n}));
    }
}

static int read_value(struct db *db, struct answer *a, size_t at, const struct copy_table *t,
                      struct copy_value *ret, struct err *e)
{
    struct str b = db->sql->bytes(a, at);

    *ret = (struct copy_value){.is_null = !b.p};
    if (t->column[at].kind == KIND_NUMBER) {
        ret->number = db->sql->number(a, at);
        return b.p ? 0
                   : err_set(e, ERR_HOST, "in %s there is no number in %s", t->name,
                             t->column[at].name);
    }
    if (b.p)
        ret->bytes = mem_strndup(b);
    ret->n = b.n;
    if (t->column[at].kind == KIND_TEXT && b.p && memchr(b.p, '\0', b.n))
        return err_set(e, ERR_DAMAGED, "in %s there is a text with a zero byte in %s", t->name,
                       t->column[at].name);
    return 0;
}

static int read_rows(struct db *db, const char *text, const struct arg *args, size_t count,
                     struct copy_rows *r, struct err *e)
{
    struct answer *a = db->sql->ask(db, text, args, count, e);
    int rc = -1;

    while (a && (rc = db->sql->next(db, a, e)) > 0) {
        r->at = mem_realloc(r->at, (r->count + 1) * r->of->columns * sizeof(*r->at));
        memset(&r->at[r->count * r->of->columns], 0, r->of->columns * sizeof(*r->at));
        r->count++;
        for (size_t i = 0; i < r->of->columns && rc > 0; i++)
            if (read_value(db, a, i, r->of, &r->at[(r->count - 1) * r->of->columns + i], e) < 0)
                rc = -1;
        if (rc < 0)
            break;
    }
    if (a)
        db->sql->close(a);
    return rc;
}

/* How many of the next rows are one batch; 0: there are none. */
static int fit(struct db *db, const char *text, const struct arg *args, size_t count, size_t *ret,
               struct err *e)
{
    struct answer *a = db->sql->ask(db, text, args, count, e);
    int64_t chars = 0;
    int rc = -1;

    *ret = 0;
    while (a && (rc = db->sql->next(db, a, e)) > 0) {
        chars += db->sql->number(a, 0);
        if (*ret > 0 && chars > (int64_t)BATCH_CHARS) {
            rc = 0;
            break;
        }
        ++*ret;
    }
    if (a)
        db->sql->close(a);
    return rc;
}

/* The next batch takes the place of the one in r, which may be none; r->count 0: that was all. */
static int next_rows(struct db *db, const struct copy_table *t, struct copy_rows *r, struct err *e)
{
    AUTO(buf_done) struct buf sizes = BUF(SQL_MAX);
    AUTO(buf_done) struct buf rows = BUF(SQL_MAX);
    AUTO(rows_clear) struct copy_rows next = {.of = t};
    struct arg args[KEYS_MAX + 1];
    bool after = r->count > 0;
    size_t n = after ? t->keys : 0, some;
    int rc;

    for (size_t i = 0; i < n; i++)
        args[i] = arg_of(&t->column[t->key[i]], &last_of(r)[t->key[i]]);
    buf_put(&sizes, STR("SELECT "));
    put_length(&sizes, t);
    put_some(&sizes, t, after);
    buf_put(&sizes, (struct str){"", 1});
    buf_put(&rows, STR("SELECT "));
    put_names(&rows, t);
    put_some(&rows, t, after);
    buf_put(&rows, (struct str){"", 1});
    if (buf_check(&sizes, e) < 0 || buf_check(&rows, e) < 0)
        return -1;
    args[n] = (struct arg)NUMBER(BATCH_ROWS);
    rc = fit(db, sizes.p, args, n + 1, &some, e);
    args[n] = (struct arg)NUMBER(some);
    if (rc == 0 && some > 0)
        rc = read_rows(db, rows.p, args, n + 1, &next, e);
    rows_clear(r);
    *r = next;
    next = (struct copy_rows){0};
    return rc < 0 ? err_wrap(e, "%s", t->name) : 0;
}

/* The last row that is there, if any, as a batch of its own. */
static int last_row(struct db *db, const struct copy_table *t, struct copy_rows *r, struct err *e)
{
    AUTO(buf_done) struct buf text = BUF(SQL_MAX);

    *r = (struct copy_rows){.of = t};
    buf_put(&text, STR("SELECT "));
    put_names(&text, t);
    buf_printf(&text, " FROM %s ORDER BY ", t->name);
    put_keys(&text, t, " DESC");
    buf_put(&text, STR(" LIMIT 1"));
    buf_put(&text, (struct str){"", 1});
    return buf_check(&text, e) < 0 ? -1 : read_rows(db, text.p, NULL, 0, r, e);
}

static int count_table(struct db *db, const struct copy_table *t, uint64_t *ret, struct err *e)
{
    AUTO(buf_done) struct buf text = BUF(SQL_MAX);
    int64_t n = 0;

    buf_printf(&text, "SELECT count(*) FROM %s%s%s", t->name, t->where ? " WHERE " : "",
               t->where ? t->where : "");
    buf_put(&text, (struct str){"", 1});
    if (buf_check(&text, e) < 0 || sql_one(db, text.p, NULL, 0, &number_type, &n, e) < 0)
        return -1;
    *ret = (uint64_t)n;
    return 0;
}

int rows_count(struct db *db, uint64_t *ret, struct err *e)
{
    AUTO_FREE struct copy_tables *tables = tables_of(db, e);

    *ret = 0;
    for (size_t i = 0; tables && i < tables->count; i++) {
        uint64_t n = 0;
        if (count_table(db, &tables->at[i], &n, e) < 0)
            return -1;
        *ret += n;
    }
    return tables ? 0 : -1;
}

/* --- the copy --- */

static int post_rows(struct db *db, const struct copy_rows *r, struct err *e)
{
    AUTO(buf_done) struct buf text = BUF(SQL_MAX);
    struct arg args[COLUMNS_MAX];

    buf_printf(&text, "INSERT INTO %s (", r->of->name);
    put_names(&text, r->of);
    for (size_t i = 0; i < r->of->columns; i++)
        buf_printf(&text, "%s?%zu", i ? ", " : ") VALUES (", i + 1);
    buf_put(&text, STR(")"));
    buf_put(&text, (struct str){"", 1});
    if (buf_check(&text, e) < 0)
        return -1;
    for (size_t row = 0; row < r->count; row++) {
        for (size_t i = 0; i < r->of->columns; i++)
            args[i] = arg_of(&r->of->column[i], &r->at[row * r->of->columns + i]);
        if (sql_post(db, text.p, args, r->of->columns, e) < 0)
            return -1;
    }
    return 0;
}

static int write_rows(struct db *db, const struct copy_rows *r, struct err *e)
{
    if (db->ops->begin(db, e) < 0)
        return -1;
    if (post_rows(db, r, e) < 0 || db->ops->commit(db, e) < 0) {
        db->ops->rollback(db);
        return err_wrap(e, "%s", r->of->name);
    }
    if (db->ops->is_untidy(db, false))
        db->ops->tidy(db);
    return 0;
}

static int copy_table(struct copying *c, struct db *from, struct db *to, const struct copy_table *t,
                      struct err *e)
{
    AUTO(rows_clear) struct copy_rows r = {0};
    uint64_t done = 0, total = 0;

    if (count_table(from, t, &total, e) < 0 || count_table(to, t, &done, e) < 0 ||
        last_row(to, t, &r, e) < 0)
        return -1;
    for (;;) {
        copy_tell(c, t->name, done, total);
        if (next_rows(from, t, &r, e) < 0)
            return -1;
        if (r.count == 0)
            return 0;
        if (write_rows(to, &r, e) < 0)
            return -1;
        done += r.count;
    }
}

int rows_copy(struct copying *c, struct db *from, struct db *to, struct err *e)
{
    AUTO_FREE struct copy_tables *tables = tables_of(from, e);

    for (size_t i = 0; tables && i < tables->count; i++)
        if (!tables->at[i].by_trigger && copy_table(c, from, to, &tables->at[i], e) < 0)
            return -1;
    return tables ? to->ops->sync(to, e) : -1;
}

/* --- the comparison --- */

static void hash_value(gnutls_hash_hd_t hash, const struct copy_column *c,
                       const struct copy_value *v)
{
    uint64_t head[2] = {htobe64(v->is_null ? 1 : 0),
                        htobe64(c->kind == KIND_NUMBER ? (uint64_t)v->number : v->n)};

    gnutls_hash(hash, head, sizeof(head));
    if (c->kind != KIND_NUMBER && v->n > 0)
        gnutls_hash(hash, v->bytes, v->n);
}

struct table_sum {
    uint64_t rows;
    uint8_t hash[32];
};

static int add_up(struct copying *c, struct db *db, const struct copy_table *t,
                  gnutls_hash_hd_t hash, struct table_sum *ret, struct err *e)
{
    AUTO(rows_clear) struct copy_rows r = {0};

    for (;;) {
        if (next_rows(db, t, &r, e) < 0)
            return -1;
        if (r.count == 0)
            return 0;
        for (size_t i = 0; i < r.count * t->columns; i++)
            hash_value(hash, &t->column[i % t->columns], &r.at[i]);
        ret->rows += r.count;
        copy_tell(c, "check of rows", ret->rows, 0);
    }
}

static int sum_of(struct copying *c, struct db *db, const struct copy_table *t,
                  struct table_sum *ret, struct err *e)
{
    gnutls_hash_hd_t hash;
    int rc;

    *ret = (struct table_sum){0};
    if (gnutls_hash_init(&hash, GNUTLS_DIG_SHA256) < 0)
        return err_set(e, ERR_HOST, "SHA-256 is not available");
    rc = add_up(c, db, t, hash, ret, e);
    gnutls_hash_deinit(hash, ret->hash);
    return rc;
}

int rows_compare(struct copying *c, struct db *from, struct db *to, struct err *e)
{
    AUTO_FREE struct copy_tables *tables = tables_of(from, e);

    for (size_t i = 0; tables && i < tables->count; i++) {
        const struct copy_table *t = &tables->at[i];
        struct table_sum was, is;
        if (sum_of(c, from, t, &was, e) < 0 || sum_of(c, to, t, &is, e) < 0)
            return -1;
        if (was.rows != is.rows || memcmp(was.hash, is.hash, sizeof(is.hash)) != 0)
            return err_set(e, ERR_DAMAGED,
                           "the copy of the table %s is not what was copied (%llu rows here, %llu "
                           "there): one of the two was changed meanwhile. Empty the target, and "
                           "copy again",
                           t->name, (unsigned long long)was.rows, (unsigned long long)is.rows);
        c->done.rows += is.rows;
    }
    return tables ? 0 : -1;
}
