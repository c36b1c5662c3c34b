/* What is to run, as a client wrote it: Python, a line for the shell, or a list of words. */
#include "doors/azure/azure_int.h"

#include <stdlib.h>

#define LINE_MAX_BYTES (32 * MiB)

/* --- words for the shell --- */

/* In single quotes, where the shell changes nothing. */
static void put_quoted(struct buf *b, struct str s)
{
    struct err e;

    (void)!buf_put(b, STR("'"), &e);
    while (s.n > 0) {
        const char *quote = memchr(s.p, '\'', s.n);
        size_t n = quote ? (size_t)(quote - s.p) : s.n;
        (void)!buf_put(b, (struct str){s.p, n}, &e);
        if (quote)
            (void)!buf_put(b, STR("'\\''"), &e);
        s = (struct str){s.p + n + (quote ? 1 : 0), s.n - n - (quote ? 1 : 0)};
    }
    (void)!buf_put(b, STR("'"), &e);
}

char *words_quote(const json_t *words)
{
    struct buf b;
    struct err e;
    char *line = NULL;

    if (!json_is_array(words) || json_array_size(words) == 0 ||
        json_array_size(words) > ARGUMENTS_MAX)
        return NULL;
    buf_init(&b, LINE_MAX_BYTES);
    for (size_t i = 0; i < json_array_size(words); i++) {
        struct str word = json_view(json_array_get(words, i));
        if (!word.p)
            break;
        if (i > 0)
            (void)!buf_put(&b, STR(" "), &e);
        put_quoted(&b, word);
        if (i + 1 == json_array_size(words))
            line = mem_strndup(buf_str(&b));
    }
    buf_done(&b);
    return line;
}

/* The input goes as base64 in a here-document, which ends the line that begins it. */
static char *with_input(char *line, struct str input)
{
    json_t *coded = record_base64(input);
    struct buf b;
    struct err e;

    buf_init(&b, LINE_MAX_BYTES);
    (void)!buf_put(&b, STR("base64 -d <<'end of input' | bash -c "), &e);
    put_quoted(&b, str_of(line));
    (void)!buf_put(&b, STR("\n"), &e);
    (void)!buf_put(&b, json_view(coded), &e);
    (void)!buf_put(&b, STR("\nend of input\n"), &e);
    free(line);
    line = mem_strndup(buf_str(&b));
    buf_done(&b);
    json_decref(coded);
    return line;
}

static char *by_sh(char *line)
{
    struct buf b;
    struct err e;

    buf_init(&b, LINE_MAX_BYTES);
    (void)!buf_put(&b, STR("exec sh -c "), &e);
    put_quoted(&b, str_of(line));
    free(line);
    line = mem_strndup(buf_str(&b));
    buf_done(&b);
    return line;
}

static bool read_command(struct visit *v, const json_t *props, struct program *ret)
{
    const json_t *words = json_nocase(props, "execCommandAndArgs");
    struct str line = json_view(json_nocase(props, "shellCommand"));
    struct str input = json_view(json_nocase(props, "stdin"));
    struct str shell = json_view(json_nocase(props, "shellType"));

    if (!shell.p)
        shell = request_header(v->r, "x-shell-type");
    if (shell.n && !str_nocase(shell, STR("bash")) && !str_nocase(shell, STR("sh"))) {
        visit_invalid(v, "shellType", "shellType is bash or sh");
        return false;
    }
    if (words && line.p) {
        visit_invalid(v, "shellCommand", "give shellCommand or execCommandAndArgs, not both");
        return false;
    }
    ret->kind = EXEC_COMMAND;
    ret->code = words ? words_quote(words) : mem_strndup(line);
    if (!ret->code) {
        visit_invalid(v, "execCommandAndArgs", "a list of 1 to %d strings is needed",
                      ARGUMENTS_MAX);
        return false;
    }
    if (line.p && str_nocase(shell, STR("sh")))
        ret->code = by_sh(ret->code);
    if (input.n > 0)
        ret->code = with_input(ret->code, input);
    return true;
}

/* --- Python --- */

static bool read_code(struct visit *v, const json_t *props, struct program *ret)
{
    struct str type = json_view(json_nocase(props, "codeInputType"));
    struct str code = json_view(json_nocase(props, "code"));
    size_t n = 0;

    if (!code.p)
        code = json_view(json_nocase(props, "pythonCode"));
    if (!code.p) {
        visit_invalid(v, "code", "the code is missing");
        return false;
    }
    ret->kind = EXEC_CELL;
    if (!type.p || str_nocase(type, STR("Inline")) || str_nocase(type, STR("InlineText"))) {
        ret->code = mem_strndup(code);
        return true;
    }
    if (!str_nocase(type, STR("InlineBase64"))) {
        visit_invalid(v, "codeInputType", "codeInputType is Inline, InlineText or InlineBase64");
        return false;
    }
    ret->code = mem_zalloc(code.n / 4 * 3 + 1);
    if (base64_decode(code, ret->code, &n) && !memchr(ret->code, '\0', n))
        return true;
    free(take_ptr(&ret->code));
    visit_invalid(v, "code", "the code is not base64 of a text");
    return false;
}

bool program_read(struct visit *v, const json_t *props, struct program *ret)
{
    bool command = json_nocase(props, "shellCommand") || json_nocase(props, "execCommandAndArgs");
    const json_t *seconds = json_nocase(props, "timeoutInSeconds");

    *ret = (struct program){0};
    if (seconds && !json_is_null(seconds) &&
        (!json_is_number(seconds) || json_number_value(seconds) <= 0)) {
        visit_invalid(v, "timeoutInSeconds", "timeoutInSeconds is a number above 0");
        return false;
    }
    ret->wall_ms = json_ms(seconds);
    return command ? read_command(v, props, ret) : read_code(v, props, ret);
}
