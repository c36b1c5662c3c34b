/*
 * A kernel's message as an event, for every type of message: whatever is accepted
 * lies inside the message and within the limits that others rely on.
 *
 * links: src/engine/event.c src/engine/limits.c
 */
#include "engine/engine_int.h"

#include "support/fuzz.h"

static void check(struct str body, struct str s, size_t max)
{
    EXPECT(s.n <= max);
    EXPECT(s.n == 0 || (s.p >= body.p && s.p + s.n <= body.p + body.n));
    touch(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint16_t types[] = {MSG_DISPLAY, MSG_RESULT, MSG_CLEAR, MSG_ERROR, MSG_DONE};
    static struct event ev;
    struct str body = {(const char *)data + 1, size - 1};
    int number = -1;

    if (size == 0 || event_parse(types[data[0] % COUNT(types)], body, &ev, &number) < 0)
        return 0;
    EXPECT(number >= 0 && number < 4096);
    EXPECT(ev.bundle.count <= EVENT_PARTS_MAX && ev.error.count <= EVENT_FRAMES_MAX);
    EXPECT(event_kind_name(ev.kind));
    check(body, ev.text, 0);
    check(body, ev.bundle.display_id, 256);
    check(body, ev.bundle.metadata, 16 * KiB);
    for (size_t i = 0; i < ev.bundle.count; i++) {
        struct str mime = ev.bundle.part[i].mime;
        check(body, mime, 128);
        check(body, ev.bundle.part[i].data, size);
        EXPECT(memchr(mime.p, '/', mime.n) && !memchr(mime.p, '\0', mime.n));
    }
    check(body, ev.error.type, 512);
    check(body, ev.error.message, 64 * KiB);
    check(body, ev.error.traceback, 64 * KiB);
    for (size_t i = 0; i < ev.error.count; i++) {
        check(body, ev.error.frame[i].file, 4096);
        check(body, ev.error.frame[i].function, 512);
        check(body, ev.error.frame[i].text, 4096);
    }
    return 0;
}
