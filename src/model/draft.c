/*
 * A reply that is still arriving: each piece has a number on the wire and becomes one part.
 *
 * Pieces are told as they grow, in their order. Some endpoints write several calls at a time: then
 * a piece waits until the call before it is complete.
 */
#include "base/json.h"
#include "model/model_int.h"

#include <stdio.h>
#include <stdlib.h>

#define PIECES_MAX 256
#define PIECE_MAX  (16 * MiB)
#define ID_BYTES   12
#define MORE_MAX   2
#define ID_MAX     (64 * KiB) /* some endpoints put data into ids */
#define CALLED_MAX 1024

enum draft_piece_kind { PIECE_TEXT, PIECE_CALL, PIECE_KEPT };

struct draft_piece {
    enum draft_piece_kind kind;
    size_t at;       /* number on the wire */
    struct buf text; /* or the arguments of a call */
    char *id, *name; /* owned: of a call, or NULL */
    const char *api; /* of a kept block */
    json_t *block;   /* owned: of a kept block */
    struct {
        const char *key; /* or NULL */
        struct buf text;
        size_t told;
    } more[MORE_MAX]; /* text to add to strings of the block */
    bool begun;       /* it has been told of */
    size_t told;      /* bytes of text */
};

void draft_init(struct draft *d)
{
    *d = (struct draft){0};
}

void draft_done(struct draft *d)
{
    for (size_t i = 0; i < d->count; i++) {
        buf_done(&d->piece[i].text);
        for (size_t k = 0; k < MORE_MAX; k++)
            buf_done(&d->piece[i].more[k].text);
        free(d->piece[i].id);
        free(d->piece[i].name);
        json_decref(d->piece[i].block);
    }
    free(d->piece);
    free(d->name);
    free(d->stop_sequence);
    json_decref(d->trouble);
    *d = (struct draft){0};
}

/* The last one: numbers may be used again. */
static struct draft_piece *find(const struct draft *d, size_t at)
{
    for (size_t i = d->count; i > 0; i--)
        if (d->piece[i - 1].at == at)
            return &d->piece[i - 1];
    return NULL;
}

static struct draft_piece *add(struct draft *d, enum draft_piece_kind kind, size_t at)
{
    struct draft_piece *p;

    if (d->count == PIECES_MAX)
        return NULL;
    d->piece = mem_realloc(d->piece, (d->count + 1) * sizeof(*d->piece));
    p = &d->piece[d->count++];
    *p = (struct draft_piece){.kind = kind, .at = at};
    buf_init(&p->text, PIECE_MAX);
    return p;
}

/* --- telling --- */

static void tell_text(struct draft *d, const struct draft_piece *p, const char *key,
                      const struct buf *text, size_t *told)
{
    const struct model_piece piece = {
        .part = d->live,
        .kind = p->kind == PIECE_CALL   ? MODEL_PIECE_CALL
                : p->kind == PIECE_KEPT ? MODEL_PIECE_KEPT
                                        : MODEL_PIECE_TEXT,
        .text = {text->n ? text->p + *told : "", text->n - *told},
        .name = p->name,
        .block = p->block,
        .key = key,
    };

    *told = text->n;
    d->on_piece(d->arg, &piece);
}

/* False: it cannot be told yet. */
static bool tell_piece(struct draft *d, struct draft_piece *p)
{
    if (p->kind == PIECE_CALL && !p->name)
        return false;
    if (p->text.n > p->told || (!p->begun && p->kind != PIECE_TEXT))
        tell_text(d, p, NULL, &p->text, &p->told);
    p->begun = true;
    for (size_t i = 0; i < MORE_MAX && p->more[i].key; i++)
        if (p->more[i].text.n > p->more[i].told)
            tell_text(d, p, p->more[i].key, &p->more[i].text, &p->more[i].told);
    return true;
}

static bool is_complete(const struct draft_piece *p)
{
    json_t *args;
    bool whole;

    if (p->kind != PIECE_CALL)
        return true;
    args = json_load_limited(buf_str(&p->text), 0);
    whole = json_is_object(args);
    json_decref(args);
    return whole;
}

static int tell(struct draft *d)
{
    while (d->on_piece && d->live < d->count && tell_piece(d, &d->piece[d->live]) &&
           d->live + 1 < d->count && is_complete(&d->piece[d->live]))
        d->live++;
    return 0;
}

void draft_tell_rest(struct draft *d)
{
    for (; d->on_piece && d->live < d->count; d->live++) {
        struct draft_piece *p = &d->piece[d->live];

        if (p->kind == PIECE_CALL && !p->name)
            p->name = mem_strdup("");
        tell_piece(d, p);
    }
}

/* Whether it was told as a whole, and cannot grow any more. */
static bool is_over(const struct draft *d, const struct draft_piece *p)
{
    return (size_t)(p - d->piece) < d->live;
}

/* --- pieces --- */

size_t draft_calls(const struct draft *d)
{
    size_t n = 0;

    for (size_t i = 0; i < d->count; i++)
        n += d->piece[i].kind == PIECE_CALL;
    return n;
}

const char *draft_id(const struct draft *d, size_t at)
{
    const struct draft_piece *p = find(d, at);

    return p ? p->id : NULL;
}

/* A NUL becomes U+FFFD: most readers of text cannot handle it. */
static int put_text(struct buf *b, struct str s)
{
    size_t n;

    for (; s.n > 0; s = str_from(s, n < s.n ? n + 1 : n)) {
        n = strnlen(s.p, s.n);
        buf_put(b, (struct str){s.p, n});
        if (n < s.n)
            buf_put(b, STR("\xef\xbf\xbd"));
    }
    return b->full ? -1 : 0;
}

int draft_text(struct draft *d, size_t at, const json_t *text)
{
    struct str s = json_view(text);
    struct draft_piece *p = find(d, at);

    if (s.n == 0)
        return 0;
    if (!p || (p->kind == PIECE_TEXT && p != &d->piece[d->count - 1]))
        p = add(d, PIECE_TEXT, at);
    if (!p || p->kind != PIECE_TEXT || put_text(&p->text, s) < 0)
        return -1;
    return tell(d);
}

int draft_call(struct draft *d, size_t at, const char *id, const char *name)
{
    struct draft_piece *p = find(d, at);

    if ((id && strlen(id) > ID_MAX) || (name && strlen(name) > CALLED_MAX))
        return -1;
    if (!p || (p->id && id && *id && strcmp(p->id, id) != 0))
        p = add(d, PIECE_CALL, at);
    if (!p || p->kind != PIECE_CALL)
        return -1;
    if (!p->id && id && *id)
        p->id = mem_strdup(id);
    if (!p->name && name && *name)
        p->name = mem_strdup(name);
    return tell(d);
}

int draft_args(struct draft *d, size_t at, struct str json)
{
    struct draft_piece *p = find(d, at);

    if (!p || p->kind != PIECE_CALL || (json.n > 0 && is_over(d, p)))
        return -1;
    return put_text(&p->text, json) < 0 ? -1 : tell(d);
}

int draft_args_json(struct draft *d, size_t at, const json_t *args)
{
    AUTO_FREE char *text = NULL;

    if (json_is_string(args))
        return draft_args(d, at, json_view(args));
    if (!args || json_is_null(args) || (json_is_object(args) && json_object_size(args) == 0))
        return 0; /* the arguments follow in pieces, or there are none */
    text = json_dumps(args, JSON_COMPACT | JSON_ENCODE_ANY);
    return text ? draft_args(d, at, str_of(text)) : -1;
}

int draft_kept(struct draft *d, size_t at, const char *api, const json_t *block)
{
    struct draft_piece *p = find(d, at) ? NULL : add(d, PIECE_KEPT, at);

    if (!p)
        return -1;
    p->api = api;
    p->block = json_deep_copy(block);
    return tell(d);
}

int draft_kept_more(struct draft *d, size_t at, const char *key, const json_t *text)
{
    struct draft_piece *p = find(d, at);

    if (!p || p->kind != PIECE_KEPT || is_over(d, p))
        return -1;
    for (size_t i = 0; i < MORE_MAX; i++) {
        if (!p->more[i].key) {
            p->more[i].key = key;
            buf_init(&p->more[i].text, PIECE_MAX);
        }
        if (strcmp(p->more[i].key, key) == 0)
            return put_text(&p->more[i].text, json_view(text)) < 0 ? -1 : tell(d);
    }
    return -1;
}

void draft_stop(struct draft *d, enum model_stop stop)
{
    d->stop = stop;
    d->has_stop = true;
}

void draft_stop_word(struct draft *d, const struct stop_word *words, size_t count,
                     const json_t *word)
{
    struct str s = json_view(word);

    if (!json_is_string(word))
        return;
    draft_stop(d, MODEL_DONE);
    for (size_t i = 0; i < count; i++)
        if (str_is(s, words[i].word))
            draft_stop(d, words[i].stop);
}

void draft_stop_sequence(struct draft *d, const json_t *text)
{
    if (!d->stop_sequence && json_is_string(text) && json_string_length(text) <= CALLED_MAX)
        d->stop_sequence = mem_strdup(json_string_value(text));
}

void draft_trouble(struct draft *d, json_t *error)
{
    json_decref(d->trouble);
    d->trouble = error ? json_incref(error) : json_null();
}

void draft_name(struct draft *d, const json_t *name)
{
    if (!d->name && json_is_string(name) && json_string_length(name) <= CALLED_MAX)
        d->name = mem_strdup(json_string_value(name));
}

/* --- the parts --- */

/* An id for a call that came without one: results need it. */
static json_t *own_id(void)
{
    unsigned char random[ID_BYTES];
    char id[2 * ID_BYTES + 8] = "call_";

    random_bytes(random, sizeof(random));
    hex_print(id + strlen(id), random, sizeof(random));
    return json_string(id);
}

static json_t *call_part(const struct draft_piece *p)
{
    struct str text = buf_str(&p->text);
    json_t *args = str_trim(text).n == 0 ? json_object() : json_load_limited(text, 0);
    json_t *part = json_pack("{s:s, s:o, s:s}", "type", "call", "id",
                             p->id ? json_string(p->id) : own_id(), "name", p->name ? p->name : "");

    if (json_is_object(args)) {
        json_object_set_new(part, "args", args);
        return part;
    }
    json_decref(args);
    json_object_set_new(part, "args", json_null());
    json_object_set_new(part, "raw", json_stringn(text.p, text.n));
    return part;
}

static json_t *kept_part(const struct draft_piece *p)
{
    json_t *block = json_copy(p->block);

    for (size_t i = 0; i < MORE_MAX && p->more[i].key; i++) {
        const struct buf *more = &p->more[i].text;
        json_t *had = json_object_get(block, p->more[i].key);

        json_object_set_new(block, p->more[i].key,
                            json_sprintf("%s%.*s",
                                         json_is_string(had) ? json_string_value(had) : "",
                                         (int)more->n, more->n ? more->p : ""));
    }
    return json_pack("{s:s, s:s, s:o}", "type", "kept", "api", p->api, "block", block);
}

static json_t *part_of(const struct draft_piece *p)
{
    if (p->kind == PIECE_CALL)
        return call_part(p);
    if (p->kind == PIECE_KEPT)
        return kept_part(p);
    return json_pack("{s:s, s:o}", "type", "text", "text", json_stringn(p->text.p, p->text.n));
}

json_t *draft_parts(const struct draft *d, enum model_stop *ret_stop)
{
    json_t *parts = json_array();

    for (size_t i = 0; i < d->count; i++)
        json_array_append_new(parts, part_of(&d->piece[i]));
    *ret_stop = d->stop;
    /* Some endpoints say stop after calls, and the other way round. */
    if (d->stop == MODEL_DONE || d->stop == MODEL_CALLS)
        *ret_stop = draft_calls(d) > 0 ? MODEL_CALLS : MODEL_DONE;
    return parts;
}
