/*
 * An execution as a model reads it: one text, then images, then links to files.
 *
 * The text has at most TEXT_MAX bytes. Its sections share them equally; bytes that one section does
 * not need go to the others. A section that is too long shows its head and its tail, and says where
 * the rest is. A worker writes the report of an execution with much output.
 */
#include "doors/mcp/execution.h"
#include "doors/mcp/resource.h"

#include <stdio.h>
#include <stdlib.h>

#define FILES_MAX  20   /* told of; list_files has the others */
#define FILES_TEXT 1500 /* bytes of their names */
#define TEXT_MAX   10000
#define PAGE_BYTES 9000        /* of output, asked for by its offset */
#define LINKS_MAX  20          /* to images */
#define NOTES_TEXT 1000        /* bytes of notes */
#define LARGE      (256 * KiB) /* of events: longer ones are written by a worker */
#define BUF_MAX    (1 * GiB)   /* the service keeps less; this only stops a runaway */
#define BOTH       (IN(EVENT_STDOUT) | IN(EVENT_STDERR))

enum section { OUT, ERRORS, VALUES, RAISED, SECTIONS };

struct exec_report {
    struct call *c; /* held */
    struct report_of of;
    char execution[ID_MAX], session[ID_MAX], status[16];
    bool shell, over, failed;
    int64_t ran_ms;           /* so far; when it is over the outcome tells */
    json_t *events, *outcome; /* owned references; what is in them is nobody's to change */
    struct buf text;          /* the answer's first block */
    struct buf frame;         /* what stands below the sections */
    struct buf part[SECTIONS];
    struct figures figures;
    struct tool_content content;
    bool clipped; /* some of the output is left out */
};

static void report_free(struct exec_report *r)
{
    json_decref(r->events);
    json_decref(r->outcome);
    buf_done(&r->text);
    buf_done(&r->frame);
    for (size_t i = 0; i < SECTIONS; i++)
        buf_done(&r->part[i]);
    json_decref(r->figures.items);
    content_done(&r->content);
    free(r);
}

/* Drops what does not fit: the ceilings are above all that is put. */
static void put(struct buf *b, struct str s)
{
    buf_put(b, s);
}

static void put_text(struct buf *b, const char *s)
{
    put(b, str_of(s));
}

static void end_line(struct buf *b)
{
    if (b->n > 0 && b->p[b->n - 1] != '\n')
        put(b, STR("\n"));
}

/* --- what it has said --- */

/* Something to look at, without a text that says the same. */
static void put_kinds(struct buf *b, const json_t *data)
{
    const char *mime;
    json_t *part;
    size_t n = 0;

    json_object_foreach((json_t *)data, mime, part) {
        if (n++ < 3) {
            put_text(b, n == 1 ? "display of " : ", ");
            put_text(b, mime);
        }
    }
    put_text(b, n > 0 ? ", which has no text: print what is to be read" : "empty display");
}

static void add_value(struct exec_report *r, const struct event_reader *at)
{
    struct buf *b = &r->part[VALUES];
    struct str plain = at->text;

    end_line(b);
    if (at->image) {
        figures_add(&r->figures, at, b);
        return;
    }
    if (r->of.image)
        return;
    if (plain.n == 0) {
        put_kinds(b, json_object_get(at->event, "data"));
        return;
    }
    put(b, at->kind == EVENT_RESULT ? STR("result:") : STR("display:"));
    put(b, memchr(plain.p, '\n', plain.n) ? STR("\n") : STR(" ")); /* a table keeps its columns */
    put(b, plain);
}

static void add_raised(struct exec_report *r, const json_t *ev)
{
    struct buf *b = &r->part[RAISED];
    struct str trace = event_text(ev, "traceback");

    end_line(b);
    if (trace.n > 0) {
        put(b, trace);
        return;
    }
    put(b, event_text(ev, "name"));
    put(b, STR(": "));
    put(b, event_text(ev, "message"));
}

static void collect(struct exec_report *r)
{
    struct event_reader at;

    event_reader_init(&at, r->events);
    while (event_reader_next(&at)) {
        if (at.kind == EVENT_STDOUT)
            put(&r->part[OUT], at.text);
        else if (at.kind == EVENT_STDERR)
            put(&r->part[ERRORS], at.text);
        else if (at.kind == EVENT_DISPLAY || at.kind == EVENT_RESULT)
            add_value(r, &at);
        else if (at.kind == EVENT_ERROR)
            add_raised(r, at.event);
    }
    event_reader_done(&at);
}

/* A progress bar becomes its last state, where that makes it all fit: offsets, by which the rest is
 * to be had otherwise, count bytes as they were printed. */
static void settle_streams(struct exec_report *r, size_t most)
{
    struct buf settled[2] = {BUF(BUF_MAX), BUF(BUF_MAX)};
    size_t sum = r->part[VALUES].n + r->part[RAISED].n;

    for (size_t i = OUT; i <= ERRORS; i++) {
        text_settle(&settled[i], buf_str(&r->part[i]));
        sum += settled[i].n;
    }
    for (size_t i = OUT; i <= ERRORS; i++) {
        if (sum <= most) {
            struct buf raw = r->part[i];
            r->part[i] = settled[i];
            settled[i] = raw;
        }
        buf_done(&settled[i]);
    }
}

/* Offsets count bytes of both streams as they were printed, so where something has to be left out
 * the two are shown as one. */
static bool join_streams(struct exec_report *r, size_t most)
{
    size_t sum = 0;

    for (size_t i = 0; i < SECTIONS; i++)
        sum += r->part[i].n;
    if (sum <= most || r->part[OUT].n == 0 || r->part[ERRORS].n == 0)
        return false;
    buf_clear(&r->part[OUT]);
    buf_clear(&r->part[ERRORS]);
    events_output(r->events, BOTH, &r->part[OUT]);
    return true;
}

static void put_sections(struct exec_report *r, size_t most)
{
    const char *labels[SECTIONS] = {"stdout:\n", "stderr:\n", "", ""};
    size_t wants[SECTIONS], gets[SECTIONS];

    settle_streams(r, most);
    if (join_streams(r, most))
        labels[OUT] = "stdout and stderr:\n";
    for (size_t i = 0; i < SECTIONS; i++)
        wants[i] = r->part[i].n;
    text_share(wants, gets, SECTIONS, most);
    for (size_t i = 0; i < SECTIONS; i++) {
        bool output = i == OUT || i == ERRORS;
        if (wants[i] == 0)
            continue;
        put_text(&r->text, labels[i]);
        if (text_clip(&r->text, buf_str(&r->part[i]), gets[i], output ? r->execution : NULL))
            r->clipped |= output;
        end_line(&r->text);
    }
}

/* --- a page of the output --- */

/* Of one that runs the last character may still be on its way. */
static size_t whole_bytes(const struct exec_report *r, struct str all)
{
    static const char torn[] = "\xef\xbf\xbd";
    size_t n = all.n;

    while (!r->over && n >= 3 && memcmp(all.p + n - 3, torn, 3) == 0)
        n -= 3;
    return n;
}

static void put_page(struct exec_report *r)
{
    struct str all;
    size_t from, n;

    events_output(r->events, BOTH, &r->part[OUT]);
    all = buf_str(&r->part[OUT]);
    all.n = whole_bytes(r, all);
    from = r->of.offset < all.n ? (size_t)r->of.offset : all.n;
    from += text_tail((struct str){all.p + from, all.n - from}, all.n - from);
    n = text_head_lines((struct str){all.p + from, all.n - from}, PAGE_BYTES);
    buf_printf(&r->text, "output, bytes %zu to %zu of %zu%s:\n", from, from + n, all.n,
               r->over ? "" : " so far");
    put(&r->text, (struct str){all.p + from, n});
    end_line(&r->text);
    if (from + n < all.n || !r->over)
        buf_printf(&r->text, "next: get_execution with execution_id=%s and offset=%zu%s\n",
                   r->execution, from + n, r->over ? "" : "; with wait_ms=30000 it waits for more");
}

/* --- around it --- */

static void put_head(struct exec_report *r)
{
    double wall_ms = json_number_value(json_object_get(r->outcome, "wall_ms"));
    json_int_t code = json_integer_value(json_object_get(r->outcome, "exit_code"));
    double s = (r->over ? wall_ms : (double)r->ran_ms) / 1000;
    const char *note = r->of.looks ? "" : call_session_note(r->c);

    buf_printf(&r->text, "[session %s | %s | %s", r->session, r->shell ? "shell" : "python",
               strcmp(r->status, "raised") == 0 ? "error" : r->status);
    if (r->shell && r->over)
        buf_printf(&r->text, " | exit status %lld", (long long)code);
    buf_printf(&r->text, " | %.*f s%s]\n", s < 1 ? 3 : 1, s, note);
    if (*note && r->c->mcp->opened)
        buf_printf(&r->text, "%s\n", r->c->mcp->opened);
}

static void put_notes(struct exec_report *r)
{
    size_t i, left = 0, from = r->frame.n;
    json_t *ev;

    json_array_foreach(r->events, i, ev) {
        if (!event_is(ev, "status"))
            continue;
        if (r->frame.n - from > NOTES_TEXT) {
            left++;
            continue;
        }
        put(&r->frame, STR("note: "));
        (void)text_clip(&r->frame, event_text(ev, "text"), NOTES_TEXT / 2, NULL);
        put(&r->frame, STR("\n"));
    }
    if (left > 0)
        buf_printf(&r->frame, "note: %zu more notes are on record\n", left);
}

/* How it ended, and what to do about it. */
static void put_ending(struct exec_report *r)
{
    static const struct {
        const char *status, *text;
        bool if_kept;
    } advice[] = {
        {"timeout",     "Do less at a time, or give a larger timeout_ms where the limit allows it.\n",
         false                                                                                              },
        {"interrupted", "Variables and files are kept.\n",                                             true },
        {"memory",      "Read less at a time, use smaller types, delete what is not needed.\n",        false},
    };
    bool lost = json_is_true(json_object_get(r->outcome, "state_lost"));
    struct str line = event_text(r->outcome, "message");

    if (line.n > 0 && (strcmp(r->status, "raised") != 0 || r->part[RAISED].n == 0)) {
        put(&r->frame, line);
        end_line(&r->frame);
    }
    for (size_t i = 0; i < COUNT(advice); i++)
        if (strcmp(advice[i].status, r->status) == 0 && !(advice[i].if_kept && lost))
            put_text(&r->frame, advice[i].text);
    if (!r->over && !r->of.has_offset)
        buf_printf(&r->frame,
                   "It %s. get_execution with execution_id=%s and wait_ms=30000 shows how it "
                   "goes on; interrupt_execution ends it.\n",
                   strcmp(r->status, "queued") == 0 ? "waits for its turn in the session"
                                                    : "is still running",
                   r->execution);
}

/* --- files --- */

static bool is_deleted(const json_t *ev)
{
    return str_is(event_text(ev, "change"), "deleted");
}

static bool is_too_large(const json_t *ev)
{
    return json_is_true(json_object_get(ev, "too_large"));
}

static uint64_t size_of(const json_t *ev)
{
    return (uint64_t)json_integer_value(json_object_get(ev, "size"));
}

static void put_one(struct buf *b, const json_t *ev)
{
    char name[NAME_SHOWN], size[SIZE_SHOWN];

    buf_printf(b, "%s (%s%s)", name_show(name, event_text(ev, "path")),
               is_deleted(ev) ? "deleted" : size_show(size, size_of(ev)),
               is_too_large(ev) ? ", too large to be kept" : "");
}

static void put_files(const json_t *events, struct buf *ret)
{
    size_t told = 0, left = 0, from = ret->n;

    for (size_t i = 0; i < json_array_size(events); i++) {
        const json_t *ev = json_array_get(events, i);
        if (!event_is(ev, "file"))
            continue;
        if (told >= FILES_MAX || ret->n - from > FILES_TEXT) {
            left++;
            continue;
        }
        buf_put(ret, told++ == 0 ? STR("files in /workspace: ") : STR(", "));
        put_one(ret, ev);
    }
    if (left > 0)
        buf_printf(ret, ", and %zu more: list_files has them", left);
    if (told > 0)
        buf_put(ret, STR("\n"));
}

/* There is no way back from U+FFFD to the bytes of a name. */
static bool has_address(const json_t *ev)
{
    struct str path = event_text(ev, "path");

    return !is_deleted(ev) && !is_too_large(ev) && !memmem(path.p, path.n, "\xef\xbf\xbd", 3);
}

static void link_files(const json_t *events, struct tool_content *t, const struct call *c,
                       const char *session)
{
    size_t told = 0;
    char uri[URI_MAX];

    for (size_t i = 0; i < json_array_size(events) && told < FILES_MAX; i++) {
        const json_t *ev = json_array_get(events, i);
        struct str path = event_text(ev, "path");
        if (!event_is(ev, "file") || !has_address(ev) || !uri_of_file(uri, str_of(session), path))
            continue;
        content_link(t, c, uri, path, json_string_value(json_object_get(ev, "mime")), size_of(ev));
        told++;
    }
}

/* --- links --- */

static void link_output(struct exec_report *r)
{
    char uri[URI_MAX];

    if (!r->clipped)
        return;
    uri_of_output(uri, str_of(r->execution));
    content_link(&r->content, r->c, uri, STR("output"), "text/plain", r->part[OUT].n);
}

/* Only to an image that is not in the answer as it is: clients hand a link of an image's type to
 * their model as one more image, and no model can read this address. */
static void link_images(struct exec_report *r)
{
    size_t from = r->of.image ? r->of.image : 1, to = r->of.image ? r->of.image : LINKS_MAX;

    for (size_t n = from; n <= to && n <= r->figures.seen; n++) {
        char uri[URI_MAX], name[32];
        const char *mime;
        const json_t *image = events_image(r->events, n, &mime);
        if (n < 64 && (r->figures.whole & UINT64_C(1) << n))
            continue;
        snprintf(name, sizeof(name), "image %zu", n);
        uri_of_image(uri, str_of(r->execution), n);
        content_link(&r->content, r->c, uri, str_of(name), mime, json_string_length(image) / 4 * 3);
    }
}

/* --- the whole --- */

static void write_text(struct exec_report *r)
{
    put_head(r);
    if (r->of.has_offset) {
        put_page(r);
        put_ending(r);
    } else {
        collect(r);
        put_notes(r);
        put_files(r->events, &r->frame);
        put_ending(r);
        put_sections(r, TEXT_MAX - r->text.n - r->frame.n);
    }
    put(&r->text, buf_str(&r->frame));
    if (r->text.n > 0)
        r->text.n--; /* the last newline */
}

static void write_one_image(struct exec_report *r)
{
    collect(r);
    put_head(r);
    put(&r->text, buf_str(&r->part[VALUES]));
    if (r->of.image <= r->figures.seen)
        return;
    buf_printf(&r->text, "There is no image %zu: it has shown %zu.", r->of.image, r->figures.seen);
    r->failed = true;
}

static void write_all(void *arg) /* perhaps on a worker */
{
    struct exec_report *r = arg;

    r->figures.only = r->of.image;
    if (r->of.image)
        write_one_image(r);
    else
        write_text(r);
    content_text(&r->content, buf_str(&r->text));
    json_array_extend(r->content.items, r->figures.items);
    link_images(r);
    if (!r->of.image)
        link_files(r->events, &r->content, r->c, r->session);
    link_output(r);
}

static void on_written(void *arg)
{
    struct exec_report *r = arg;
    struct call *c = r->c;
    json_t *result = content_result(&r->content, r->failed);

    json_object_set_new(result, "_meta",
                        json_pack("{s:s, s:s}", "dev.retort/sessionId", r->session,
                                  "dev.retort/executionId", r->execution));
    report_free(r);
    call_result(c, result);
}

static struct exec_report *report_new(struct call *c, const struct exec_info *info,
                                      const struct report_of *of)
{
    struct exec_report *r = mem_zalloc(sizeof(*r));
    const struct exec_row *row = info->row;
    const char *status = row->status ? row->status : "";

    *r = (struct exec_report){.c = c, .of = *of};
    snprintf(r->execution, sizeof(r->execution), "%s", row->id);
    snprintf(r->session, sizeof(r->session), "%s", row->session ? row->session : "");
    snprintf(r->status, sizeof(r->status), "%s", status);
    r->shell = row->kind && strcmp(row->kind, "command") == 0;
    r->over = info->outcome;
    r->failed = r->over && !of->looks && strcmp(status, "ok") != 0;
    r->ran_ms = row->started_ms ? time_now_ms() - row->started_ms : 0;
    r->events = json_incref(info->events);
    r->outcome = json_incref(info->outcome);
    r->figures = (struct figures){.execution = r->execution, .items = json_array()};
    buf_init(&r->text, 1 * MiB);
    buf_init(&r->frame, 1 * MiB);
    for (size_t i = 0; i < SECTIONS; i++)
        buf_init(&r->part[i], BUF_MAX);
    content_init(&r->content);
    return r;
}

void report_answer(struct call *c, struct service *sv, const struct exec_info *info,
                   const struct report_of *of)
{
    struct exec_report *r = report_new(c, info, of);

    if (info->bytes > LARGE) {
        service_work(sv, write_all, on_written, r);
        return;
    }
    write_all(r);
    on_written(r);
}
