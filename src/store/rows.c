/* What each kind of row is made of, in the order in which the statements name it. */
#include "store/store_int.h"

#include <stdlib.h>

#define COLUMN(kind, row, field)                                                                   \
    {                                                                                              \
        COLUMN_##kind, offsetof(struct row, field), sizeof(((struct row *)0)->field)               \
    }
#define TYPE(columns, row)                                                                         \
    {                                                                                              \
        columns, COUNT(columns), sizeof(struct row)                                                \
    }

static const struct column key_columns[] = {
    COLUMN(FIXED, key_row, id),       COLUMN(TEXT, key_row, tenant),
    COLUMN(TEXT, key_row, name),      COLUMN(FIXED, key_row, hint),
    COLUMN(HASH, key_row, hash),      COLUMN(UINT, key_row, admin),
    COLUMN(UINT, key_row, approver),  COLUMN(INT, key_row, created_ms),
    COLUMN(INT, key_row, used_ms),    COLUMN(INT, key_row, revoked_ms),
    COLUMN(TEXT, key_row, pools),     COLUMN(TEXT, key_row, doors),
    COLUMN(UINT, key_row, read_only), COLUMN(INT, key_row, expires_ms),
};
const struct row_type key_type = TYPE(key_columns, key_row);

static const struct column session_columns[] = {
    COLUMN(FIXED, session_row, id),        COLUMN(TEXT, session_row, tenant),
    COLUMN(TEXT, session_row, pool),       COLUMN(TEXT, session_row, name),
    COLUMN(TEXT, session_row, metadata),   COLUMN(TEXT, session_row, env),
    COLUMN(INT, session_row, state),       COLUMN(INT, session_row, created_ms),
    COLUMN(INT, session_row, used_ms),     COLUMN(INT, session_row, idle_ms),
    COLUMN(INT, session_row, lifetime_ms), COLUMN(INT, session_row, expires_ms),
    COLUMN(INT, session_row, executions),  COLUMN(INT, session_row, lost),
    COLUMN(FIXED, session_row, home),
};
const struct row_type session_type = TYPE(session_columns, session_row);

static const struct column space_columns[] = {
    COLUMN(PATH, space_row, path), COLUMN(FIXED, space_row, hash),   COLUMN(UINT, space_row, size),
    COLUMN(UINT, space_row, mode), COLUMN(INT, space_row, mtime_ms),
};
const struct row_type space_type = TYPE(space_columns, space_row);

/* What can be long stands last: a list that does without it does not read its pages. */
static const struct column exec_columns[] = {
    COLUMN(FIXED, exec_row, id),       COLUMN(TEXT, exec_row, tenant),
    COLUMN(TEXT, exec_row, session),   COLUMN(TEXT, exec_row, pool),
    COLUMN(TEXT, exec_row, key),       COLUMN(TEXT, exec_row, request),
    COLUMN(TEXT, exec_row, door),      COLUMN(TEXT, exec_row, kind),
    COLUMN(TEXT, exec_row, approval),  COLUMN(TEXT, exec_row, status),
    COLUMN(INT, exec_row, created_ms), COLUMN(INT, exec_row, started_ms),
    COLUMN(INT, exec_row, ended_ms),   COLUMN(FIXED, exec_row, events_hash),
    COLUMN(TEXT, exec_row, outcome),   COLUMN(TEXT, exec_row, code),
    COLUMN(TEXT, exec_row, events),
};
const struct row_type exec_type = TYPE(exec_columns, exec_row);

static const struct column file_columns[] = {
    COLUMN(FIXED, file_row, id),          COLUMN(TEXT, file_row, tenant),
    COLUMN(TEXT, file_row, name),         COLUMN(TEXT, file_row, mime),
    COLUMN(FIXED, file_row, hash),        COLUMN(UINT, file_row, size),
    COLUMN(INT, file_row, created_ms),    COLUMN(INT, file_row, expires_ms),
    COLUMN(UINT, file_row, downloadable), COLUMN(TEXT, file_row, pools),
};
const struct row_type file_type = TYPE(file_columns, file_row);

static const struct column approval_columns[] = {
    COLUMN(FIXED, approval_row, id),        COLUMN(TEXT, approval_row, tenant),
    COLUMN(TEXT, approval_row, key),        COLUMN(TEXT, approval_row, pool),
    COLUMN(TEXT, approval_row, session),    COLUMN(TEXT, approval_row, conversation),
    COLUMN(TEXT, approval_row, tool),       COLUMN(TEXT, approval_row, door),
    COLUMN(TEXT, approval_row, request),    COLUMN(HASH, approval_row, digest),
    COLUMN(UINT, approval_row, lasting),    COLUMN(INT, approval_row, state),
    COLUMN(TEXT, approval_row, decided_by), COLUMN(TEXT, approval_row, decided_how),
    COLUMN(TEXT, approval_row, reason),     COLUMN(TEXT, approval_row, execution),
    COLUMN(INT, approval_row, created_ms),  COLUMN(INT, approval_row, expires_ms),
    COLUMN(INT, approval_row, decided_ms),  COLUMN(INT, approval_row, taken_ms),
    COLUMN(INT, approval_row, text_chars),  COLUMN(TEXT, approval_row, text),
};
const struct row_type approval_type = TYPE(approval_columns, approval_row);

static const struct column pool_columns[] = {
    COLUMN(TEXT, pool_row, name),      COLUMN(TEXT, pool_row, settings),
    COLUMN(TEXT, pool_row, document),  COLUMN(INT, pool_row, created_ms),
    COLUMN(INT, pool_row, updated_ms),
};
const struct row_type pool_type = TYPE(pool_columns, pool_row);

static const struct column pool_key_columns[] = {
    COLUMN(TEXT, pool_key_row, pool),
    COLUMN(TEXT, pool_key_row, tenant),
    COLUMN(TEXT, pool_key_row, key),
    COLUMN(TEXT, pool_key_row, secret),
};
const struct row_type pool_key_type = TYPE(pool_key_columns, pool_key_row);

static const struct column item_columns[] = {
    COLUMN(TEXT, item_row, id),        COLUMN(TEXT, item_row, tenant),
    COLUMN(TEXT, item_row, kind),      COLUMN(TEXT, item_row, owner),
    COLUMN(TEXT, item_row, parent),    COLUMN(FIXED, item_row, hash),
    COLUMN(UINT, item_row, size),      COLUMN(INT, item_row, created_ms),
    COLUMN(INT, item_row, updated_ms), COLUMN(INT, item_row, expires_ms),
    COLUMN(TEXT, item_row, body),      COLUMN(TEXT, item_row, pools),
};
const struct row_type item_type = TYPE(item_columns, item_row);

static const struct column loop_columns[] = {
    COLUMN(FIXED, loop_row, id),       COLUMN(TEXT, loop_row, tenant),
    COLUMN(TEXT, loop_row, owner),     COLUMN(TEXT, loop_row, status),
    COLUMN(INT, loop_row, created_ms), COLUMN(INT, loop_row, ended_ms),
    COLUMN(TEXT, loop_row, pool),      COLUMN(TEXT, loop_row, record),
    COLUMN(TEXT, loop_row, events),
};
const struct row_type loop_type = TYPE(loop_columns, loop_row);

static const struct column number_columns[] = {
    {COLUMN_INT, 0, sizeof(int64_t)}
};
const struct row_type number_type = {number_columns, COUNT(number_columns), sizeof(int64_t)};

/* --- the fields of a row --- */

int64_t column_number(const struct column *c, const char *field)
{
    if (c->kind == COLUMN_UINT && c->size == sizeof(bool))
        return *(const bool *)field;
    if (c->kind == COLUMN_UINT && c->size == sizeof(uint32_t))
        return *(const uint32_t *)field;
    if (c->size == sizeof(int))
        return *(const int *)field;
    assert(c->size == sizeof(int64_t));
    return *(const int64_t *)field;
}

void column_set_number(const struct column *c, char *field, int64_t n)
{
    if (c->size == sizeof(bool))
        *(bool *)field = n != 0;
    else if (c->kind == COLUMN_UINT && c->size == sizeof(uint32_t))
        *(uint32_t *)field = (uint32_t)n;
    else if (c->size == sizeof(int))
        *(int *)field = (int)n;
    else
        *(int64_t *)field = n;
}

struct str column_bytes(const struct column *c, const char *field)
{
    switch (c->kind) {
    case COLUMN_FIXED:
        return str_of(field);
    case COLUMN_HASH:
        return (struct str){field, c->size};
    default:
        return str_of(*(char *const *)field);
    }
}

void column_set_bytes(const struct column *c, char *field, struct str bytes)
{
    switch (c->kind) {
    case COLUMN_FIXED:
        if (!str_to_cstr(bytes, field, c->size))
            *field = '\0';
        break;
    case COLUMN_HASH:
        if (bytes.n == c->size)
            memcpy(field, bytes.p, c->size);
        break;
    default:
        if (bytes.p)
            *(char **)field = mem_strndup(bytes);
    }
}

static void row_copy(const struct row_type *t, void *ret, const void *row)
{
    memcpy(ret, row, t->size);
    for (size_t i = 0; i < t->count; i++) {
        const struct column *c = &t->columns[i];
        if (c->kind == COLUMN_TEXT || c->kind == COLUMN_PATH)
            column_set_bytes(c, (char *)ret + c->at, column_bytes(c, (const char *)row + c->at));
    }
}

void exec_row_copy(struct exec_row *ret, const struct exec_row *r)
{
    row_copy(&exec_type, ret, r);
}

void session_row_copy(struct session_row *ret, const struct session_row *r)
{
    row_copy(&session_type, ret, r);
}

/* --- the end of a row --- */

static void row_done(const struct row_type *t, void *row)
{
    for (size_t i = 0; i < t->count; i++)
        if (t->columns[i].kind == COLUMN_TEXT || t->columns[i].kind == COLUMN_PATH)
            mem_freep((char *)row + t->columns[i].at);
    memset(row, 0, t->size);
}

void rows_free(const struct row_type *t, void *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        row_done(t, (char *)rows + i * t->size);
    free(rows);
}

void key_row_done(struct key_row *r)
{
    row_done(&key_type, r);
}

void session_row_done(struct session_row *r)
{
    row_done(&session_type, r);
}

void space_row_done(struct space_row *r)
{
    row_done(&space_type, r);
}

void exec_row_done(struct exec_row *r)
{
    row_done(&exec_type, r);
}

void file_row_done(struct file_row *r)
{
    row_done(&file_type, r);
}

void approval_row_done(struct approval_row *r)
{
    row_done(&approval_type, r);
}

void pool_row_done(struct pool_row *r)
{
    row_done(&pool_type, r);
}

void pool_key_row_done(struct pool_key_row *r)
{
    row_done(&pool_key_type, r);
}

void item_row_done(struct item_row *r)
{
    row_done(&item_type, r);
}

void loop_row_done(struct loop_row *r)
{
    row_done(&loop_type, r);
}
