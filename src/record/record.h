/*
 * record: events and outcomes as JSON. `retort run --json`, the native REST
 * answers and the audit log have one shape, and this is where it is made.
 *
 * Touches: memory. Never touches: sockets, files, policy.
 *
 * A transcript collects one execution: transcript_event() for each event,
 * transcript_end() for the outcome. record_event() makes one event by itself, for
 * a stream.
 */
#pragma once

#include "engine/engine.h"

#include <jansson.h>

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
