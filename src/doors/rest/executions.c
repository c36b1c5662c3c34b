/* Executions on record: one, many, their output, and the audit log. */
#include "doors/rest/rest_int.h"

#include <stdio.h>
#include <stdlib.h>

static void on_exec(void *arg, const struct exec_info *info, const struct err *failed)
{
    struct request *r = arg;

    if (failed)
        answer_error(r, failed, NULL);
    else
        answer_exec(r, 200, info);
}

HANDLE_ID(handle_get_execution, service_exec_get, "execution", on_exec)
HANDLE_ID(handle_interrupt_execution, service_exec_interrupt, "execution", on_exec)

/* --- output --- */

static void on_output(void *arg, const struct exec_info *info, const struct err *failed)
{
    struct request *r = arg;
    struct str which = request_query(r, "stream");

    if (failed)
        answer_error(r, failed, NULL);
    else
        answer_output(r,
                      str_is(which, "stdout")   ? IN(EVENT_STDOUT)
                      : str_is(which, "stderr") ? IN(EVENT_STDERR)
                                                : IN(EVENT_STDOUT) | IN(EVENT_STDERR),
                      info);
}

HANDLE_ID(handle_get_output, service_exec_get, "execution", on_output)

/* --- lists --- */

/* A question to the record, kept with its request. */
struct search {
    struct request *r;
    struct exec_filter filter;
    char session[ID_MAX], status[16], key[ID_MAX];
    /* of the export: */
    struct pump pump;
    char after[ID_MAX]; /* the last one told, "" at first */
    int64_t after_ms;   /* its time: it may be forgotten before the next page is asked for */
    size_t rows;        /* to ask for next */
    bool last;          /* there are no more */
    char *text;         /* owned: the record at hand */
    struct str line;    /* all of text */
    size_t line_at;     /* so much of it has been handed over */
};

static void search_free(void *p)
{
    struct search *s = p;

    free(s->text);
    free(s);
}

ON_LIST(on_list, exec_info, render_exec_brief)

static void list(struct search *s)
{
    s->filter.tenant = request_caller(s->r)->tenant;
    service_exec_list(request_service(s->r), request_caller(s->r), &s->filter, request_page(s->r),
                      false, on_list, s->r);
}

/* --- the export: every record, oldest first --- */

static void put_record(struct search *s, const struct exec_info *info)
{
    json_t *v = render_audit(info);

    free(take_ptr(&s->text));
    s->text = json_line(v);
    json_decref(v);
    s->line = str_of(s->text);
    s->text[s->line.n++] = '\n'; /* in place of the NUL */
    s->line_at = 0;
    snprintf(s->after, sizeof(s->after), "%s", info->row->id);
    s->after_ms = info->row->created_ms;
    answer_stream_put_some(s->r, s->line, &s->line_at);
}

static void on_page(void *arg, const struct exec_info *infos, size_t count, bool more,
                    const struct err *failed)
{
    struct search *s = arg;
    size_t at = 0;

    if (!pump_back(&s->pump))
        return;
    if (failed) {
        pump_fail(&s->pump, failed);
        return;
    }
    if (!s->pump.open)
        pump_open(&s->pump, 200, "application/x-ndjson");
    while (at < count && !answer_stream_is_held(s->r))
        put_record(s, &infos[at++]);
    s->last = at == count && !more;
    /* What did not fit is asked for again, and the next page is as long as this one had room for:
     * a record has a few hundred bytes or many megabytes. */
    s->rows = at < count ? at : s->rows * 2 < EXPORT_ROWS ? s->rows * 2 : EXPORT_ROWS;
    pump_next(&s->pump);
}

static void export_step(void *arg)
{
    struct search *s = arg;
    const struct page page = {
        .after = s->after[0] ? s->after : NULL, .after_ms = s->after_ms, .limit = s->rows};

    if (!answer_stream_put_some(s->r, s->line, &s->line_at))
        pump_next(&s->pump);
    else if (s->last)
        answer_stream_end(s->pump.r);
    else
        service_exec_list(request_service(s->r), request_caller(s->r), &s->filter, page, true,
                          on_page, s);
}

static void export(struct search *s)
{
    const struct caller *c = request_caller(s->r);

    s->filter.tenant = c->admin ? NULL : c->tenant;
    s->filter.oldest_first = true;
    s->rows = 32;
    pump_start(&s->pump, s->r, export_step, s);
}

/* --- the query --- */

static int take_time(struct request *r, const char *name, int64_t *ret, struct err *e)
{
    struct str text = request_query(r, name);

    if (text.p && !time_parse(text, ret))
        return err_set(e, ERR_CALLER, "not an RFC 3339 time such as 2026-01-31T12:00:00Z");
    return 0;
}

/* Copies a parameter that is there; *ret stays NULL without one. */
static int take_text(struct str text, char *room, size_t size, const char **ret, struct err *e)
{
    if (text.p && !str_to_cstr(text, room, size))
        return err_set(e, ERR_CALLER, "it is too long");
    if (text.p)
        *ret = room;
    return 0;
}

static int take_filter(struct search *s, const char **ret_param, struct err *e)
{
    struct str session = request_query(s->r, "session");

    *ret_param = "session";
    if (session.p && !str_to_cstr(session, s->session, sizeof(s->session)))
        return err_set(e, ERR_CALLER, "not the id of a session");
    if (session.p)
        s->filter.session = s->session;
    *ret_param = "key";
    if (take_text(request_query(s->r, "key"), s->key, sizeof(s->key), &s->filter.key, e) < 0)
        return -1;
    *ret_param = "status";
    if (take_text(request_query(s->r, "status"), s->status, sizeof(s->status), &s->filter.status,
                  e) < 0)
        return -1;
    *ret_param = "since";
    if (take_time(s->r, "since", &s->filter.since_ms, e) < 0)
        return -1;
    *ret_param = "until";
    return take_time(s->r, "until", &s->filter.until_ms, e);
}

void handle_list_executions(struct request *r)
{
    struct search *s = mem_zalloc(sizeof(*s));
    const char *param;
    struct err e;

    s->r = r;
    request_keep(r, search_free, s);
    if (take_filter(s, &param, &e) < 0)
        answer_error(r, &e, param);
    else if (str_is(request_query(r, "format"), "jsonl"))
        export(s);
    else
        list(s);
}
