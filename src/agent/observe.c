/*
 * What came of a run, as a model and a reader of the logs see it: a status, then what was
 * printed, the value, the error and the files. What the code said is cleaned and cut; the
 * whole of it stays on the execution's record, where read_output finds it.
 */
#include "agent/agent_int.h"
#include "written/written.h"

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
#define FILES_PART  20

static void put(struct buf *b, struct str s)
{
    struct err e;

    (void)!buf_put(b, s, &e); /* what does not fit is left out: the engine keeps less */
}

#define say(b, ...)                                                                                \
    do {                                                                                           \
        struct err say_e_;                                                                         \
        (void)!buf_printf(b, &say_e_, __VA_ARGS__);                                                \
    } while (0)

/* --- cleaning --- */

/* A terminal's escape sequence at s: its length, or 0. */
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

/* Mixed as random bytes are: a row of equal signs or dashes is a line somebody has drawn. */
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

/* Bytes that are no text, or what has been put in their place. */
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
        put(b, line);
        return;
    }
    head -= utf8_torn((struct str){line.p, head});
    while (tail < line.n && ((unsigned char)line.p[line.n - tail] & 0xc0) == 0x80)
        tail--;
    put(b, (struct str){line.p, head});
    say(b, " [... %zu chars omitted ...] ", line.n - head - tail);
    put(b, str_from(line, line.n - tail));
}

/* One line without its end: what a carriage return has gone over is not seen. */
static void clean_line(struct buf *b, struct str line)
{
    struct buf seen;
    size_t n;

    while (line.n > 0 && line.p[line.n - 1] == '\r')
        line.n--;
    for (const char *cr; line.n > 0 && (cr = memchr(line.p, '\r', line.n));)
        line = str_from(line, (size_t)(cr - line.p) + 1);
    buf_init(&seen, TEXT_ROOM);
    while (line.n > 0) {
        if ((n = escape_at(line)) > 0)
            ;
        else if ((n = blob_at(line)) > 0)
            say(&seen, "[%zu characters that look like base64 left out]", n);
        else if ((n = binary_at(line)) > 0)
            say(&seen, "[%zu bytes of binary left out]", n);
        else {
            /* A word is taken whole, so that no part of it is looked at twice. */
            for (n = 0; n < line.n && is_base64(line.p[n]);)
                n++;
            n = n ? n : 1;
            put(&seen, (struct str){line.p, n});
        }
        line = str_from(line, n);
    }
    put_line(b, buf_str(&seen));
    buf_done(&seen);
}

void observe_clean(struct buf *ret, struct str text)
{
    struct buf whole;

    buf_init(&whole, TEXT_ROOM);
    if (str_utf8_len(text) != text.n) {
        struct err e;
        (void)!utf8_put(&whole, text, &e);
        text = buf_str(&whole);
    }
    while (text.n > 0) {
        size_t n = str_line(text);
        clean_line(ret, (struct str){text.p, n});
        if (n < text.n)
            put(ret, STR("\n"));
        text = str_from(text, n < text.n ? n + 1 : n);
    }
    buf_done(&whole);
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

/* Likewise from the end: where the tail begins. */
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
        put(ret, text);
        return;
    }
    head = head_of(text, room / 8 * 5);
    tail = tail_of(text, room / 8 * 3);
    put(ret, (struct str){text.p, head});
    say(ret, "%s[... %zu chars omitted ...%s]\n", head && text.p[head - 1] == '\n' ? "" : "\n",
        tail - head, note ? note : "");
    put(ret, str_from(text, tail));
}

/* The end is what a traceback is read for. */
static void put_end(struct buf *b, struct str text, size_t max)
{
    size_t from;

    if (text.n <= max) {
        put(b, text);
        return;
    }
    from = tail_of(text, max);
    say(b, "[... %zu chars omitted ...]\n", from);
    put(b, str_from(text, from));
}

/* --- what a run has said --- */

struct sight {
    const json_t *events, *outcome;
    struct buf out, errs, result, error; /* cleaned */
    json_t *files;                       /* owned */
    struct str kind;                     /* of the exception */
    struct str message;
};

static void gather_stream(struct buf *b, const json_t *ev)
{
    observe_clean(b, json_str(ev, "text"));
}

static void gather_bundle(struct sight *s, const json_t *ev)
{
    const json_t *data = json_object_get(ev, "data");
    struct str text = json_str(data, "text/plain");
    struct buf *b = json_is(ev, "type", "result") ? &s->result : &s->out;
    const char *mime;
    json_t *v;

    if (b == &s->result || json_object_size(data) == 1)
        observe_clean(b, text);
    json_object_foreach((json_t *)data, mime, v)
    {
        if (strncmp(mime, "image/", 6) == 0)
            say(b, "%s[shown: %s]", b->n ? "\n" : "", mime);
    }
    if (b == &s->out && b->n && b->p[b->n - 1] != '\n')
        put(b, STR("\n"));
}

static void gather_error(struct sight *s, const json_t *ev)
{
    const json_t *frames = json_object_get(ev, "frames"), *f;
    size_t i, count = json_array_size(frames);

    s->kind = json_str(ev, "name");
    s->message = json_str(ev, "message");
    s->error.n = 0;
    say(&s->error, "%.*s: ", (int)s->kind.n, s->kind.p ? s->kind.p : "");
    observe_clean(&s->error, s->message);
    put(&s->error, STR("\n"));
    json_array_foreach(frames, i, f)
    {
        struct str file = json_str(f, "file"), fn = json_str(f, "function");
        struct str text = json_str(f, "text");

        if (count > FRAMES_PART && i < count - FRAMES_PART)
            continue;
        say(&s->error, "  %.*s line %lld%s%.*s\n  >   %.*s\n", (int)file.n, file.p ? file.p : "",
            (long long)json_num(f, "line"), str_is(fn, "<module>") ? "" : " in ",
            str_is(fn, "<module>") ? 0 : (int)fn.n, fn.p ? fn.p : "", (int)text.n,
            text.p ? text.p : "");
    }
}

static void gather_file(struct sight *s, const json_t *ev)
{
    struct str path = json_str(ev, "path"), mime = json_str(ev, "mime");
    const char *slash = path.n ? memrchr(path.p, '/', path.n) : NULL;
    struct str name = slash ? str_from(path, (size_t)(slash - path.p) + 1) : path;
    bool image = mime.n > 6 && memcmp(mime.p, "image/", 6) == 0;
    json_t *f;

    if (!path.n || json_array_size(s->files) >= FILES_MAX)
        return;
    f = json_pack("{s:O, s:O, s:O, s:I, s:b}", "path", json_object_get(ev, "path"), "change",
                  json_object_get(ev, "change"), "mime", json_object_get(ev, "mime"), "size",
                  (json_int_t)json_num(ev, "size"), "image", image);
    json_put_str(f, "name", name);
    json_put_on(f, "too_large", json_on(ev, "too_large"));
    json_array_append_new(s->files, f);
}

static void gather(struct sight *s)
{
    const json_t *ev;
    size_t i;

    json_array_foreach(s->events, i, ev)
    {
        if (json_is(ev, "type", "stdout"))
            gather_stream(&s->out, ev);
        else if (json_is(ev, "type", "stderr"))
            gather_stream(&s->errs, ev);
        else if (json_is(ev, "type", "display") || json_is(ev, "type", "result"))
            gather_bundle(s, ev);
        else if (json_is(ev, "type", "error"))
            gather_error(s, ev);
        else if (json_is(ev, "type", "file"))
            gather_file(s, ev);
    }
}

/* --- putting it together --- */

/* An outcome's name, ours, and how the status line puts it. */
static const struct {
    const char *outcome, *status;
} statuses[] = {
    {"ok",           "ok"         },
    {"raised",       "error"      },
    {"timeout",      "timeout"    },
    {"memory",       "memory"     },
    {"interrupted",  "interrupted"},
    {"died",         "died"       },
    {"session_lost", "lost"       },
};

static const char *status_of(const json_t *outcome)
{
    for (size_t i = 0; i < COUNT(statuses); i++)
        if (json_is(outcome, "status", statuses[i].outcome))
            return statuses[i].status;
    return "lost";
}

static bool is_denied(const struct sight *s)
{
    return str_is(s->kind, "ImportError") && str_find(s->message, "not allowed") < s->message.n;
}

static void put_status(struct buf *b, const struct sight *s, const char *status, uint64_t run_ms)
{
    if (strcmp(status, "ok") == 0)
        say(b, "ok");
    else if (is_denied(s))
        say(b, "denied import");
    else if (strcmp(status, "error") == 0)
        say(b, "error %.*s", (int)s->kind.n, s->kind.p ? s->kind.p : "");
    else if (strcmp(status, "timeout") == 0)
        say(b, "timeout %llus", (unsigned long long)(run_ms / 1000));
    else if (strcmp(status, "memory") == 0)
        say(b, "killed (memory)");
    else if (strcmp(status, "died") == 0)
        say(b, "killed (the interpreter ended)");
    else if (strcmp(status, "interrupted") == 0)
        say(b, "interrupted");
    else
        say(b, "session lost");
}

static void put_stream(struct buf *b, const char *name, struct str text, size_t max,
                       const char *note)
{
    if (text.n == 0)
        return;
    say(b, "%s (%zu chars%s):\n", name, text.n, text.n > max ? ", the middle left out" : "");
    observe_cut(b, text, max, note);
    if (b->p[b->n - 1] != '\n')
        put(b, STR("\n"));
}

static void put_files(struct buf *b, const json_t *files)
{
    const json_t *f;
    size_t i;

    if (json_array_size(files) == 0)
        return;
    put(b, STR("FILES:"));
    json_array_foreach(files, i, f)
    {
        char size[SIZE_SHOWN], name[NAME_SHOWN];
        bool gone = json_is(f, "change", "deleted");
        const char *sign = gone ? "-" : json_is(f, "change", "created") ? "+" : "~";

        if (i == FILES_PART) {
            say(b, " and %zu more", json_array_size(files) - i);
            break;
        }
        say(b, " %s %s", sign, name_show(name, json_str(f, "path")));
        if (!gone)
            say(b, " (%s%s)%s", json_on(f, "image") ? "image, " : "",
                size_show(size, (uint64_t)json_num(f, "size")), *sign == '~' ? " changed" : "");
    }
    put(b, STR("\n"));
}

/* What is beside stdout takes its part first; stdout has the rest of what a model may see. */
static void put_text(struct buf *b, const struct sight *s, const char *status, uint64_t run,
                     uint64_t run_ms)
{
    struct str line = json_str(s->outcome, "message");
    char note[48];
    struct buf rest;
    size_t left;

    snprintf(note, sizeof(note), " read_output run=%llu", (unsigned long long)run);
    buf_init(&rest, TEXT_ROOM);
    put_stream(&rest, "STDERR", buf_str(&s->errs), STDERR_PART, note);
    if (s->result.n > 0) {
        put(&rest, STR("RESULT: "));
        observe_cut(&rest, buf_str(&s->result), RESULT_PART, NULL);
        put(&rest, STR("\n"));
    }
    if (s->error.n > 0) {
        put(&rest, STR("ERROR: "));
        put_end(&rest, buf_str(&s->error), ERROR_PART);
    }
    put_files(&rest, s->files);
    put(b, STR("STATUS: "));
    put_status(b, s, status, run_ms);
    put(b, STR("\n"));
    if (line.n > 0 && strcmp(status, "ok") != 0 && strcmp(status, "error") != 0)
        say(b, "%.*s\n", (int)line.n, line.p);
    left = b->n + rest.n + 100 < OBSERVATION_MAX ? OBSERVATION_MAX - b->n - rest.n - 100 : 0;
    put_stream(b, "STDOUT", buf_str(&s->out), left, note);
    put(b, buf_str(&rest));
    buf_done(&rest);
}

static void put_log(struct buf *b, const struct sight *s, const char *status, uint64_t run_ms)
{
    bool good = strcmp(status, "ok") == 0;

    put(b, STR("STDOUT:\n"));
    observe_cut(b, buf_str(&s->out), OBSERVATION_MAX, NULL);
    if (s->result.n > 0)
        observe_cut(b, buf_str(&s->result), RESULT_PART, NULL);
    if (b->p[b->n - 1] != '\n')
        put(b, STR("\n"));
    put(b, STR("\n"));
    if (s->errs.n > 0) {
        put(b, STR("STDERR:\n"));
        observe_cut(b, buf_str(&s->errs), STDERR_PART, NULL);
        put(b, b->p[b->n - 1] == '\n' ? STR("\n") : STR("\n\n"));
    }
    if (s->error.n > 0 || !good) {
        put(b, STR("ERROR:\n"));
        if (strcmp(status, "error") != 0) {
            put_status(b, s, status, run_ms);
            put(b, STR("\n"));
        }
        put_end(b, buf_str(&s->error), ERROR_PART);
        put(b, b->p[b->n - 1] == '\n' ? STR("\n") : STR("\n\n"));
    }
    put(b, good ? STR("STATUS: Execution successful\n") : STR("STATUS: Execution failed\n"));
}

/* No module named 'x.y': x. */
static json_t *missing_module(const struct sight *s)
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

static json_t *value_of(const struct buf *b)
{
    return json_stringn_nocheck(b->n ? b->p : "", str_utf8_len(buf_str(b)));
}

json_t *observe(const json_t *events, const json_t *outcome, uint64_t run, uint64_t run_ms)
{
    struct sight s = {.events = events, .outcome = outcome, .files = json_array()};
    struct buf *const parts[] = {&s.out, &s.errs, &s.result, &s.error};
    const char *status = status_of(outcome);
    struct buf text, log;
    json_t *v;

    for (size_t i = 0; i < COUNT(parts); i++)
        buf_init(parts[i], TEXT_ROOM);
    buf_init(&text, TEXT_ROOM);
    buf_init(&log, TEXT_ROOM);
    gather(&s);
    put_text(&text, &s, status, run, run_ms);
    put_log(&log, &s, status, run_ms);
    v = json_pack("{s:s, s:o, s:o, s:o, s:b, s:b}", "status", status, "text", value_of(&text),
                  "log", value_of(&log), "files", s.files, "empty",
                  s.out.n + s.errs.n + s.result.n + s.error.n == 0, "lost",
                  json_on(outcome, "state_lost") || strcmp(status, "lost") == 0);
    if (s.kind.p)
        json_put_str(v, "kind", s.kind);
    json_object_set_new(v, "module", missing_module(&s));
    json_object_set_new(v, "last", last_line(buf_str(&s.out)));
    for (size_t i = 0; i < COUNT(parts); i++)
        buf_done(parts[i]);
    buf_done(&text);
    buf_done(&log);
    return v;
}

/* --- pages --- */

json_t *observe_page(const json_t *events, uint64_t offset, uint64_t limit)
{
    struct buf all, page;
    const json_t *ev;
    struct str s;
    size_t i;
    json_t *v;

    buf_init(&all, TEXT_ROOM);
    buf_init(&page, OBSERVATION_MAX + KiB);
    json_array_foreach(events, i, ev)
    {
        if (json_is(ev, "type", "stdout") || json_is(ev, "type", "stderr"))
            put(&all, json_str(ev, "text"));
        else if (json_is(ev, "type", "status"))
            say(&all, "[%s]\n", json_str(ev, "text").p ? json_str(ev, "text").p : "");
    }
    limit = limit && limit < OBSERVATION_MAX - 200 ? limit : OBSERVATION_MAX - 200;
    offset = offset < all.n ? offset : all.n;
    s = str_from(buf_str(&all), offset);
    while (s.n > 0 && ((unsigned char)*s.p & 0xc0) == 0x80)
        s = str_from(s, 1);
    s.n = s.n < limit ? s.n : limit;
    s.n -= utf8_torn(s);
    say(&page, "chars %zu to %zu of %zu:\n", (size_t)(all.n ? s.p - all.p : 0),
        (size_t)(all.n ? s.p - all.p : 0) + s.n, all.n);
    put(&page, s);
    v = value_of(&page);
    buf_done(&all);
    buf_done(&page);
    return v;
}
