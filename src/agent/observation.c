/*
 * What came of an execution, for the model and for the logs: status, notes of the server,
 * output, value, error and files. Output is cleaned and cut; the record of the execution has all of
 * it, for read_output.
 */
#include "agent/agent_int.h"
#include "lenient/lenient.h"
#include "record/record.h"

#include <ctype.h>
#include <stdio.h>

#define LINE_MAX_   2000 /* bytes of one line */
#define BLOB_RUN    200  /* characters in a row that look like base64 */
#define BINARY_RUN  8
#define TEXT_ROOM   (64 * MiB)
#define STDERR_PART 2000
#define RESULT_PART 1500
#define ERROR_PART  2500
#define FRAMES_PART 12
#define NOTES_PART  1000
#define FILES_PART  20
#define LOG_PART    (16 * KiB) /* of the output of one execution in the logs */

/* --- cleaning --- */

/* Length of the terminal escape sequence at s, or 0. */
static size_t escape_at(struct str s)
{
    size_t n = 2;

    if (s.n < 2 || s.p[0] != '\033')
        return 0;
    if (s.p[1] != '[')
        return s.p[1] == ']' ? str_line(s) : 2;
    while (n < s.n && (s.p[n] < '@' || s.p[n] > '~'))
        n++;
    return n < s.n ? n + 1 : n;
}

static bool is_base64(char c)
{
    return isalnum((unsigned char)c) || c == '+' || c == '/' || c == '=' || c == '-' || c == '_';
}

/* Length of the base64 at s, or 0. A row of dashes or equal signs is a drawn line. */
static size_t blob_at(struct str s)
{
    bool upper = false, lower = false, digit = false;
    size_t n = 0;

    while (n < s.n && is_base64(s.p[n])) {
        upper |= isupper((unsigned char)s.p[n]) != 0;
        lower |= islower((unsigned char)s.p[n]) != 0;
        digit |= isdigit((unsigned char)s.p[n]) != 0;
        n++;
    }
    return n >= BLOB_RUN && upper && lower && digit ? n : 0;
}

static bool is_blank(char c)
{
    return c == '\t' || c == '\n' || c == '\r' || c == '\033';
}

/* Length of the control bytes and replacement characters at s; 0 for a few. */
static size_t binary_at(struct str s)
{
    size_t n = 0, signs = 0;

    for (;;) {
        if (s.n - n >= 3 && memcmp(s.p + n, "\xef\xbf\xbd", 3) == 0)
            n += 3;
        else if (n < s.n && (unsigned char)s.p[n] < ' ' && !is_blank(s.p[n]))
            n++;
        else
            break;
        signs++;
    }
    return signs >= BINARY_RUN ? n : 0;
}

static void put_line(struct buf *b, struct str line)
{
    size_t head = LINE_MAX_ - 500, tail = 400;

    if (line.n <= LINE_MAX_) {
        buf_put(b, line);
        return;
    }
    head -= utf8_torn((struct str){line.p, head});
    while (tail < line.n && ((unsigned char)line.p[line.n - tail] & 0xc0) == 0x80)
        tail--;
    buf_put(b, (struct str){line.p, head});
    buf_printf(b, " [... %zu chars omitted ...] ", line.n - head - tail);
    buf_put(b, str_from(line, line.n - tail));
}

/* One line without its end. Text before a carriage return is overwritten. */
static void clean_line(struct buf *b, struct str line)
{
    AUTO(buf_done) struct buf seen = BUF(TEXT_ROOM);
    size_t n;

    while (line.n > 0 && line.p[line.n - 1] == '\r')
        line.n--;
    for (const char *cr; line.n > 0 && (cr = memchr(line.p, '\r', line.n));)
        line = str_from(line, (size_t)(cr - line.p) + 1);
    while (line.n > 0) {
        if ((n = escape_at(line)) > 0)
            ;
        else if ((n = blob_at(line)) > 0)
            buf_printf(&seen, "[%zu characters that look like base64 left out]", n);
        else if ((n = binary_at(line)) > 0)
            buf_printf(&seen, "[%zu bytes of binary left out]", n);
        else {
            /* Takes a whole word, so that no byte is looked at twice. */
            for (n = 0; n < line.n && is_base64(line.p[n]);)
                n++;
            n = n ? n : 1;
            buf_put(&seen, (struct str){line.p, n});
        }
        line = str_from(line, n);
    }
    put_line(b, buf_str(&seen));
}

void observe_clean(struct buf *ret, struct str text)
{
    AUTO(buf_done) struct buf whole = BUF(TEXT_ROOM);

    if (str_utf8_len(text) != text.n) {
        utf8_put(&whole, text);
        text = buf_str(&whole);
    }
    while (text.n > 0) {
        size_t n = str_line(text);
        clean_line(ret, (struct str){text.p, n});
        if (n < text.n)
            buf_put(ret, STR("\n"));
        text = str_from(text, n < text.n ? n + 1 : n);
    }
}

/* --- cutting --- */

/* The end of the last whole line within n bytes; n itself, at a whole character, when that would
 * leave less than half of it. */
static size_t head_of(struct str s, size_t n)
{
    const char *at = memrchr(s.p, '\n', n);
    size_t lines = at ? (size_t)(at - s.p) + 1 : 0;

    return lines >= n / 2 ? lines : n - utf8_torn((struct str){s.p, n});
}

/* Likewise from the end: the offset of the tail. */
static size_t tail_of(struct str s, size_t n)
{
    size_t from = s.n - n;
    const char *at = memchr(s.p + from, '\n', n);
    size_t line = at ? (size_t)(at - s.p) + 1 : s.n;

    if (s.n - line >= n / 2)
        return line;
    while (from < s.n && ((unsigned char)s.p[from] & 0xc0) == 0x80)
        from++;
    return from;
}

void observe_cut(struct buf *ret, struct str text, size_t max, const char *note)
{
    size_t room = max > 160 ? max - 80 : max / 2, head, tail;

    if (text.n <= max) {
        buf_put(ret, text);
        return;
    }
    head = head_of(text, room / 8 * 5);
    tail = tail_of(text, room / 8 * 3);
    buf_put(ret, (struct str){text.p, head});
    buf_printf(ret, "%s[... %zu chars omitted ...%s]\n",
               head && text.p[head - 1] == '\n' ? "" : "\n", tail - head, note ? note : "");
    buf_put(ret, str_from(text, tail));
}

/* Keeps the end: a traceback ends with its cause. */
static void put_end(struct buf *b, struct str text, size_t max)
{
    size_t from;

    if (text.n <= max) {
        buf_put(b, text);
        return;
    }
    from = tail_of(text, max);
    buf_printf(b, "[... %zu chars omitted ...]\n", from);
    buf_put(b, str_from(text, from));
}

/* --- gathering --- */

struct observation {
    const json_t *outcome;
    const struct outcome_word *word;
    uint64_t run_ms;
    struct buf out, errs, result, error; /* cleaned */
    struct buf notes; /* what the server has to say, such as variables that are gone; a line each */
    json_t *files;    /* owned */
    struct str kind;  /* of the exception */
    struct str message;
};

static void gather_bundle(struct observation *s, const struct event_reader *r)
{
    struct buf *b = r->kind == EVENT_RESULT ? &s->result : &s->out;

    if (r->kind == EVENT_RESULT || !r->image)
        observe_clean(b, r->text);
    if (r->image)
        buf_printf(b, "%s[shown: %s]", b->n ? "\n" : "", r->mime);
    if (b == &s->out && b->n && b->p[b->n - 1] != '\n')
        buf_put(b, STR("\n"));
}

static void gather_error(struct observation *s, const json_t *ev)
{
    const json_t *frames = json_object_get(ev, "frames"), *f;
    size_t i, count = json_array_size(frames);

    s->kind = event_text(ev, "name");
    s->message = event_text(ev, "message");
    buf_clear(&s->error);
    buf_printf(&s->error, "%.*s: ", (int)s->kind.n, s->kind.p);
    observe_clean(&s->error, s->message);
    buf_put(&s->error, STR("\n"));
    json_array_foreach(frames, i, f) {
        struct str file = event_text(f, "file"), fn = event_text(f, "function");
        struct str text = event_text(f, "text");
        bool named = !str_is(fn, "<module>");

        if (count <= FRAMES_PART || i >= count - FRAMES_PART)
            buf_printf(&s->error, "  %.*s line %lld%s%.*s\n  >   %.*s\n", (int)file.n, file.p,
                       (long long)json_num(f, "line"), named ? " in " : "", named ? (int)fn.n : 0,
                       fn.p, (int)text.n, text.p);
    }
}

static void gather_file(struct observation *s, const json_t *ev)
{
    struct str path = event_text(ev, "path"), mime = event_text(ev, "mime");
    json_t *f;

    if (!path.n || json_array_size(s->files) >= FILES_MAX)
        return;
    f = json_pack("{s:O, s:O, s:O, s:I, s:b}", "path", json_object_get(ev, "path"), "change",
                  json_object_get(ev, "change"), "mime", json_object_get(ev, "mime"), "size",
                  (json_int_t)json_num(ev, "size"), "image",
                  mime.n > 6 && memcmp(mime.p, "image/", 6) == 0);
    json_put_str(f, "name", str_base(path, "/"));
    json_put_on(f, "too_large", json_on(ev, "too_large"));
    json_array_append_new(s->files, f);
}

static void gather(struct observation *s, const json_t *events)
{
    struct event_reader r;

    event_reader_init(&r, events);
    r.settles = true;
    while (event_reader_next(&r)) {
        if (r.kind == EVENT_STDOUT || r.kind == EVENT_STDERR)
            observe_clean(r.kind == EVENT_STDOUT ? &s->out : &s->errs, r.text);
        else if (r.kind == EVENT_DISPLAY || r.kind == EVENT_RESULT)
            gather_bundle(s, &r);
        else if (r.kind == EVENT_ERROR)
            gather_error(s, r.event);
        else if (r.kind == EVENT_FILE)
            gather_file(s, r.event);
        else if (r.kind == EVENT_STATUS)
            buf_printf(&s->notes, "%.*s\n", (int)r.text.n, r.text.p);
    }
    event_reader_done(&r);
}

/* --- putting it together --- */

/* An outcome, what the agent calls it, and what the status line says. */
static const struct outcome_word {
    const char *outcome, *status, *line;
} outcomes[] = {
    {"ok",           "ok",          "ok"                            },
    {"raised",       "error",       "error"                         },
    {"timeout",      "timeout",     "timeout"                       },
    {"memory",       "memory",      "killed (memory)"               },
    {"interrupted",  "interrupted", "interrupted"                   },
    {"died",         "died",        "killed (the interpreter ended)"},
    {"session_lost", "lost",        "session lost"                  },
};

static const struct outcome_word *word_of(const json_t *outcome)
{
    size_t i = 0;

    while (i + 1 < COUNT(outcomes) && !json_is(outcome, "status", outcomes[i].outcome))
        i++;
    return &outcomes[i];
}

static bool is(const struct observation *s, const char *status)
{
    return strcmp(s->word->status, status) == 0;
}

static void put_status(struct buf *b, const struct observation *s)
{
    bool denied =
        str_is(s->kind, "ImportError") && str_find(s->message, "not allowed") < s->message.n;

    if (denied && !is(s, "ok"))
        buf_put(b, STR("denied import\n"));
    else if (is(s, "error"))
        buf_printf(b, "error %.*s\n", (int)s->kind.n, s->kind.n ? s->kind.p : "");
    else if (is(s, "timeout"))
        buf_printf(b, "timeout %llus\n", (unsigned long long)(s->run_ms / 1000));
    else
        buf_printf(b, "%s\n", s->word->line);
}

static void put_stream(struct buf *b, const char *name, struct str text, size_t max,
                       const char *note)
{
    if (text.n == 0)
        return;
    buf_printf(b, "%s (%zu chars%s):\n", name, text.n, text.n > max ? ", the middle left out" : "");
    observe_cut(b, text, max, note);
    if (b->p[b->n - 1] != '\n')
        buf_put(b, STR("\n"));
}

static void put_files(struct buf *b, const json_t *files)
{
    const json_t *f;
    size_t i;

    if (json_array_size(files) == 0)
        return;
    buf_put(b, STR("FILES:"));
    json_array_foreach(files, i, f) {
        char size[SIZE_SHOWN], name[NAME_SHOWN];
        bool gone = json_is(f, "change", "deleted");
        const char *sign = gone ? "-" : json_is(f, "change", "created") ? "+" : "~";

        if (i == FILES_PART) {
            buf_printf(b, " and %zu more", json_array_size(files) - i);
            break;
        }
        buf_printf(b, " %s %s", sign, name_show(name, json_str(f, "path")));
        if (!gone)
            buf_printf(b, " (%s%s)%s", json_on(f, "image") ? "image, " : "",
                       size_show(size, (uint64_t)json_num(f, "size")),
                       *sign == '~' ? " changed" : "");
    }
    buf_put(b, STR("\n"));
}

/* One line for each note, with a word before it. */
static void put_notes(struct buf *b, const char *word, const struct observation *s)
{
    AUTO(buf_done) struct buf notes = BUF(TEXT_ROOM);
    struct str text;

    observe_cut(&notes, buf_str(&s->notes), NOTES_PART, NULL);
    for (text = buf_str(&notes); text.n > 0;) {
        size_t n = str_line(text);
        buf_printf(b, "%s: %.*s\n", word, (int)n, text.p);
        text = str_from(text, n < text.n ? n + 1 : n);
    }
}

/* Stdout gets the room that the other parts leave. */
static void put_text(struct buf *b, const struct observation *s, uint64_t run)
{
    struct str line = json_text(json_object_get(s->outcome, "message"));
    AUTO(buf_done) struct buf rest = BUF(TEXT_ROOM);
    char note[48];
    size_t left;

    snprintf(note, sizeof(note), " read_output run=%llu", (unsigned long long)run);
    put_stream(&rest, "STDERR", buf_str(&s->errs), STDERR_PART, note);
    if (s->result.n > 0) {
        buf_put(&rest, STR("RESULT: "));
        observe_cut(&rest, buf_str(&s->result), RESULT_PART, NULL);
        buf_put(&rest, STR("\n"));
    }
    if (s->error.n > 0) {
        buf_put(&rest, STR("ERROR: "));
        put_end(&rest, buf_str(&s->error), ERROR_PART);
    }
    put_files(&rest, s->files);
    buf_put(b, STR("STATUS: "));
    put_status(b, s);
    if (line.n > 0 && !is(s, "ok") && !is(s, "error"))
        buf_printf(b, "%.*s\n", (int)line.n, line.p);
    put_notes(b, "NOTE", s);
    left = b->n + rest.n + 100 < OBSERVATION_MAX ? OBSERVATION_MAX - b->n - rest.n - 100 : 0;
    put_stream(b, "STDOUT", buf_str(&s->out), left, note);
    buf_put(b, buf_str(&rest));
}

/* Ends the line, and leaves one blank. */
static void put_gap(struct buf *b)
{
    buf_put(b, b->p[b->n - 1] == '\n' ? STR("\n") : STR("\n\n"));
}

void observe_quote(struct buf *ret, struct str text)
{
    static const char *const words[] = {
        "--- Round ", "GENERATED CODE:", "STDOUT:", "STDERR:", "ERROR:", "STATUS: ", "INFO: "};

    while (text.n > 0) {
        size_t n = str_line(text);

        for (size_t i = 0; i < COUNT(words); i++)
            if (n >= strlen(words[i]) && memcmp(text.p, words[i], strlen(words[i])) == 0)
                buf_put(ret, STR(" "));
        n = n < text.n ? n + 1 : n;
        buf_put(ret, (struct str){text.p, n});
        text = str_from(text, n);
    }
}

/* A part of the logs: at most max bytes, and no line of it reads as one of ours. */
static void put_part(struct buf *b, const struct buf *text, size_t max)
{
    AUTO(buf_done) struct buf part = BUF(TEXT_ROOM);

    observe_cut(&part, buf_str(text), max, " the execution's record has all of it");
    observe_quote(b, buf_str(&part));
}

static void put_log(struct buf *b, const struct observation *s)
{
    AUTO(buf_done) struct buf error = BUF(TEXT_ROOM);

    put_notes(b, "INFO", s);
    buf_put(b, STR("STDOUT:\n"));
    put_part(b, &s->out, LOG_PART);
    put_part(b, &s->result, LOG_PART);
    put_gap(b);
    if (s->errs.n > 0) {
        buf_put(b, STR("STDERR:\n"));
        put_part(b, &s->errs, LOG_PART);
        put_gap(b);
    }
    if (s->error.n > 0 || !is(s, "ok")) {
        buf_put(b, STR("ERROR:\n"));
        if (!is(s, "error"))
            put_status(b, s);
        put_end(&error, buf_str(&s->error), ERROR_PART);
        observe_quote(b, buf_str(&error));
        put_gap(b);
    }
    buf_printf(b, "STATUS: Execution %s\n", is(s, "ok") ? "successful" : "failed");
}

/* x of "No module named 'x.y'". */
static json_t *missing_module(const struct observation *s)
{
    static const char words[] = "No module named '";
    size_t at = str_find(s->message, words);
    struct str name;
    size_t n = 0;

    if (!str_is(s->kind, "ModuleNotFoundError") || at == s->message.n)
        return NULL;
    name = str_from(s->message, at + sizeof(words) - 1);
    while (n < name.n && name.p[n] != '\'' && name.p[n] != '.')
        n++;
    return n > 0 && n < 100 ? json_stringn_nocheck(name.p, n) : NULL;
}

static json_t *last_line(struct str text)
{
    const char *nl;

    text = str_trim(text);
    nl = text.n ? memrchr(text.p, '\n', text.n) : NULL;
    if (nl)
        text = str_from(text, (size_t)(nl - text.p) + 1);
    return text.n ? line_value(text, 200) : NULL;
}

json_t *observe(const json_t *events, const json_t *outcome, uint64_t run, uint64_t run_ms)
{
    AUTO(buf_done) struct buf text = BUF(TEXT_ROOM);
    AUTO(buf_done) struct buf log = BUF(TEXT_ROOM);
    struct observation s = {.outcome = outcome,
                            .word = word_of(outcome),
                            .run_ms = run_ms,
                            .files = json_array(),
                            .out = BUF(TEXT_ROOM),
                            .errs = BUF(TEXT_ROOM),
                            .notes = BUF(TEXT_ROOM),
                            .result = BUF(TEXT_ROOM),
                            .error = BUF(TEXT_ROOM)};
    struct buf *const parts[] = {&s.out, &s.errs, &s.result, &s.error, &s.notes};
    json_t *v;

    gather(&s, events);
    put_text(&text, &s, run);
    put_log(&log, &s);
    v = json_pack("{s:s, s:o, s:o, s:o, s:b, s:b}", "status", s.word->status, "text",
                  text_value(buf_str(&text)), "log", text_value(buf_str(&log)), "files", s.files,
                  "empty", s.out.n + s.errs.n + s.result.n + s.error.n == 0, "lost",
                  json_on(outcome, "state_lost") || is(&s, "lost"));
    if (s.kind.p)
        json_put_str(v, "kind", s.kind);
    json_object_set_new(v, "module", missing_module(&s));
    json_object_set_new(v, "last", last_line(buf_str(&s.out)));
    for (size_t i = 0; i < COUNT(parts); i++)
        buf_done(parts[i]);
    return v;
}

/* --- pages --- */

json_t *observe_page(const json_t *events, uint64_t offset, uint64_t limit)
{
    AUTO(buf_done) struct buf all = BUF(TEXT_ROOM);
    AUTO(buf_done) struct buf page = BUF(OBSERVATION_MAX + KiB);
    struct event_reader r;
    struct str s;

    event_reader_init(&r, events);
    while (event_reader_next(&r)) {
        if (r.kind == EVENT_STDOUT || r.kind == EVENT_STDERR)
            buf_put(&all, r.text);
        else if (r.kind == EVENT_STATUS)
            buf_printf(&all, "[%.*s]\n", (int)r.text.n, r.text.p);
    }
    event_reader_done(&r);
    limit = limit && limit < OBSERVATION_MAX - 200 ? limit : OBSERVATION_MAX - 200;
    offset = offset < all.n ? offset : all.n;
    s = str_from(buf_str(&all), offset);
    while (s.n > 0 && ((unsigned char)*s.p & 0xc0) == 0x80)
        s = str_from(s, 1);
    s.n = s.n < limit ? s.n : limit;
    s.n -= utf8_torn(s);
    offset = all.n ? (size_t)(s.p - all.p) : 0;
    buf_printf(&page, "chars %zu to %zu of %zu:\n", (size_t)offset, (size_t)offset + s.n, all.n);
    buf_put(&page, s);
    return text_value(buf_str(&page));
}
