/* Messages between the home of a session and the lender of its sandbox: bytes in, values out. The
 * bytes have come over a network: nothing in them is trusted. */
#include "engine/lend_int.h"

#include <endian.h>
#include <stdlib.h>

#define NUMBERS  0x100 /* tags from here on are numbers, as their table counts them */
#define TEXT_MAX 4096
#define LINE_MAX sizeof(((struct outcome *)0)->line)

struct head {
    uint32_t len;
    uint16_t type;
    uint16_t zero;
    uint64_t id;
};

static const size_t longest[LEND__COUNT] = {
    [LEND_WANT] = TEXT_MAX,       [LEND_PING] = 1,
    [LEND_EXEC] = LEND_BODY_MAX,  [LEND_INTERRUPT] = 1,
    [LEND_HOLD] = TEXT_MAX,       [LEND_CLOCK] = TEXT_MAX,
    [LEND_RESTART] = 1,           [LEND_NOTE] = TEXT_MAX,
    [LEND_ASK] = TEXT_MAX,        [LEND_LENT] = 1,
    [LEND_REFUSED] = TEXT_MAX,    [LEND_PONG] = 1,
    [LEND_EVENT] = LEND_BODY_MAX, [LEND_OUTCOME] = TEXT_MAX,
    [LEND_LOST] = TEXT_MAX,       [LEND_RECALL] = 1,
    [LEND_SEEN] = TEXT_MAX,       [LEND_ANSWER] = TEXT_MAX,
    [LEND_BYTES] = LEND_CHUNK,    [LEND_END] = TEXT_MAX,
};

int lend_next(struct str *bytes, struct lend_message *ret)
{
    struct head h;

    if (bytes->n < sizeof(h))
        return 0;
    memcpy(&h, bytes->p, sizeof(h));
    h.len = le32toh(h.len);
    h.type = le16toh(h.type);
    if (h.zero != 0 || h.type >= LEND__COUNT || h.len > longest[h.type] || !longest[h.type])
        return -1;
    if (bytes->n - sizeof(h) < h.len)
        return 0;
    *ret = (struct lend_message){
        h.type, le64toh(h.id), {bytes->p + sizeof(h), h.len}
    };
    *bytes = str_from(*bytes, sizeof(h) + h.len);
    return 1;
}

void lend_head(struct buf *b, enum lend_type type, uint64_t id, size_t body)
{
    struct head h = {htole32((uint32_t)body), htole16((uint16_t)type), 0, htole64(id)};

    assert(body <= longest[type]);
    (void)buf_put(b, (struct str){(const char *)&h, sizeof(h)});
}

/* --- numbers: a table for each struct; the place in the table is the tag --- */

struct lend_number {
    size_t offset, size;
    uint64_t max;
};

#define NUMBER(type, field, most)                                                                  \
    {                                                                                              \
        offsetof(struct type, field), sizeof(((struct type *)0)->field), most                      \
    }

static const struct lend_number exec_numbers[] = {
    NUMBER(lend_exec, kind, EXEC_COMMAND),
    NUMBER(lend_exec, wall_ms, UINT64_MAX),
};

static const struct lend_number ask_numbers[] = {
    NUMBER(lend_ask, op, LEND_UNPACK),
    NUMBER(lend_ask, mode, 0777),
    NUMBER(lend_ask, mtime_ms, UINT64_MAX),
    NUMBER(lend_ask, max, UINT64_MAX),
};

static const struct lend_number answer_numbers[] = {
    NUMBER(lend_answer, kind, ERR_HOST), NUMBER(lend_answer, sys, 4095),
    NUMBER(lend_answer, retry_s, 86400), NUMBER(lend_answer, number, UINT64_MAX),
    NUMBER(lend_answer, mode, 0777),     NUMBER(lend_answer, mtime_ms, UINT64_MAX),
};

static const struct lend_number event_numbers[] = {
    NUMBER(event, kind, EVENT_STATUS),        NUMBER(event, late, 1),
    NUMBER(event, file.change, FILE_DELETED), NUMBER(event, file.size, INT64_MAX),
    NUMBER(event, file.too_large, 1),         NUMBER(event, file.unlisted, 1),
};

static const struct lend_number outcome_numbers[] = {
    NUMBER(outcome, status, OUTCOME_SESSION_LOST),
    NUMBER(outcome, limits_hit, IN(LIMIT__COUNT) - 1),
    NUMBER(outcome, state_lost, 1),
    NUMBER(outcome, exit_code, INT32_MAX),
    NUMBER(outcome, state_at, LINE_MAX),
    NUMBER(outcome, wall_us, INT64_MAX),
    NUMBER(outcome, has_cpu, 1),
    NUMBER(outcome, has_memory, 1),
    NUMBER(outcome, cpu_us, INT64_MAX),
    NUMBER(outcome, memory_peak_bytes, INT64_MAX),
    NUMBER(outcome, output_bytes, INT64_MAX),
    NUMBER(outcome, output_dropped, INT64_MAX),
};

static uint64_t number_of(const struct lend_number *n, const void *row)
{
    uint64_t value = 0;

    memcpy(&value, (const char *)row + n->offset, n->size);
    return value;
}

/* As many bytes as the field has: numbers are little-endian here, as on all that we run on. */
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "a field is the first bytes of a number");

static void put_numbers(struct buf *b, const struct lend_number *table, size_t count,
                        const void *row)
{
    for (size_t i = 0; i < count; i++)
        wire_put_num(b, (uint16_t)(NUMBERS + i), number_of(&table[i], row));
}

/* A number that is not told is 0; one that we do not know is a newer node's. */
static int take_numbers(struct str body, const struct lend_number *table, size_t count, void *row)
{
    struct wire_field f;
    uint64_t value;
    int rc;

    while ((rc = wire_next(&body, &f)) == 1) {
        size_t i = (size_t)(f.tag - NUMBERS);
        if (f.tag < NUMBERS || i >= count)
            continue;
        if (wire_num(f, &value) < 0 || value > table[i].max)
            return -1;
        memcpy((char *)row + table[i].offset, &value, table[i].size);
    }
    return rc;
}

#define PUT_NUMBERS(b, table, row)     put_numbers(b, table, COUNT(table), row)
#define TAKE_NUMBERS(body, table, row) take_numbers(body, table, COUNT(table), row)

/* A sentence; none is the empty one. */
static int take_text(struct str body, char *ret, size_t size)
{
    struct str text = {0};

    ret[0] = '\0';
    if (!wire_find(body, TAG_TEXT, &text))
        return 0;
    return str_utf8_len(text) == text.n && str_to_cstr(text, ret, size) ? 0 : -1;
}

/* --- what home says --- */

void lend_put_exec(struct buf *b, const struct exec_config *config)
{
    const struct lend_exec x = {(uint32_t)config->kind, config->wall_ms};

    PUT_NUMBERS(b, exec_numbers, &x);
    wire_put(b, TAG_CODE, config->code);
    for (size_t i = 0; i < config->env_count; i++) {
        wire_put(b, TAG_NAME, config->env[i].name);
        wire_put(b, TAG_ENV, config->env[i].value);
    }
}

int lend_take_exec(struct str body, struct exec_config *ret, struct exec_env *env)
{
    struct lend_exec x = {0};
    struct str name = {0};
    struct wire_field f;

    if (TAKE_NUMBERS(body, exec_numbers, &x) < 0)
        return -1;
    *ret = (struct exec_config){.kind = (enum exec_kind)x.kind, .wall_ms = x.wall_ms, .env = env};
    while (wire_next(&body, &f) == 1) {
        if (f.tag == TAG_CODE)
            ret->code = f.data;
        if (f.tag == TAG_NAME)
            name = f.data;
        if (f.tag != TAG_ENV)
            continue;
        if (ret->env_count == LEND_ENV_MAX)
            return -1;
        env[ret->env_count++] = (struct exec_env){name, f.data};
    }
    return 0;
}

void lend_put_ask(struct buf *b, const struct lend_ask *ask, struct str path)
{
    PUT_NUMBERS(b, ask_numbers, ask);
    if (path.n)
        wire_put(b, TAG_NAME, path);
}

int lend_take_ask(struct str body, struct lend_ask *ret, struct str *ret_path)
{
    *ret = (struct lend_ask){0};
    *ret_path = (struct str){0};
    (void)wire_find(body, TAG_NAME, ret_path);
    return TAKE_NUMBERS(body, ask_numbers, ret);
}

/* --- what the lender says --- */

void lend_put_answer(struct buf *b, const struct lend_answer *a)
{
    PUT_NUMBERS(b, answer_numbers, a);
    wire_put(b, TAG_TEXT, (struct str){a->text, str_utf8_len(str_of(a->text))});
}

int lend_take_answer(struct str body, struct lend_answer *ret)
{
    *ret = (struct lend_answer){0};
    return TAKE_NUMBERS(body, answer_numbers, ret) < 0
               ? -1
               : take_text(body, ret->text, sizeof(ret->text));
}

struct lend_answer lend_answer_of(const struct err *e)
{
    struct lend_answer a = {0};

    if (!e || !e->kind)
        return a;
    a.kind = (uint32_t)e->kind;
    a.sys = (uint32_t)e->sys;
    a.retry_s = (uint32_t)e->retry_s;
    memcpy(a.text, e->text, sizeof(a.text));
    return a;
}

int lend_answer_err(const struct lend_answer *a, struct err *e)
{
    if (!a->kind)
        return 0;
    *e = (struct err){(enum err_kind)a->kind, (int)a->sys, (int)a->retry_s, ""};
    memcpy(e->text, a->text, sizeof(e->text));
    return -1;
}

/* As a kernel has told of it, so that event_parse() reads it again. */
static const uint16_t kernel_type[] = {
    [EVENT_DISPLAY] = MSG_DISPLAY, [EVENT_RESULT] = MSG_RESULT, [EVENT_CLEAR] = MSG_CLEAR,
    [EVENT_ERROR] = MSG_ERROR,     [EVENT_STATUS] = 0,
};

static void put_bundle(struct buf *b, const struct event *ev)
{
    for (size_t i = 0; i < ev->bundle.count; i++) {
        wire_put(b, TAG_MIME, ev->bundle.part[i].mime);
        wire_put(b, TAG_DATA, ev->bundle.part[i].data);
    }
    if (ev->bundle.display_id.n)
        wire_put(b, TAG_DISPLAY_ID, ev->bundle.display_id);
    if (ev->bundle.metadata.n)
        wire_put(b, TAG_METADATA, ev->bundle.metadata);
    wire_put_num(b, TAG_FLAGS, ev->bundle.update);
}

static void put_error(struct buf *b, const struct event *ev)
{
    wire_put(b, TAG_NAME, ev->error.type);
    wire_put(b, TAG_TEXT, ev->error.message);
    wire_put(b, TAG_TRACE, ev->error.traceback);
    for (size_t i = 0; i < ev->error.count; i++) {
        wire_put(b, TAG_FRAME_FILE, ev->error.frame[i].file);
        wire_put_num(b, TAG_FRAME_LINE, ev->error.frame[i].line);
        wire_put(b, TAG_FRAME_NAME, ev->error.frame[i].function);
        wire_put(b, TAG_FRAME_TEXT, ev->error.frame[i].text);
    }
}

void lend_put_event(struct buf *b, const struct event *ev)
{
    AUTO(buf_done) struct buf inner = BUF(LEND_BODY_MAX);

    PUT_NUMBERS(b, event_numbers, ev);
    if (ev->kind == EVENT_FILE)
        return wire_put(b, TAG_NAME, ev->file.path);
    if (!kernel_type[ev->kind])
        return wire_put(b, TAG_TEXT, ev->text);
    if (ev->kind == EVENT_ERROR)
        put_error(&inner, ev);
    else
        put_bundle(&inner, ev);
    wire_put(b, TAG_BLOB, buf_str(&inner));
}

/* As a walk through a folder would have found it. */
static bool is_below(struct str path)
{
    struct str rest = path;

    if (path.n == 0 || path.n >= SPACE_NAME_MAX || memchr(path.p, '\0', path.n))
        return false;
    for (const char *end = path.p + path.n; rest.p <= end;) {
        const char *slash = rest.n ? memchr(rest.p, '/', rest.n) : NULL;
        struct str name = {rest.p, slash ? (size_t)(slash - rest.p) : rest.n};
        if (name.n == 0 || str_is(name, ".") || str_is(name, ".."))
            return false;
        if (!slash)
            break;
        rest = str_from(rest, name.n + 1);
    }
    return true;
}

static int take_told(struct str body, struct event *ret)
{
    struct event head = *ret;
    struct str inner;
    int number;

    if (!wire_find(body, TAG_BLOB, &inner) ||
        event_parse(kernel_type[head.kind], inner, ret, &number) < 0)
        return -1;
    ret->late = head.late;
    return 0;
}

int lend_take_event(struct str body, struct event *ret)
{
    *ret = (struct event){0};
    if (TAKE_NUMBERS(body, event_numbers, ret) < 0)
        return -1;
    if (ret->kind != EVENT_FILE && kernel_type[ret->kind])
        return take_told(body, ret);
    if (ret->kind != EVENT_FILE)
        return wire_find(body, TAG_TEXT, &ret->text) ? 0 : -1;
    if (!wire_find(body, TAG_NAME, &ret->file.path) || !is_below(ret->file.path))
        return -1;
    ret->file.mime = mime_of(ret->file.path);
    return 0;
}

void lend_put_outcome(struct buf *b, const struct outcome *o)
{
    PUT_NUMBERS(b, outcome_numbers, o);
    wire_put(b, TAG_TEXT, (struct str){o->line, str_utf8_len(str_of(o->line))});
}

int lend_take_outcome(struct str body, struct outcome *ret)
{
    *ret = (struct outcome){0};
    if (TAKE_NUMBERS(body, outcome_numbers, ret) < 0 ||
        take_text(body, ret->line, sizeof(ret->line)) < 0)
        return -1;
    return ret->state_at <= strlen(ret->line) && ret->output_dropped <= ret->output_bytes ? 0 : -1;
}
