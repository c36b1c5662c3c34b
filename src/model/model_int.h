/* Private to the room: HTTP, event streams, drafts of replies, the two wire formats. */
#pragma once

#include "base/json.h"
#include "model/model.h"

/* --- web.c: HTTP requests on the loop --- */

struct web;
struct web_post;

struct web *web_new(struct loop *l); /* opens no fd before the first post */
void web_free(struct web *w);        /* after the last post; NULL is none */

struct web_post_spec {
    const char *url;
    const char *const *headers; /* "Name: value", up to a NULL */
    char *body;                 /* taken; freed with free(). NULL: a GET */
    size_t body_n;
    const char *proxy;   /* or NULL; the environment is ignored */
    const char *ca_file; /* or NULL: the system's */
    uint64_t wall_ms;
};

struct web_post_end {
    int status;        /* 0: none */
    uint64_t retry_ms; /* from Retry-After; 0: none */
    const char *why;   /* why the answer is incomplete, "did not answer in time"; or NULL */
    bool flood;        /* the answer was too long */
};

/* Called from the loop, never from inside web_post_start(). */
struct web_post_watcher {
    void (*on_body)(void *arg, int status, struct str bytes);
    void (*on_end)(void *arg, const struct web_post_end *end); /* the post is freed */
};

struct web_post *web_post_start(struct web *w, const struct web_post_spec *spec,
                                const struct web_post_watcher *pw, void *arg);
void web_post_cancel(struct web_post *p); /* also from on_body */
/* Like cancel, but the connection stays open for the next post. */
void web_post_release(struct web_post *p);

/* --- sse.c: parses server-sent events --- */

struct sse_reader {
    struct buf line, data;
    bool after_cr; /* the next line feed belongs to the line before */
    bool begun;    /* past the byte order mark */
    bool known;    /* there was a line of an event */
};

/* Gets an event's data; -1 stops the reader. */
typedef int sse_fn(void *arg, struct str data);

void sse_init(struct sse_reader *s, size_t max);
void sse_done(struct sse_reader *s);
/* -1: fn stopped it (e->kind ERR_NONE), or a line is too long. */
int sse_feed(struct sse_reader *s, struct str bytes, sse_fn *fn, void *arg,
             struct err *e) MUST_CHECK;
/* Whether the bytes so far are a stream of events. */
bool sse_is_one(const struct sse_reader *s);
/* The end of the bytes: dispatches complete lines, drops a partial one. */
void sse_finish(struct sse_reader *s, sse_fn *fn, void *arg);

/* --- surrogates.c: characters in halves --- */

/* JSON text with no lone half of a surrogate pair, which no parser of JSON takes: the text itself
 * where it has none, else what b holds then. A first half at the end of a string is left out and
 * kept in *half, 0 for none, for a text whose string begins with the second. Other lone halves
 * become U+FFFD. */
struct str surrogates_join(struct buf *b, struct str json, unsigned *half);

/* --- draft.c: a reply that is still arriving --- */

struct draft_piece; /* becomes one part */

struct draft {
    struct draft_piece *piece; /* owned */
    size_t count;
    bool ended; /* the endpoint has marked the end */
    bool has_stop;
    enum model_stop stop;
    uint64_t input_tokens, output_tokens, cache_read, cache_written, cache_hour;
    char *stop_sequence; /* owned, or NULL */
    char *name;          /* owned, or NULL */
    json_t *trouble;     /* owned: an error in the stream, or NULL */
    void (*on_piece)(void *arg, const struct model_piece *piece); /* or NULL */
    void *arg;
    size_t live; /* the piece that is being told; those before have been */
};

void draft_init(struct draft *d);
void draft_done(struct draft *d);
/* `at` is the number of a piece on the wire. All return -1 for too many pieces or bytes, and for
 * more of a piece that was told as a whole. Text behind another piece is a new piece. */
int draft_text(struct draft *d, size_t at, const json_t *text) MUST_CHECK;
/* id and name may be NULL, and follow later. */
int draft_call(struct draft *d, size_t at, const char *id, const char *name) MUST_CHECK;
int draft_args(struct draft *d, size_t at, struct str json) MUST_CHECK;
/* Arguments as text, or, from some endpoints, as a JSON value. */
int draft_args_json(struct draft *d, size_t at, const json_t *args) MUST_CHECK;
/* A block to be sent back unchanged; copied. api is a literal. */
int draft_kept(struct draft *d, size_t at, const char *api, const json_t *block) MUST_CHECK;
/* More text of a string in the block; key is a literal. */
int draft_kept_more(struct draft *d, size_t at, const char *key, const json_t *text) MUST_CHECK;
size_t draft_calls(const struct draft *d);              /* number of calls */
const char *draft_id(const struct draft *d, size_t at); /* of a call, or NULL */
void draft_stop(struct draft *d, enum model_stop stop);
/* Translates the word of the wire; MODEL_DONE for an unknown one. */
struct stop_word {
    const char *word;
    enum model_stop stop;
};
void draft_stop_word(struct draft *d, const struct stop_word *words, size_t count,
                     const json_t *word);
/* The stop sequence that ended the reply; ignored when it is no string. */
void draft_stop_sequence(struct draft *d, const json_t *text);
void draft_trouble(struct draft *d, json_t *error);
void draft_name(struct draft *d, const json_t *name);
/* Tells what has not been told. */
void draft_tell_rest(struct draft *d);
/* The parts, owned by the caller, and how the reply ended. */
json_t *draft_parts(const struct draft *d, enum model_stop *ret_stop);

/* --- openai.c, anthropic.c: adapters --- */

/* A question, with defaults from the settings filled in. */
struct question {
    const struct model_ask *ask;
    const char *name;
    uint64_t max_tokens; /* 0: not sent */
    bool sees_images;
};

/* A parameter that some endpoints refuse: the request is sent again without it. */
struct request_fallback {
    const char *key, *to; /* renamed to `to`; NULL: removed */
    bool back;            /* undoes the row before */
};

struct adapter {
    const char *api; /* also in "kept" parts */
    const char *path;
    const char *key_header;     /* the key follows */
    const char *header;         /* another header, or NULL */
    const char *betas_header;   /* ask.betas follow; NULL: they are not sent */
    uint64_t max_tokens;        /* default; 0: none needed */
    const char *const *options; /* of model.options */
    bool pdf;                   /* of model.takes_pdf */
    const struct request_fallback *fallbacks;
    size_t fallback_count;
    json_t *(*request)(const struct question *q);
    /* Reads one event of a stream, or a complete answer; -1: not a reply. */
    int (*event)(struct draft *d, const json_t *data);
    int (*whole)(struct draft *d, const json_t *body);
    const char *about_path; /* the name of a model follows */
    /* What a GET there has answered, in the shape of model_about_fn; owned by the caller. */
    json_t *(*about)(const json_t *body);
};

extern const struct adapter adapter_openai, adapter_anthropic;

/* --- parts.c: helpers for adapters --- */

/* Copies those options of a question that the format has. */
void put_options(json_t *request, const json_t *options, const char *const *names);

/* Text in place of an image, for models that see none. */
json_t *image_note(const json_t *image);
/* The schema of a tool, owned by the caller; never NULL. */
json_t *tool_schema(const json_t *tool);
/* The arguments of a call, owned by the caller; always an object. */
json_t *call_args(const json_t *call);
/* "" when there is no text. text_in() is owned by the caller. */
const char *text_of(const json_t *object, const char *key);
json_t *text_in(const json_t *object, const char *key);

/* --- endpoint_error.c: errors of endpoints --- */

struct endpoint_error {
    char *text;  /* owned: the message */
    char *words; /* owned: type, code and message, for trouble_of() */
    int status;  /* from an error inside a stream; 0: none */
};

void endpoint_error_of_body(struct endpoint_error *p, struct str body);
void endpoint_error_of_json(struct endpoint_error *p, const json_t *error);
void endpoint_error_done(struct endpoint_error *p);
bool endpoint_error_mentions(const struct endpoint_error *p, const char *word);
/* with_tools: tools were in the request. */
enum model_trouble trouble_of(int status, const struct endpoint_error *p, bool with_tools);
/* Sets f->err: "the model fast answered 429: ...", one line, without the key. */
void failure_say(struct model_failure *f, const char *label, const char *key, const char *what);

/* --- about.c: what an endpoint says of its model --- */

/* All is borrowed, and outlives the about. */
struct about_spec {
    const struct adapter *adapter;
    struct web *web;
    const char *base; /* URL that adapter.about_path follows; copied, as is name */
    const char *name;
    const char *key_header, *proxy, *ca_file; /* or NULL */
};
struct about;
struct about *about_new(const struct about_spec *spec);
void about_free(struct about *a); /* NULL is none */
void about_ask(struct about *a, model_about_fn *fn, void *arg);
bool about_is_asking(const struct about *a);

/* --- endpoint.c --- */

/* config has passed models_check(). */
struct model *endpoint_new(struct loop *l, struct web *w, const struct model_config *config);
