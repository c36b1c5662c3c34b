/* --json: one document with every event and outcome. */
#include "cli/cli_int.h"

void doc_init(struct doc *d)
{
    *d = (struct doc){.root = json_object(), .executions = json_array()};
    json_object_set_new(d->root, "version", json_integer(1));
    json_object_set_new(d->root, "executions", d->executions);
    transcript_init(&d->transcript);
}

void doc_done(struct doc *d)
{
    json_decref(d->root);
    transcript_done(&d->transcript);
    *d = (struct doc){0};
}

void doc_begin(struct doc *d, const struct source *src)
{
    json_t *one = json_object();

    transcript_done(&d->transcript);
    transcript_init(&d->transcript);
    json_object_set_new(one, "kind", json_string(src->kind == EXEC_COMMAND ? "command" : "cell"));
    json_object_set_new(one, "source", record_text(str_of(src->label)));
    json_object_set(one, "events", d->transcript.events);
    json_array_append_new(d->executions, one);
}

void doc_event(struct doc *d, const struct event *ev)
{
    transcript_event(&d->transcript, ev);
}

void doc_outcome(struct doc *d, const struct outcome *o)
{
    json_t *one = json_array_get(d->executions, json_array_size(d->executions) - 1);

    transcript_flush(&d->transcript, true);
    json_object_set_new(one, "outcome", record_outcome(o));
}

char *doc_print(struct doc *d, int status, const struct err *failed)
{
    if (failed)
        json_object_set_new(d->root, "error", record_text(str_of(failed->text)));
    json_object_set_new(d->root, "exit", json_integer(status));
    return record_dump(d->root, false, NULL);
}
