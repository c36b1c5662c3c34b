/*
 * model: one question to a language model, one reply. Endpoints that speak chat
 * completions, endpoints that speak Anthropic's Messages, a script that is played
 * without any, and whatever else fills in struct model_ops.
 *
 * Touches: the loop, the network through libcurl, the keys of its settings. Never
 * touches: sessions, the store, what a reply is good for.
 *
 * models_new() from the settings, models_find() whom to ask, model_ask(). Messages and
 * replies are JSON in our own words, the same for every model; the adapters turn them
 * into each wire format and back:
 *
 *   message  {"role": "user" | "assistant", "parts": [part, ...]}
 *   part     {"type": "text", "text"}
 *            {"type": "image", "mime", "data": base64}
 *            {"type": "call", "id", "name", "args": {...}}, or "args": null and "raw": text
 *                where a model wrote arguments that are no JSON object
 *            {"type": "result", "id", "text", "images": [{"mime", "data"}]?, "error": bool?}
 *            {"type": "kept", "api", "block"}: what a model wants back as it was (thinking)
 *   tool     {"name", "description", "schema": JSON Schema}
 *
 * A key is sent to its own endpoint and stands nowhere else: in no log, error or record.
 */
#pragma once

#include "base/base.h"

#include <jansson.h>

struct loop;
struct model;
struct model_call;

/* --- asking --- */

enum model_choice {
    MODEL_AUTO,     /* it may call a tool */
    MODEL_NO_CALL,  /* tools are shown, as the history has calls of them, and none may be called */
    MODEL_MUST_CALL /* any, or the one in model_ask.tool */
};

struct model_ask {
    struct str system;      /* or empty */
    const json_t *messages; /* borrowed during the call */
    const json_t *tools;    /* array, or NULL; likewise */
    enum model_choice choice;
    struct str tool;     /* MODEL_MUST_CALL: this one; empty: any */
    bool one_at_a_time;  /* at most one call in the reply, where the endpoint can be told so */
    const json_t *stop;  /* array of strings, or NULL */
    uint64_t max_tokens; /* 0: the model's setting */
    uint64_t wall_ms;    /* 0: the model's setting */
    struct str name;     /* of the model, for an endpoint that has several; empty: its own */
    size_t turn;         /* replies in this conversation before this one: a script goes by it */
};

enum model_stop { MODEL_DONE, MODEL_CALLS, MODEL_LENGTH, MODEL_REFUSAL, MODEL_PAUSE };

struct model_reply {
    json_t *parts; /* borrowed: array; json_incref() to keep it */
    enum model_stop stop;
    uint64_t input_tokens, output_tokens; /* 0: not told */
    const char *name;                     /* who answered, or NULL */
};

/* Why there is no reply, and so what may help. */
enum model_trouble {
    MODEL_BUSY,     /* 429, 5xx, no connection, a stream that was cut, no time left: later */
    MODEL_TOO_LONG, /* the messages are more than it takes */
    MODEL_NO_TOOLS, /* it knows no tools */
    MODEL_DENIED,   /* the key or the request is refused */
    MODEL_NONSENSE, /* what came is no reply */
};

struct model_failure {
    enum model_trouble trouble;
    int status;        /* of HTTP; 0: there was none */
    uint64_t retry_ms; /* it said when to come again; 0: it did not */
    struct err err;    /* a sentence without secrets */
};

struct model_watcher {
    /* A piece of the text of parts[part], as it comes; not from every model. May be NULL. */
    void (*on_text)(void *arg, size_t part, struct str piece);
    /* Last, from the loop, exactly once: either reply or failed. */
    void (*on_end)(void *arg, const struct model_reply *reply, const struct model_failure *failed);
};

struct model_call *model_ask(struct model *m, const struct model_ask *ask,
                             const struct model_watcher *w, void *arg);
/* The watcher hears no more. */
void model_call_cancel(struct model_call *c);

/* --- models --- */

struct model_ops {
    struct model_call *(*ask)(struct model *m, const struct model_ask *ask,
                              const struct model_watcher *w, void *arg);
    void (*cancel)(struct model_call *c);
    void (*free)(struct model *m);
};

/* The first member of each kind of model. */
struct model {
    const struct model_ops *ops;
    const char *label; /* borrowed or the kind's own: what people call it */
    bool sees_images;
    bool text_only; /* it has shown that it knows no tools */
};

/* The first member of each kind of call. */
struct model_call {
    struct model *model; /* borrowed: outlives the call */
};

/* Plays {"turns": [[step, ...], ...]}: the last text of the user that begins with {"turns", else
 * what the file at path has (NULL: none). Reply number ask.turn is turn number ask.turn, counted
 * from the message that holds the script. After the last turn it has nothing to say, and is done. A
 * step is one of
 *   {"text"}, {"bash"}, {"python"}, {"edit"}, {"tool": {"name", "input"}}
 *   {"raw_call": {"name", "raw"}}: a call whose arguments are no JSON
 *   {"stop": "length" | "refusal" | "pause"}: how the reply ends
 *   {"usage": {"input_tokens", "output_tokens"}}, {"sleep_ms"}: before the reply
 *   {"fail": {"status", "retry_ms", "message"}}: there is none; judged as an endpoint's answer is
 */
struct model *scripted_new(struct loop *l, const char *path, struct err *e);

/* --- the models of the settings --- */

enum model_api { MODEL_OPENAI, MODEL_ANTHROPIC };

/* Everything is copied. */
struct model_config {
    const char *label; /* what people call it */
    enum model_api api;
    const char *url;     /* "http://127.0.0.1:8080/v1", "https://api.anthropic.com" */
    const char *name;    /* what the endpoint calls it; NULL: as ask.name says, else the label */
    const char *key;     /* or NULL */
    const char *proxy;   /* URL, or NULL: those of the environment do not count */
    const char *ca_file; /* certificates to trust, or NULL: the system's */
    uint64_t timeout_ms; /* of one reply; 0: two minutes */
    uint64_t max_tokens; /* of one reply; 0: the endpoint's own, 8192 with anthropic */
    bool images;         /* it sees them */
    bool text_only;      /* it is never offered tools */
};

struct models_config {
    struct loop *loop;  /* borrowed */
    const char *script; /* path, "-" for scripts in requests alone; NULL: no scripted model */
    const struct model_config *models;
    size_t count;
    const char *standard; /* label of the one for those who say nothing; NULL: the first, else the
                             scripted one */
    const char *tenants;  /* "acme=fast, beta=local": the one for those of a tenant; or NULL */
};

struct models;

/* What models_new() would say of the settings, before anything is started. */
int models_check(const struct models_config *config, struct err *e) MUST_CHECK;
struct models *models_new(const struct models_config *config, struct err *e);
void models_free(struct models *ms); /* after the last call; NULL is none */
/* Whom to ask for this tenant: the model that the request named (wanted, or empty) if there is one
 * of that label, else the tenant's, else the standard. NULL: none is configured. The name goes on
 * in ask.name, for endpoints that have several models. */
struct model *models_find(struct models *ms, const char *tenant, struct str wanted);
/* What a tenant may name, the one it gets without naming any first: i counts up until NULL. */
struct model *models_at(struct models *ms, const char *tenant, size_t i);
