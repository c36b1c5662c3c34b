/*
 * A guest's pipe, read in pieces: the pieces and what a flush adds are the bytes
 * that went in, and pieces of valid UTF-8 are valid UTF-8.
 *
 * links: src/engine/stream.c
 */
#include "engine/engine_int.h"

#include "support/fuzz.h"

#include <fcntl.h>
#include <unistd.h>

struct ends {
    struct str want; /* all that is printed */
    size_t got;      /* bytes of it that have come */
    bool whole;      /* pieces must not break a character */
};

static void on_text(void *arg, enum event_kind kind, struct str text)
{
    struct ends *e = arg;

    EXPECT(kind == EVENT_STDERR && text.n > 0 && text.n <= e->want.n - e->got);
    EXPECT(memcmp(text.p, e->want.p + e->got, text.n) == 0);
    EXPECT(!e->whole || str_utf8_len(text) == text.n);
    e->got += text.n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    unsigned open_before = fds_open();
    struct feed script = {data, size < 64 ? size / 2 : 32};
    struct str text = {(const char *)data + script.n, size - script.n};
    struct ends e = {.want = text, .whole = str_utf8_len(text) == text.n};
    struct loop *l = loop_new(&(struct err){0});
    struct stream *s;
    size_t put = 0;
    int p[2];

    EXPECT(pipe2(p, O_CLOEXEC | O_NONBLOCK) == 0);
    s = stream_new(l, p[0], EVENT_STDERR, on_text, &e);
    while (script.n > 0) {
        uint8_t op = feed_byte(&script);
        size_t n = feed_byte(&script);
        ssize_t done = write(p[1], text.p + put, n < text.n - put ? n : text.n - put);
        put += done > 0 ? (size_t)done : 0;
        if (op & 1)
            loop_turn(l);
        if (op & 2)
            stream_drain(s);
        if (op & 4)
            stream_throttle(s, op & 8);
        if (op & 16)
            loop_advance(l, 10);
        if ((op & 32) && !e.whole)
            stream_flush(s);
    }
    while (put < text.n) {
        ssize_t done = write(p[1], text.p + put, text.n - put);
        EXPECT(done > 0);
        put += (size_t)done;
        stream_drain(s);
    }
    close(p[1]);
    for (int i = 0; i < 3; i++) { /* to the end of the pipe, throttled or not */
        loop_turn(l);
        loop_advance(l, 10);
    }
    stream_flush(s);
    stream_flush(s);
    EXPECT(e.got == text.n);
    stream_free(s);
    loop_free(l);
    EXPECT(fds_open() == open_before);
    return 0;
}
