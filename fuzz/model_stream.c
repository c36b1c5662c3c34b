/*
 * What an endpoint streams in place of a reply. However the bytes are cut into pieces,
 * the parts are the same; what was told as it came is what the parts have; each part is
 * one that every adapter can send back.
 *
 * links: src/model/sse.c src/model/draft.c src/model/openai.c src/model/anthropic.c
 * links: src/model/parts.c src/model/surrogates.c
 */
#include "model/model_int.h"

#include "support/fuzz.h"

#define EVENT_MAX (64 * KiB)
#define HEARD_MAX (4 * MiB)
#define PART_MAX  256

struct hearing {
    const struct adapter *adapter;
    struct draft draft;
    struct buf heard[PART_MAX];
    size_t last; /* part that was told of */
    struct buf joined;
    unsigned half;
    bool nonsense;
};

static void on_piece(void *arg, const struct model_piece *p)
{
    struct hearing *h = arg;

    EXPECT(p->part < PART_MAX && p->part >= h->last);
    EXPECT(str_utf8_len(p->text) == p->text.n);
    EXPECT(p->key || buf_put(&h->heard[p->part], p->text) == 0);
    h->last = p->part;
}

static int on_event(void *arg, struct str data)
{
    struct hearing *h = arg;
    json_t *event;

    data = surrogates_join(&h->joined, data, &h->half);
    event = json_loadb(data.p, data.n, JSON_ALLOW_NUL, NULL);

    h->nonsense = !json_is_object(event) || h->adapter->event(&h->draft, event) < 0;
    json_decref(event);
    return h->nonsense || h->draft.ended || h->draft.trouble ? -1 : 0;
}

static void check_part(const json_t *part, const struct buf *heard)
{
    const char *type = text_of(part, "type");
    const json_t *args = json_object_get(part, "args"), *text = json_object_get(part, "text");

    if (strcmp(type, "call") == 0) {
        EXPECT(*text_of(part, "id"));
        EXPECT(json_is_object(args) || json_is_string(json_object_get(part, "raw")));
    } else if (strcmp(type, "text") == 0) {
        struct str all = {json_string_value(text), json_string_length(text)};

        EXPECT(all.n > 0 && !memchr(all.p, '\0', all.n));
        EXPECT(str_eq(all, buf_str(heard)));
    } else {
        EXPECT(strcmp(type, "kept") == 0 && json_is_object(json_object_get(part, "block")));
    }
}

/* As history, to both. */
static void send_back(json_t *parts)
{
    json_t *messages = json_pack("[{s:s, s:O}]", "role", "assistant", "parts", parts);
    const struct adapter *const all[] = {&adapter_openai, &adapter_anthropic};
    const struct model_ask ask = {.messages = messages};

    for (size_t i = 0; i < COUNT(all); i++) {
        json_t *request = all[i]->request(&(struct question){.ask = &ask, .name = "m"});
        char *text = json_dumps(request, JSON_COMPACT);

        EXPECT(text);
        free(text);
        json_decref(request);
    }
    json_decref(messages);
}

/* The parts, without the ids, some of which are made up; NULL: it is nonsense. */
static json_t *read_stream(const struct adapter *ad, struct str bytes, size_t piece)
{
    struct hearing *h = mem_zalloc(sizeof(*h));
    struct sse_reader s;
    json_t *parts = NULL, *part;
    enum model_stop stop;
    struct err e = {0};
    size_t i;
    int rc = 0;

    h->adapter = ad;
    draft_init(&h->draft);
    h->draft.on_piece = on_piece;
    h->draft.arg = h;
    for (i = 0; i < PART_MAX; i++)
        buf_init(&h->heard[i], HEARD_MAX);
    buf_init(&h->joined, HEARD_MAX);
    sse_init(&s, EVENT_MAX);
    for (size_t at = 0; at < bytes.n && rc == 0; at += piece)
        rc = sse_feed(&s, (struct str){bytes.p + at, bytes.n - at < piece ? bytes.n - at : piece},
                      on_event, h, &e);
    if (rc == 0)
        sse_finish(&s, on_event, h);
    if (!h->nonsense && e.kind == ERR_NONE) {
        draft_tell_rest(&h->draft);
        parts = draft_parts(&h->draft, &stop);
        send_back(parts);
        json_array_foreach(parts, i, part) {
            check_part(part, &h->heard[i]);
            json_object_del(part, "id");
        }
    }
    for (i = 0; i < PART_MAX; i++)
        buf_done(&h->heard[i]);
    sse_done(&s);
    buf_done(&h->joined);
    draft_done(&h->draft);
    free(h);
    return parts;
}

static void read_whole(const struct adapter *ad, struct str bytes)
{
    json_t *body = json_loadb(bytes.p, bytes.n, JSON_ALLOW_NUL, NULL), *parts;
    enum model_stop stop;
    struct draft d;

    draft_init(&d);
    if (json_is_object(body) && ad->whole(&d, body) == 0) {
        parts = draft_parts(&d, &stop);
        send_back(parts);
        json_decref(parts);
    }
    draft_done(&d);
    json_decref(body);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct feed f = {data, size};
    uint8_t first = feed_byte(&f);
    const struct adapter *ad = first & 1 ? &adapter_anthropic : &adapter_openai;
    struct str bytes = feed_text(&f, size);
    json_t *a, *b;

    if (bytes.n == 0)
        return 0;
    a = read_stream(ad, bytes, bytes.n);
    b = read_stream(ad, bytes, (first >> 1) + 1);
    EXPECT(!a == !b && (!a || json_equal(a, b)));
    json_decref(a);
    json_decref(b);
    read_whole(ad, bytes);
    return 0;
}
