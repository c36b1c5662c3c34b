/*
 * qwen: the tools of Qwen-Agent, code_interpreter and python_executor. Whatever a model
 * has written goes in, one Markdown text comes out.
 *
 * Touches: requests through http, calls of the mcp room, the service; folders of the host
 * that the operator named. Never touches: sockets, the store, rules.
 *
 * qwen_new(), then qwen_door_init() and http_add() for plain HTTP; qwen_face() is what an
 * mcp room of its own shows. params.c reads what came, errand.c has it done, markdown.c
 * tells what came of it.
 */
#pragma once

#include "doors/http/http.h"

struct qwen;
struct face;

#define QWEN_SECRET_BYTES 32

struct qwen_config {
    struct loop *loop;       /* borrowed */
    const char *pool;        /* NULL: the first; borrowed, as are the rest */
    const char *static_url;  /* NULL: links lead to us */
    const char *public_url;  /* how clients reach us; NULL: as this one did, ... */
    const char *address;     /* ... or, where that cannot be told, so; or NULL */
    const char *work_dir;    /* what code writes goes there, too; NULL: nowhere */
    const char *file_dirs;   /* local files may come from below these, comma-separated; or NULL */
    uint64_t timeout_ms;     /* of one call, unless it says otherwise */
    uint64_t executor_ms;    /* the same of python_executor */
    uint64_t executor_chars; /* of each half of its answer; 0: all there are */
    bool traceback;          /* errors come whole, in place of one line */
    uint8_t secret[QWEN_SECRET_BYTES]; /* signs links to images */
};

/* NULL and *e when a folder cannot be opened. */
struct qwen *qwen_new(const struct qwen_config *config, struct err *e);
void qwen_free(struct qwen *q); /* after the last request and call; NULL is none */
void qwen_door_init(struct door *ret, struct qwen *q);
const struct face *qwen_face(struct qwen *q); /* outlived by q */
