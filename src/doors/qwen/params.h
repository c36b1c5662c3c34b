/*
 * qwen/params: what a model has written, made into code. Plain text, JSON, JSON5, fenced
 * blocks, <code> tags, calls of the ReAct and <tool_call> kinds.
 *
 * Touches: memory. Never touches: anything else; its input is a stranger's, and so is
 * every byte that comes out.
 *
 * params_read() for a whole text, params_code() for the value of a "code" member.
 */
#pragma once

#include "base/base.h"

#include <jansson.h>

struct written {
    char *code; /* owned, with a NUL: what is to run; may be blank */
    size_t code_n, room;
    json_t *more;     /* owned, or NULL: the object that the code was a member of */
    unsigned blocks;  /* fenced blocks that were joined; 0: there were none */
    const char *tool; /* static: which of ours was named; or NULL */
};

/* Every text means something: what is none of the known forms is code. */
void params_read(struct str text, struct written *ret);
/* The same for what stands in a JSON string already: only what wraps all of it is taken off. */
void params_code(struct str text, struct written *ret);
void params_done(struct written *p);
