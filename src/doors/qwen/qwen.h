/*
 * qwen: Qwen-Agent's tools code_interpreter and python_executor. A model's text goes in, one
 * Markdown text comes out.
 *
 * Touches: requests through http, calls of the mcp room, the service; folders of the host
 * that the operator named. Never touches: sockets, the store, rules.
 *
 * qwen_door and these functions are a row of cli/doors.c. parse_code.c finds the code in the text,
 * interpreter_call.c runs the code, markdown.c writes the answer.
 */
#pragma once

#include <sys/types.h>

#include "doors/http/http.h"

struct qwen;
struct tool_set;

#define QWEN_SECRET_BYTES 32

struct qwen_config {
    struct loop *loop;       /* borrowed */
    const char *pool;        /* NULL: the first; borrowed, as are the rest */
    const char *static_url;  /* links to images begin with it; NULL: with this server */
    const char *work_dir;    /* receives a copy of the files that code writes; or NULL */
    const char *images_dir;  /* receives images, and links name it: over standard input; or NULL */
    const char *file_dirs;   /* calls may read files below these, comma-separated; or NULL */
    uint64_t timeout_ms;     /* of a code_interpreter call that names none */
    uint64_t executor_ms;    /* of a python_executor call that names none */
    uint64_t executor_chars; /* of each text of python_executor's pair; 0: no limit */
    bool traceback;          /* errors are whole tracebacks, in place of one line */
    uint8_t secret[QWEN_SECRET_BYTES]; /* signs links to images */
};

/* NULL and *e when a folder cannot be opened. */
struct qwen *qwen_new(const struct qwen_config *config, struct err *e);
/* While we are root: makes the images dir and gives it to the user that the server will be, who may
 * not be able to make it. Failures show when the first image comes. */
void qwen_images_give(void *room, uid_t uid, gid_t gid);
/* As that user: who could make the folder leaves it to the first image. */
void qwen_images_settle(void *room);
void qwen_free(void *room);                       /* after the last request and call */
const struct tool_set *qwen_tool_set(void *room); /* lives as long as the room */
extern const struct door qwen_door;
