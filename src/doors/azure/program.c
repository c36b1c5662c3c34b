/* Parses the code of a request: Python, a line for the shell, or a list of arguments. */
#include "doors/azure/azure_int.h"

#include <stdlib.h>

#define LINE_MAX_BYTES (32 * MiB)

struct str azure_tool_name(enum exec_kind kind)
{
    return kind == EXEC_COMMAND ? STR("azure_shell") : STR("azure_python");
}

/* --- words for the shell --- */

/* In single quotes, where the shell changes nothing. */
static void put_quoted(struct buf *b, struct str s)
{
    buf_put(b, STR("'"));
    while (s.n > 0) {
        const char *quote = memchr(s.p, '\'', s.n);
        size_t n = quote ? (size_t)(quote - s.p) : s.n;
        buf_put(b, (struct str){s.p, n});
        if (quote)
            buf_put(b, STR("'\\''"));
        s = (struct str){s.p + n + (quote ? 1 : 0), s.n - n - (quote ? 1 : 0)};
    }
    buf_put(b, STR("'"));
}

char *words_quote(const json_t *words)
{
    AUTO(buf_done) struct buf b = BUF(LINE_MAX_BYTES);
    char *line = NULL;

    if (!json_is_array(words) || json_array_size(words) == 0 ||
        json_array_size(words) > ARGUMENTS_MAX)
        return NULL;
    for (size_t i = 0; i < json_array_size(words); i++) {
        struct str word = json_view(json_array_get(words, i));
        if (!word.p)
            break;
        if (i > 0)
            buf_put(&b, STR(" "));
        put_quoted(&b, word);
        if (i + 1 == json_array_size(words))
            line = mem_strndup(buf_str(&b));
    }
    return line;
}

/* The input goes as base64 in a here-document, which ends the line that begins it. */
static char *with_input(char *line, struct str input)
{
    json_t *coded = record_base64(input);
    AUTO(buf_done) struct buf b = BUF(LINE_MAX_BYTES);

    buf_put(&b, STR("base64 -d <<'end of input' | bash -c "));
    put_quoted(&b, str_of(line));
    buf_put(&b, STR("\n"));
    buf_put(&b, json_view(coded));
    buf_put(&b, STR("\nend of input\n"));
    free(line);
    line = mem_strndup(buf_str(&b));
    json_decref(coded);
    return line;
}

static char *by_sh(char *line)
{
    AUTO(buf_done) struct buf b = BUF(LINE_MAX_BYTES);

    buf_put(&b, STR("exec sh -c "));
    put_quoted(&b, str_of(line));
    free(line);
    line = mem_strndup(buf_str(&b));
    return line;
}

static bool read_command(struct azure_request *v, const json_t *props, struct program *ret)
{
    const json_t *words = json_nocase(props, "execCommandAndArgs");
    struct str line = json_view(json_nocase(props, "shellCommand"));
    struct str input = json_view(json_nocase(props, "stdin"));
    struct str shell = json_view(json_nocase(props, "shellType"));

    if (!shell.p)
        shell = request_header(v->r, "x-shell-type");
    if (shell.n && !str_nocase(shell, STR("bash")) && !str_nocase(shell, STR("sh"))) {
        azure_invalid(v, "shellType", "shellType is bash or sh");
        return false;
    }
    if (json_is_null(words))
        words = NULL;
    if (words && line.p) {
        azure_invalid(v, "shellCommand", "give shellCommand or execCommandAndArgs, not both");
        return false;
    }
    ret->kind = EXEC_COMMAND;
    ret->code = words ? words_quote(words) : mem_strndup(line);
    if (!ret->code) {
        azure_invalid(v, "execCommandAndArgs", "a list of 1 to %d strings is needed",
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

static bool read_code(struct azure_request *v, const json_t *props, struct program *ret)
{
    struct str type = json_view(json_nocase(props, "codeInputType"));
    struct str code = json_view(json_nocase(props, "code"));
    size_t n = 0;

    if (!code.p)
        code = json_view(json_nocase(props, "pythonCode"));
    if (!code.p) {
        azure_invalid(v, "code", "the code is missing");
        return false;
    }
    ret->kind = EXEC_CELL;
    if (!type.p || str_nocase(type, STR("Inline")) || str_nocase(type, STR("InlineText"))) {
        ret->code = mem_strndup(code);
        return true;
    }
    if (!str_nocase(type, STR("InlineBase64"))) {
        azure_invalid(v, "codeInputType", "codeInputType is Inline, InlineText or InlineBase64");
        return false;
    }
    ret->code = mem_zalloc(code.n / 4 * 3 + 1);
    if (base64_decode(code, ret->code, &n) && !memchr(ret->code, '\0', n))
        return true;
    free(take_ptr(&ret->code));
    azure_invalid(v, "code", "the code is not base64 of a text");
    return false;
}

bool program_is_command(const json_t *props)
{
    const json_t *line = json_nocase(props, "shellCommand");
    const json_t *words = json_nocase(props, "execCommandAndArgs");

    return (line && !json_is_null(line)) || (words && !json_is_null(words));
}

bool program_read(struct azure_request *v, const json_t *props, struct program *ret)
{
    const json_t *seconds = json_nocase(props, "timeoutInSeconds");

    *ret = (struct program){0};
    if (seconds && !json_is_null(seconds) &&
        (!json_is_number(seconds) || json_number_value(seconds) <= 0)) {
        azure_invalid(v, "timeoutInSeconds", "timeoutInSeconds is a number above 0");
        return false;
    }
    ret->wall_ms = json_ms(seconds);
    return program_is_command(props) ? read_command(v, props, ret) : read_code(v, props, ret);
}
