/*
 * Events made of a guest's messages, in the JSON document: it is always JSON, and
 * says as many events as it was told.
 *
 * links: src/engine/event.c src/engine/limits.c src/cli/doc.c src/record/record.c
 * links: src/record/dump.c src/engine/mime.c
 */
#include "cli/cli_int.h"
#include "engine/engine_int.h"

#include "support/fuzz.h"

static size_t one_event(struct doc *d, struct feed *feed)
{
    static const uint16_t types[] = {MSG_DISPLAY, MSG_RESULT, MSG_CLEAR, MSG_ERROR};
    static struct event ev;
    uint8_t op = feed_byte(feed);
    struct str body = feed_text(feed, feed_num(feed, 2) % 512);
    int number;

    if (op % 8 < COUNT(types)) {
        if (event_parse(types[op % 8], body, &ev, &number) < 0)
            return 0;
        doc_event(d, &ev);
        return 1;
    }
    if (op % 8 == 4) {
        ev = (struct event){
            .kind = EVENT_FILE, .file = {.path = body, .mime = "text/plain"}
        };
        doc_event(d, &ev);
        return 1;
    }
    ev = (struct event){.kind = op & 8 ? EVENT_STDERR : EVENT_STDOUT, .text = body};
    ev.late = op & 16;
    doc_event(d, &ev);
    return 0; /* output is merged with what stands beside it */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct source src = {.kind = EXEC_CELL, .label = "-c"};
    struct feed feed = {data, size};
    AUTO_FREE char *text = NULL;
    struct outcome o = {.status = OUTCOME_OK};
    size_t at_least = 0;
    struct doc d;
    json_t *again;

    doc_init(&d);
    doc_begin(&d, &src);
    while (feed.n > 0)
        at_least += one_event(&d, &feed);
    doc_outcome(&d, &o);
    text = doc_print(&d, 0, NULL);
    doc_done(&d);
    EXPECT(text);
    again = json_loads(text, JSON_ALLOW_NUL, NULL);
    EXPECT(again);
    json_t *one = json_array_get(json_object_get(again, "executions"), 0);
    EXPECT(json_array_size(json_object_get(one, "events")) >= at_least);
    json_decref(again);
    return 0;
}
