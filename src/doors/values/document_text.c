/*
 * The text of a PDF or of an Excel workbook. A stranger's file is taken apart in a sandbox of its
 * own, which ends with it (guest/py/retort_guest/document_text.py); what comes out of it is text.
 */
#include "doors/values/values.h"

#include "record/record.h"

#include <stdio.h>
#include <stdlib.h>

#define WALL_MS  20000
#define SAID_MAX 300 /* bytes of why there is no text */

static const char *const kinds[] = {
    "application/pdf",
    "application/vnd.ms-excel",
    "application/vnd.ms-excel.sheet.macroenabled.12",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
};

bool document_text_can(struct str mime)
{
    for (size_t i = 0; i < COUNT(kinds); i++)
        if (str_is(mime, kinds[i]))
            return true;
    return false;
}

struct document_text {
    struct service *sv;
    struct caller caller;
    struct execution *x; /* borrowed: until it ends */
    char session[ID_MAX];
    document_text_fn *fn;
    void *arg;
};

static void on_deleted(void *arg, const struct err *failed)
{
    (void)arg, (void)failed; /* the session goes when its retention is over, then */
}

static void on_queued(void *arg, const struct exec_info *info)
{
    struct document_text *d = arg;

    snprintf(d->session, sizeof(d->session), "%s", info->row->session);
}

static void text_free(struct document_text *d)
{
    if (*d->session)
        service_session_delete(d->sv, &d->caller, str_of(d->session), on_deleted, NULL);
    free(d);
}

static size_t head(struct str s, size_t most)
{
    return most >= s.n ? s.n : most - utf8_torn((struct str){s.p, most});
}

/* It is the file's fault. */
static void tell_none(struct document_text *d, struct str why)
{
    struct err none;

    why = str_trim(why);
    if (why.n == 0)
        why = STR("it cannot be read");
    err_set(&none, ERR_CALLER, "%.*s", (int)head(why, SAID_MAX), why.p);
    d->fn(d->arg, (struct str){0}, false, &none);
}

static void on_end(void *arg, const struct exec_info *info, const struct err *failed)
{
    struct document_text *d = arg;
    AUTO(buf_done) struct buf out = BUF(2 * DOCUMENT_TEXT_MAX), errs = BUF(64 * KiB);
    struct str text;

    d->x = NULL;
    if (failed) {
        d->fn(d->arg, (struct str){0}, false, failed);
        return text_free(d);
    }
    events_output(info->events, IN(EVENT_STDOUT), &out);
    events_output(info->events, IN(EVENT_STDERR), &errs);
    text = buf_str(&out);
    if (info->how->status != OUTCOME_OK || info->how->exit_code != 0) {
        tell_none(d, info->how->status == OUTCOME_OK || info->how->status == OUTCOME_RAISED
                         ? buf_str(&errs)
                         : str_of(info->how->line));
    } else {
        bool whole = text.n <= DOCUMENT_TEXT_MAX;
        text.n = head(text, DOCUMENT_TEXT_MAX);
        d->fn(d->arg, text, !whole, NULL);
    }
    text_free(d);
}

struct document_text *document_text_start(struct service *sv, const struct caller *c,
                                          const char *pool, struct file_input file,
                                          document_text_fn *fn, void *arg)
{
    static const struct exec_watcher watcher = {.on_queued = on_queued, .on_end = on_end};
    struct document_text *d = mem_zalloc(sizeof(*d));
    const struct exec_spec spec = {
        .pool = str_of(pool),
        .kind = EXEC_COMMAND,
        .code = STR("exec python3 -I -B /opt/retort/retort_guest/document_text.py document"),
        .wall_ms = WALL_MS,
        .files = &file,
        .file_count = 1,
        .ask = {.tool = STR("document_text"), .reads = true}, /* our own code: nobody is asked */
    };

    file.path = STR("document");
    *d = (struct document_text){.sv = sv, .caller = *c, .fn = fn, .arg = arg};
    d->x = service_execute(sv, &d->caller, &spec, &watcher, d);
    return d;
}

void document_text_leave(struct document_text *d)
{
    if (d->x)
        execution_leave(take_ptr(&d->x));
    text_free(d);
}
