/*
 * qwen/parse_code: finds the code in a model's text: plain text, JSON, JSON5, fenced blocks, <code>
 * tags, ReAct and <tool_call> calls.
 *
 * Touches: memory. Never touches: anything else. Neither the text nor the code can be trusted.
 *
 * parse_code() for a whole text, parse_code_value() for the value of a "code" member.
 */
#pragma once

#include "base/json.h"

struct parsed_code {
    char *code; /* owned, with a NUL; may be blank */
    size_t code_n, room;
    json_t *more;     /* owned, or NULL: the object that the code was a member of */
    unsigned blocks;  /* number of fenced blocks that were joined */
    const char *tool; /* static: the tool of ours that the text names; or NULL */
};

/* Never fails: a text in none of the known forms is code. */
void parse_code(struct str text, struct parsed_code *ret);
/* For text that was a JSON string: only a wrapping around all of it is taken off. */
void parse_code_value(struct str text, struct parsed_code *ret);
void parsed_code_done(struct parsed_code *p);
