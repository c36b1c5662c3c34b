/* What the files of this room share: HTTP, streams, replies under way, the two wire formats. */
#pragma once

#include "model/model.h"

/* --- web.c: requests over HTTP, from the loop and never on a thread --- */

struct web;
struct post;

struct web *web_new(struct loop *l); /* opens nothing before the first post */
void web_free(struct web *w);        /* after the last post; NULL is none */

struct post_spec {
    const char *url;
    const char *const *headers; /* "Name: value", up to a NULL */
    char *body;                 /* the post's from now on; freed with free() */
    size_t body_n;
    const char *proxy;   /* or NULL; those of the environment do not count */
    const char *ca_file; /* or NULL: those of the system */
    uint64_t wall_ms;
};

struct post_end {
    int status;        /* 0: none came */
    uint64_t retry_ms; /* of Retry-After and its like; 0: none */
    const char *why;   /* what kept the answer from being whole, "does not answer"; or NULL */
    bool flood;        /* it is more than we take */
};

/* Neither is called before post_start() has returned. */
struct post_watcher {
    void (*on_body)(void *arg, int status, struct str bytes);
    void (*on_end)(void *arg, const struct post_end *end); /* the post is no more */
};

struct post *post_start(struct web *w, const struct post_spec *spec, const struct post_watcher *pw,
                        void *arg);
void post_cancel(struct post *p); /* at any moment, from on_body, too */
/* Nobody wants to hear of it any more, but its connection may serve the next one. */
void post_release(struct post *p);

/* --- sse.c: server-sent events out of pieces of bytes --- */

struct sse {
    struct buf line, data;
    bool after_cr; /* a line feed now belongs to the end of the line before */
    bool begun;    /* past the byte order mark */
    bool known;    /* there was a line such as events have */
};

/* An event's data; -1 ends the reading. */
typedef int sse_fn(void *arg, struct str data);

void sse_init(struct sse *s, size_t max);
void sse_done(struct sse *s);
/* -1: fn said so, with e->kind ERR_NONE, or a line is too long. */
int sse_feed(struct sse *s, struct str bytes, sse_fn *fn, void *arg, struct err *e) MUST_CHECK;
/* Whether this is a stream of events, if only the beginning of one. */
bool sse_is_one(const struct sse *s);
/* There are no more bytes: what whole lines said counts, half a line does not. */
void sse_finish(struct sse *s, sse_fn *fn, void *arg);

/* --- draft.c: a reply that is still coming --- */

struct piece; /* of a draft: what becomes one part */

struct draft {
    struct piece *piece; /* owned */
    size_t count;
    bool ended; /* the end was told, not only reached */
    bool has_stop;
    enum model_stop stop;
    uint64_t input_tokens, output_tokens;
    char *name;      /* owned, or NULL */
    json_t *trouble; /* owned: an error that came in place of the rest, or NULL */
    void (*on_text)(void *arg, size_t part, struct str piece); /* or NULL */
    void *arg;
};

void draft_init(struct draft *d);
void draft_done(struct draft *d);
/* Pieces are known by the number that the wire has for them. All of these return -1 when there are
 * too many pieces or bytes. */
int draft_text(struct draft *d, size_t at, const json_t *text) MUST_CHECK;
/* id and name may be NULL, and come later. */
int draft_call(struct draft *d, size_t at, const char *id, const char *name) MUST_CHECK;
int draft_args(struct draft *d, size_t at, struct str json) MUST_CHECK;
/* A block to be sent back as it is; copied. api is a literal. */
int draft_kept(struct draft *d, size_t at, const char *api, const json_t *block) MUST_CHECK;
/* More of a string in it; key is a literal. */
int draft_kept_more(struct draft *d, size_t at, const char *key, const json_t *text) MUST_CHECK;
size_t draft_calls(const struct draft *d);              /* how many */
const char *draft_id(const struct draft *d, size_t at); /* of a call, or NULL */
void draft_stop(struct draft *d, enum model_stop stop);
void draft_trouble(struct draft *d, json_t *error);
void draft_name(struct draft *d, const json_t *name);
/* The parts, owned by the caller; *ret_stop is how it ended. */
json_t *draft_parts(const struct draft *d, enum model_stop *ret_stop);

/* --- openai.c, anthropic.c: ours to theirs and back --- */

/* A question, completed by the settings. */
struct question {
    const struct model_ask *ask;
    const char *name;
    uint64_t max_tokens; /* 0: not said */
    bool sees_images;
};

/* What some endpoints refuse and can do without. */
struct bend {
    const char *key, *to; /* of the request; to NULL: it goes */
    bool back;            /* it undoes the row before */
};

struct adapter {
    const char *api; /* also in "kept" parts */
    const char *path;
    const char *key_header; /* the key stands after it */
    const char *header;     /* a further one, or NULL */
    uint64_t max_tokens;    /* where nobody says; 0: nobody has to */
    const struct bend *bends;
    size_t bend_count;
    json_t *(*request)(const struct question *q);
    /* One event of a stream, or an answer that came in one piece; -1: it is none. */
    int (*event)(struct draft *d, const json_t *data);
    int (*whole)(struct draft *d, const json_t *body);
};

extern const struct adapter adapter_openai, adapter_anthropic;

/* --- parts.c: pieces of our own messages --- */

/* What stands for an image where none can be seen. */
json_t *image_note(const json_t *image);
/* The schema of a tool, owned by the caller; there always is one. */
json_t *tool_schema(const json_t *tool);
/* The arguments of a call as an object, owned by the caller, whatever the model wrote. */
json_t *call_args(const json_t *call);
/* "" where there is none; the second is the caller's own. */
const char *text_of(const json_t *object, const char *key);
json_t *text_in(const json_t *object, const char *key);

/* --- trouble.c: what an endpoint says when it gives no reply --- */

/* The words of an error; owned by the caller. */
struct plaint {
    char *text;  /* what it says */
    char *words; /* that, its type and its code: what to judge by */
    int status;  /* of its own, in a stream; 0: none */
};

void plaint_of_body(struct plaint *p, struct str body);
void plaint_of_json(struct plaint *p, const json_t *error);
void plaint_done(struct plaint *p);
bool plaint_mentions(const struct plaint *p, const char *word);
/* with_tools: tools were in the request. */
enum model_trouble trouble_of(int status, const struct plaint *p, bool with_tools);
/* Sets f->err: "the model fast answered 429: ...", one line, without the key. */
void failure_say(struct model_failure *f, const char *label, const char *key, const char *what);

/* --- endpoint.c --- */

/* config has passed models_check(). */
struct model *endpoint_new(struct loop *l, struct web *w, const struct model_config *config);
