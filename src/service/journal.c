/*
 * The journal: what a client has heard of an execution can be read again, even if this process is
 * killed the next moment.
 *
 * An execution that tells while it runs (a stream, one in the background, one that a client looks
 * at) holds its events back until they are in the store, and tells them then. Events that come
 * while one group is written are the next group. At its end the execution writes its whole record,
 * and the groups are deleted. A server that finds groups at its start makes a record of them.
 */
#include "service/service_int.h"

#include <stdlib.h>

#define GROUP_BYTES (256 * KiB) /* then the code waits until the group before is written */

/* An event, with everything it points to. */
struct heard {
    struct heard *next;
    bool kept; /* on record: not past the budget */
    struct event event;
    char bytes[];
};

/* --- copies --- */

typedef void text_fn(struct str *s, void *arg);

/* Whatever an event points to. What is missing here is told after its bytes are gone. */
static void each_text(struct event *ev, text_fn *fn, void *arg)
{
    struct str *const plain[] = {
        &ev->text,          &ev->bundle.display_id, &ev->bundle.metadata, &ev->error.type,
        &ev->error.message, &ev->error.traceback,   &ev->file.path,
    };

    for (size_t i = 0; i < COUNT(plain); i++)
        fn(plain[i], arg);
    for (size_t i = 0; i < ev->bundle.count; i++) {
        fn(&ev->bundle.part[i].mime, arg);
        fn(&ev->bundle.part[i].data, arg);
    }
    for (size_t i = 0; i < ev->error.count; i++) {
        fn(&ev->error.frame[i].file, arg);
        fn(&ev->error.frame[i].function, arg);
        fn(&ev->error.frame[i].text, arg);
    }
}

static void measure(struct str *s, void *arg)
{
    *(size_t *)arg += s->n;
}

static void move(struct str *s, void *arg)
{
    char **at = arg;

    if (s->n > 0)
        memcpy(*at, s->p, s->n);
    s->p = *at;
    *at += s->n;
}

static struct heard *heard_new(const struct event *ev, bool kept)
{
    struct event copy = *ev;
    struct heard *h;
    size_t n = 0;
    char *at;

    each_text(&copy, measure, &n);
    h = mem_zalloc(sizeof(*h) + n);
    at = h->bytes;
    each_text(&copy, move, &at);
    h->event = copy;
    h->kept = kept;
    return h;
}

static void heard_free(struct heard *h)
{
    while (h) {
        struct heard *next = h->next;
        free(h);
        h = next;
    }
}

/* --- groups --- */

/* The events of an array without its brackets, so that groups can be joined; NULL for none. */
static char *inside(json_t *events)
{
    size_t n = 0;
    char *text = json_array_size(events) > 0 ? record_dump(events, false, &n) : NULL;

    if (!text)
        return NULL;
    memmove(text, text + 1, n - 2);
    text[n - 2] = '\0';
    return text;
}

static int write_group(struct task *t, struct db *db, struct err *e)
{
    struct execution *j = OWNER(t, struct execution, journal.task);

    return db_exec_output_put(db, j->row.id, j->journal.number, j->journal.text, e);
}

static void on_written(struct task *t, const struct err *failed);

static void write_text(struct execution *j)
{
    static const struct step steps[] = {{.store = write_group}, {0}};
    static const struct step nothing[] = {{.loop = task_go_on}, {0}};
    struct journal *n = &j->journal;

    n->writing = true;
    n->number++;
    task_start(&n->task, j->sv, NULL, n->text ? steps : nothing, on_written);
}

static void next_group(struct execution *j)
{
    struct journal *n = &j->journal;

    n->group = take_ptr(&n->waiting);
    n->waiting_end = &n->waiting;
    n->bytes = 0;
    for (const struct heard *h = n->group; h; h = h->next)
        if (h->kept)
            transcript_event(&n->transcript, &h->event);
    transcript_flush(&n->transcript, false);
    n->text = inside(n->transcript.events);
    json_array_clear(n->transcript.events);
    write_text(j);
}

static void on_written(struct task *t, const struct err *failed)
{
    struct execution *j = OWNER(t, struct execution, journal.task);
    struct journal *n = &j->journal;
    struct heard *group = take_ptr(&n->group);

    if (failed)
        log_warn("execution %s: what it says is on record with its end alone: %s", j->row.id,
                 failed->text);
    mem_freep(&n->text);
    for (const struct heard *h = group; h; h = h->next)
        job_put_event(j, &h->event, h->kept);
    heard_free(group);
    n->writing = false;
    if (n->waiting)
        next_group(j);
    if (n->full && n->bytes == 0) {
        n->full = false;
        job_hold(j);
    }
    if (!n->writing && n->end_waits)
        job_record_end(j);
}

void journal_event(struct execution *j, const struct event *ev, bool kept)
{
    struct journal *n = &j->journal;
    struct heard *h = heard_new(ev, kept);

    *n->waiting_end = h;
    n->waiting_end = &h->next;
    n->bytes += transcript_cost(&n->transcript, ev);
    if (!n->writing)
        return next_group(j);
    if (n->bytes > GROUP_BYTES && !n->full) {
        n->full = true;
        job_hold(j);
    }
}

void journal_begin(struct execution *j)
{
    struct journal *n = &j->journal;

    if (n->on)
        return;
    n->on = true;
    n->waiting_end = &n->waiting;
    transcript_init(&n->transcript);
    if (j->transcript.bytes == 0)
        return;
    /* What it has said so far, and nobody has heard. */
    struct exec_info info = job_info(j);
    n->text = inside(info.events);
    json_decref(info.events);
    write_text(j);
}

bool journal_ends_later(struct execution *j)
{
    j->journal.end_waits = j->journal.writing;
    return j->journal.writing;
}

void journal_done(struct journal *n)
{
    assert(!n->writing && !n->waiting);
    if (n->on)
        transcript_done(&n->transcript);
}
