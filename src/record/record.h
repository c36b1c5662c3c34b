/*
 * record: events and outcomes as JSON. `retort run --json`, the native REST
 * answers and the audit log have one shape, which is made here.
 *
 * Touches: memory. Never touches: sockets, files, policy.
 *
 * A transcript collects the events of one execution; a reader goes through them
 * again. record_event() makes one event by itself, for a stream.
 */
#pragma once

#include "base/json.h"
#include "engine/engine.h"

/* What is not UTF-8 becomes U+FFFD. All of these return an owned value. */
json_t *record_text(struct str s);
json_t *record_base64(struct str s);
json_t *record_event(const struct event *ev);
json_t *record_outcome(const struct outcome *o);

/* As text, on one line: owned, with a NUL, *ret_n (or NULL) bytes before it. ascii: nothing but
 * ASCII, so that no piece of it ends within a character. NULL when it is longer than DUMP_MAX. */
#define DUMP_MAX (1 * GiB)
char *record_dump(const json_t *v, bool ascii, size_t *ret_n);

/* Output arrives in whatever pieces the pipe gave; pieces of one stream with nothing between them
 * become one event, so that a transcript does not depend on timing. */
struct transcript {
    json_t *events; /* owned: array */
    size_t bytes;   /* about as much memory as it takes */
    struct {
        struct buf text;
        bool late;
    } stream[2]; /* output not yet an event: stdout, stderr */
};

void transcript_init(struct transcript *t);
void transcript_done(struct transcript *t);
void transcript_event(struct transcript *t, const struct event *ev);
/* By how much this one would add to its bytes. */
size_t transcript_cost(const struct transcript *t, const struct event *ev);
/* What is still held back becomes events; call before reading events. last: nothing follows. */
void transcript_flush(struct transcript *t, bool last);

/* --- reader.c: what an execution has said, as every client is to see it --- */

/* Text of one member; "" when there is none. */
struct str event_text(const json_t *ev, const char *key);
bool event_is(const json_t *ev, const char *type);

/* Goes through the events of a transcript: init, next until it returns false, done. A display that
 * was updated comes once, in its first place, as its last state. What the fields point to lives as
 * long as the events do. */
struct event_reader {
    json_t *events; /* owned: with updates applied */
    size_t at;
    const json_t *event; /* the one in hand: data, name, message, traceback, path, change ... */
    enum event_kind kind;
    struct str text;               /* of output and notes; of a display or result its text/plain */
    const json_t *image, *preview; /* a string of base64, of SVG the text itself; or NULL */
    const char *mime, *preview_mime; /* static */
    size_t images;                   /* seen so far: the number of this image, from 1 */
    bool settles; /* set it for a model: output as a terminal shows it in the end, without '\r' */
    struct buf settled;
};
void event_reader_init(struct event_reader *r, const json_t *events);
bool event_reader_next(struct event_reader *r);
void event_reader_done(struct event_reader *r);

/* Adds what was printed: kinds is IN(EVENT_STDOUT), IN(EVENT_STDERR) or both. */
void events_output(const json_t *events, unsigned kinds, struct buf *ret);
/* Image n, from 1, as the reader has it; NULL when there are fewer. */
const json_t *events_image(const json_t *events, size_t n, const char **ret_mime);
/* The last exception, or NULL. */
const json_t *events_error(const json_t *events);
