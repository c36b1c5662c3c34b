/*
 * model: one question to a language model, one reply. A model is an endpoint that speaks
 * chat completions or Anthropic's Messages, a script, or whatever fills in struct model_ops.
 *
 * Touches: the loop, the network through libcurl, the keys of its settings. Never
 * touches: sessions, the store, what a reply is used for.
 *
 * models_new() reads the settings, models_find() chooses a model, model_ask() asks it.
 * Messages and replies are JSON of one shape for every model; adapters translate between
 * this shape and each wire format:
 *
 *   message  {"role": "user" | "assistant", "parts": [part, ...]}
 *   part     {"type": "text", "text"}
 *            {"type": "image", "mime", "data": base64}, or "url" in place of both
 *            {"type": "document", "mime", "data": base64, "title"?}, or "url": a PDF
 *            {"type": "call", "id", "name", "args": {...}}, or "args": null and "raw": text
 *                when the arguments are not a JSON object
 *            {"type": "result", "id", "text", "attached": [text, image or document part]?,
                "error": bool?}
 *            {"type": "kept", "api", "block"}: sent back unchanged (thinking)
 *   tool     {"name", "description", "schema": JSON Schema}
 *
 * A part of the user and a tool may have "cache", a cache_control for endpoints that know it.
 *
 * A key is sent to its own endpoint only: it stands in no log, error or record.
 */
#pragma once

#include "base/base.h"

#include <jansson.h>

struct loop;
struct model;
struct model_call;

/* --- asking --- */

enum model_choice {
    MODEL_AUTO,     /* the model may call a tool */
    MODEL_NO_CALL,  /* tools are sent, because the history has calls, but none may be called */
    MODEL_MUST_CALL /* any tool, or model_ask.tool */
};

struct model_ask {
    struct str system;          /* or empty */
    const json_t *system_cache; /* or NULL: cache_control of it */
    const json_t *messages;     /* borrowed during the call */
    const json_t *tools;        /* array, or NULL; borrowed during the call */
    enum model_choice choice;
    struct str tool;    /* with MODEL_MUST_CALL: the tool; empty: any */
    bool one_at_a_time; /* at most one call in a reply, if the endpoint knows that option */
    const json_t *stop; /* array of strings, or NULL */
    const json_t
        *options;        /* object, or NULL: "temperature", ...; those of model.options are sent */
    uint64_t max_tokens; /* 0: the model's setting */
    uint64_t wall_ms;    /* at most the model's setting; 0: that */
    struct str name;     /* of the model, for an endpoint with several; empty: its own */
    const char *betas;   /* "a,b", for endpoints with a header for names of features; or NULL */
    size_t turn;         /* number of earlier replies in this conversation, for scripts */
};

enum model_stop {
    MODEL_DONE,
    MODEL_CALLS,
    MODEL_LENGTH, /* max_tokens */
    MODEL_WINDOW, /* the model takes no more, whatever max_tokens says */
    MODEL_REFUSAL,
    MODEL_PAUSE
};

struct model_reply {
    json_t *parts; /* borrowed: array; json_incref() to keep it */
    enum model_stop stop;
    const char *stop_sequence;            /* the one that ended it, or NULL */
    uint64_t input_tokens, output_tokens; /* 0: not known */
    uint64_t cache_read, cache_written;   /* of input_tokens */
    uint64_t cache_hour;                  /* of cache_written: for an hour */
    const char *name;                     /* of the model that answered, or NULL */
};

/* Why there is no reply. */
enum model_trouble {
    MODEL_BUSY,     /* 429, 5xx, no connection, a broken stream, timeout: try later */
    MODEL_TOO_LONG, /* the messages are too long for the model */
    MODEL_NO_TOOLS, /* the model does not support tools */
    MODEL_DENIED,   /* the key or the request is refused */
    MODEL_NONSENSE, /* the answer is not a reply */
};

struct model_failure {
    enum model_trouble trouble;
    int status;        /* of HTTP; 0: none */
    uint64_t retry_ms; /* when the endpoint wants to be asked again; 0: it did not say */
    struct err err;    /* a sentence without secrets */
};

/* More of parts[part], as it arrives. Parts come in their order: the first piece of one is the end
 * of those before. All of a reply has been told before on_end(). */
struct model_piece {
    size_t part;
    enum { MODEL_PIECE_TEXT, MODEL_PIECE_CALL, MODEL_PIECE_KEPT } kind;
    struct str text;     /* of a call: of its arguments. May be empty at the beginning of a part */
    const char *name;    /* of the tool that is called */
    const json_t *block; /* that is kept, as it began */
    const char *key;     /* the text continues this string of the block; NULL: the block begins */
};

struct model_watcher {
    void (*on_piece)(void *arg, const struct model_piece *piece); /* or NULL */
    /* Once, from the loop: either reply or failed. */
    void (*on_end)(void *arg, const struct model_reply *reply, const struct model_failure *failed);
};

struct model_call *model_ask(struct model *m, const struct model_ask *ask,
                             const struct model_watcher *w, void *arg);
/* The watcher is not called again. */
void model_call_cancel(struct model_call *c);

/* --- what is known of a model --- */

/* said: borrowed, those of {"created_at": text of a time, "display_name": text,
 * "max_input_tokens": integer, "max_tokens": integer, "capabilities": object} that its endpoint
 * tells; {} when it tells nothing, or does not answer. */
typedef void model_about_fn(void *arg, const json_t *said);
/* May call fn at once. name: of one of its models, where it has many; empty: its own. */
void model_about(struct model *m, struct str name, model_about_fn *fn, void *arg);

/* --- models --- */

struct model_ops {
    struct model_call *(*ask)(struct model *m, const struct model_ask *ask,
                              const struct model_watcher *w, void *arg);
    void (*cancel)(struct model_call *c);
    void (*free)(struct model *m);
    /* NULL: nothing is known. */
    void (*about)(struct model *m, struct str name, model_about_fn *fn, void *arg);
};

/* The first member of each kind of model. */
struct model {
    const struct model_ops *ops;
    const char *label; /* its name in the settings */
    bool sees_images;
    bool takes_pdf;
    bool text_only; /* it has refused tools */
    bool many;      /* an endpoint with several: it is asked for the one that a request names */
    /* Names of the options that its wire format has, up to a NULL. NULL: all are taken, and mean
     * nothing. */
    const char *const *options;
};

/* The first member of each kind of call. */
struct model_call {
    struct model *model; /* borrowed: outlives the call */
};

/* A model that plays {"turns": [[step, ...], ...]}: from the last text of the user that begins with
 * {"turns", else from the file at path (NULL: none). Turn ask.turn is the reply, counted from the
 * message with the script; after the last turn, replies are empty. A step is one of
 *   {"text"}, {"bash"}, {"python"}, {"edit"}, {"tool": {"name", "input"}}
 *   {"raw_call": {"name", "raw"}}: a call whose arguments are no JSON
 *   {"stop": "length" | "refusal" | "pause"}: how the reply ends
 *   {"usage": {"input_tokens", "output_tokens"}}, {"sleep_ms"}: before the reply
 *   {"fail": {"status", "retry_ms", "message"}}: no reply, as if an endpoint had answered this
 */
struct model *scripted_new(struct loop *l, const char *path, struct err *e);

/* --- the models of the settings --- */

enum model_api { MODEL_OPENAI, MODEL_ANTHROPIC };

/* Everything is copied. */
struct model_config {
    const char *label; /* its name in the settings */
    enum model_api api;
    const char *url;     /* "http://127.0.0.1:8080/v1", "https://api.anthropic.com" */
    const char *name;    /* at the endpoint; NULL: ask.name, else the label */
    const char *key;     /* or NULL */
    const char *proxy;   /* URL, or NULL; the environment is ignored */
    const char *ca_file; /* certificates to trust, or NULL: the system's */
    uint64_t timeout_ms; /* of one reply; 0: two minutes */
    uint64_t max_tokens; /* of one reply; 0: the endpoint's own, 8192 with anthropic */
    bool images;         /* the model sees images */
    bool text_only;      /* the model is never offered tools */
};

struct models_config {
    struct loop *loop;  /* borrowed */
    const char *script; /* path, "-" for scripts in requests alone; NULL: no scripted model */
    const struct model_config *models;
    size_t count;
    const char *standard; /* label of the default model; NULL: the first, else the scripted one */
    const char *tenants;  /* "acme=fast, beta=local": defaults of tenants; or NULL */
};

struct models;

/* Checks the settings as models_new() does, and starts nothing. */
int models_check(const struct models_config *config, struct err *e) MUST_CHECK;
struct models *models_new(const struct models_config *config, struct err *e);
void models_free(struct models *ms); /* after the last call; NULL is none */
/* The model with label `wanted`, else the tenant's default, else the default. NULL: no model is
 * configured. Callers also pass `wanted` as ask.name, for endpoints with several models. */
struct model *models_find(struct models *ms, const char *tenant, struct str wanted);
/* The models that a tenant may name, its default first; NULL behind the last. */
struct model *models_at(struct models *ms, const char *tenant, size_t i);
