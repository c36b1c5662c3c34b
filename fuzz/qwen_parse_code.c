/*
 * What a model has written, made into code: whatever it is, code comes out of it, no
 * longer than what went in, and text where text went in.
 *
 * links: src/lenient/fences.c src/lenient/json5.c src/lenient/python_strings.c
 * links: src/doors/qwen/parse_code.c
 */
#include "doors/qwen/parse_code.h"
#include "lenient/lenient.h"

#include "support/fuzz.h"

static void look(struct str text, void (*read)(struct str text, struct parsed_code *ret))
{
    struct parsed_code p;

    read(text, &p);
    EXPECT(p.code && p.code[p.code_n] == '\0');
    EXPECT(p.code_n <= 2 * text.n + 2); /* blocks are joined by a blank line */
    if (str_utf8_len(text) == text.n)
        EXPECT(str_utf8_len((struct str){p.code, p.code_n}) == p.code_n);
    EXPECT(!p.more || json_is_object(p.more));
    parsed_code_done(&p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO_FREE char *copy = malloc(size + 1); /* so that a read past its end is seen */
    struct str text = {copy, size};
    size_t n;

    memcpy(copy, data, size);
    look(text, parse_code);
    look(text, parse_code_value);
    json_decref(json5_read(text));
    json_t *v = json5_read_first(text, &n);
    EXPECT(n <= size);
    json_decref(v);
    return 0;
}
