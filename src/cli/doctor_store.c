/* What doctor says of the database and the bucket that a server would use. */
#include "cli/doctor.h"
#include "cli/serve_int.h"
#include "cli/state.h"

#include <stdio.h>
#include <stdlib.h>

struct store_rows {
    struct report *report; /* borrowed */
    struct buf *bad;       /* borrowed */
    const char *section;
};

static void on_finding(void *arg, const struct store_finding *f)
{
    static const enum layer_state states[] = {
        [STORE_GOOD] = LAYER_OK, [STORE_WEAK] = LAYER_WEAKER, [STORE_BAD] = LAYER_MISSING};
    const struct store_rows *r = arg;

    report_row(r->report, &(struct report_row){.section = r->section,
                                               .name = f->name,
                                               .state = states[f->state],
                                               .detail = f->detail,
                                               .remedy = f->remedy});
    if (f->state == STORE_BAD)
        buf_printf(r->bad, "%s%s: %s", r->bad->n ? ", " : "", r->section, f->name);
}

static void cannot_ask(struct store_rows *r, const char *name, const struct err *e)
{
    struct store_finding f = {.name = name, .state = STORE_BAD};

    snprintf(f.detail, sizeof(f.detail), "%.*s", (int)sizeof(f.detail) - 1, e->text);
    on_finding(r, &f);
}

static void ask_rows(struct store_rows *r, const struct settings *s)
{
    AUTO_FREE char *password = NULL;
    struct store_config config;
    struct err e;

    if (store_url_check(s->store, &e) < 0 || state_store(s, &config, &password, &e) < 0)
        return cannot_ask(r, "database", &e);
    store_probe_rows(s->store, password, on_finding, r);
    if (password)
        explicit_bzero(password, strlen(password));
}

static void ask_blobs(struct store_rows *r, const struct settings *s)
{
    struct blob_set set;
    struct err e;

    if (blob_set_open(&set, s, &e) < 0)
        cannot_ask(r, "bucket", &e);
    else
        store_probe_blobs(&set.s3, on_finding, r);
    blob_set_done(&set);
}

void doctor_store(struct report *report, const struct settings *s, struct buf *bad)
{
    struct store_rows r = {.report = report, .bad = bad, .section = "Database"};

    if (s->store)
        ask_rows(&r, s);
    r.section = "Bucket";
    if (s->serve.blobs)
        ask_blobs(&r, s);
}
