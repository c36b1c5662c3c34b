/* The report of doctor: aligned text that fits 80 columns, or one JSON document. */
#include "cli/doctor.h"

#include "cli/cli_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/utsname.h>
#include <unistd.h>

#define WIDTH     80
#define NAME_AT   11
#define DETAIL_AT 30
#define TEXT_MAX  (8 * KiB)

/* --- text --- */

static const char *const colour_of[] = {
    [LAYER_OK] = "\033[32m", [LAYER_WEAKER] = "\033[33m", [LAYER_MISSING] = "\033[31m"};

static void emit(struct report *r, const struct buf *text)
{
    if (!r->failed.kind && fd_write_all(STDOUT_FILENO, buf_str(text), &r->failed) < 0)
        log_debug("doctor: %s", r->failed.text);
}

static bool is_gap(char c)
{
    return (c >= 0 && c <= ' ') || c == 0x7f; /* what would move the cursor counts as a space */
}

/* Words of text, broken so that the lines lie between columns `indent` and WIDTH. `at`: the column
 * reached already. */
static void put_wrapped(struct buf *b, const char *text, size_t indent, size_t at)
{
    bool first = true;

    while (*text) {
        struct str word = {text, 0};
        while (word.p[word.n] && !is_gap(word.p[word.n]))
            word.n++;
        text += word.n;
        while (*text && is_gap(*text))
            text++;
        if (!first && at + 1 + utf8_count(word) > WIDTH) {
            buf_printf(b, "\n%*s", (int)indent, "");
            at = indent;
            first = true;
        }
        buf_printf(b, "%s%.*s", first ? "" : " ", (int)word.n, word.p);
        at += utf8_count(word) + !first;
        first = false;
    }
    buf_printf(b, "\n");
}

static void put_note(struct buf *b, const char *label, const char *text)
{
    if (!text || !*text)
        return;
    buf_printf(b, "%*s%s", DETAIL_AT, "", label);
    put_wrapped(b, text, DETAIL_AT, DETAIL_AT + strlen(label));
}

static void show_row(struct report *r, const struct report_row *row)
{
    const char *on = r->colour ? colour_of[row->state] : "";
    const char *off = r->colour ? "\033[0m" : "";
    AUTO(buf_done) struct buf b = BUF(TEXT_MAX);

    if (!r->section || strcmp(r->section, row->section) != 0)
        buf_printf(&b, "\n%s\n", row->section);
    r->section = row->section;
    buf_printf(&b, "  %s%-*s%s%-*s", on, NAME_AT - 2, layer_state_name(row->state), off,
               DETAIL_AT - NAME_AT, row->name);
    put_wrapped(&b, row->detail, DETAIL_AT, DETAIL_AT);
    if (row->state != LAYER_OK) {
        put_note(&b, "Cost: ", row->cost);
        put_note(&b, "Help: ", row->remedy);
    }
    emit(r, &b);
}

/* --- JSON --- */

/* Paths and messages of the system may hold any bytes. */
static json_t *text_value(const char *text)
{
    AUTO(buf_done) struct buf clean = BUF(TEXT_MAX);
    json_t *v;

    if (utf8_put(&clean, str_of(text)) < 0)
        clean.n = 0;
    v = json_stringn_nocheck(clean.n ? clean.p : "", clean.n);
    return v;
}

static json_t *row_value(const struct report_row *row)
{
    bool bad = row->state != LAYER_OK;
    json_t *v = json_object();

    json_object_set_new(v, "section", text_value(row->section));
    json_object_set_new(v, "name", text_value(row->name));
    json_object_set_new(v, "state", text_value(layer_state_name(row->state)));
    json_object_set_new(v, "floor", json_boolean(row->floor));
    json_object_set_new(v, "detail", text_value(row->detail));
    json_object_set_new(v, "cost", text_value(bad ? row->cost : ""));
    json_object_set_new(v, "remedy", text_value(bad ? row->remedy : ""));
    return v;
}

/* --- both --- */

static bool wants_colour(void)
{
    const char *term = getenv("TERM"), *no = getenv("NO_COLOR");

    return isatty(STDOUT_FILENO) && !(no && *no) && !(term && strcmp(term, "dumb") == 0);
}

static void begin_text(struct report *r, const struct utsname *host)
{
    AUTO(buf_done) struct buf b = BUF(TEXT_MAX);

    buf_printf(&b, "retort %s on %s %s, %s, ", RETORT_VERSION, host->sysname, host->release,
               host->machine);
    buf_printf(&b, geteuid() == 0 ? "as root\n" : "as user %u\n", (unsigned)geteuid());
    emit(r, &b);
}

void report_begin(struct report *r, bool json)
{
    struct utsname host = {0};

    uname(&host);
    *r = (struct report){.json = json, .colour = !json && wants_colour()};
    if (!json) {
        begin_text(r, &host);
        return;
    }
    r->root = json_object();
    r->rows = json_array();
    json_object_set_new(r->root, "version", json_integer(1));
    report_fact(r, "retort", text_value(RETORT_VERSION));
    report_fact(r, "kernel", text_value(host.release));
    report_fact(r, "machine", text_value(host.machine));
    report_fact(r, "uid", json_integer((json_int_t)geteuid()));
    report_fact(r, "rows", r->rows);
}

void report_row(struct report *r, const struct report_row *row)
{
    if (r->json)
        json_array_append_new(r->rows, row_value(row));
    else
        show_row(r, row);
}

void report_fact(struct report *r, const char *key, json_t *value)
{
    if (r->json)
        json_object_set_new(r->root, key, value);
    else
        json_decref(value);
}

static void end_json(struct report *r, const char *verdict, int status)
{
    AUTO_FREE char *text = NULL;
    AUTO(buf_done) struct buf whole = BUF(256 * KiB);

    report_fact(r, "verdict", text_value(verdict));
    report_fact(r, "exit", json_integer(status));
    text = json_dumps(r->root, JSON_COMPACT | JSON_REAL_PRECISION(6));
    if (!text || buf_put(&whole, str_of(text)) < 0 || buf_put(&whole, STR("\n")) < 0)
        err_set(&r->failed, ERR_HOST, "the document does not fit into memory");
    emit(r, &whole);
}

static void end_text(struct report *r, const char *verdict, int status)
{
    static const char label[] = "verdict: ";
    AUTO(buf_done) struct buf b = BUF(TEXT_MAX);

    buf_printf(&b, "\n%s%s%s",
               r->colour ? colour_of[status == EXIT_OK ? LAYER_OK : LAYER_MISSING] : "", label,
               r->colour ? "\033[0m" : "");
    put_wrapped(&b, verdict, sizeof(label) - 1, sizeof(label) - 1);
    emit(r, &b);
}

int report_end(struct report *r, const char *verdict, int status)
{
    if (r->json)
        end_json(r, verdict, status);
    else
        end_text(r, verdict, status);
    json_decref(r->root);
    if (!r->failed.kind)
        return status;
    return stdout_failed(&r->failed);
}
