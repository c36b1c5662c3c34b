/* Private to the Qwen room. */
#pragma once

#include "doors/mcp/mcp_int.h"
#include "doors/qwen/params.h"
#include "doors/qwen/qwen.h"

/* --- numbers --- */

#define BODY_QWEN_MAX    (20 * MiB)
#define INSTANCE_MAX     128         /* bytes of a name */
#define SOURCES_MAX      32          /* files of one call */
#define SOURCE_MAX       (8 * KiB)   /* bytes of a URL or a path; a data URL may be longer */
#define LOCAL_BYTES      (64 * MiB)  /* of a file of this machine */
#define TEXT_MAX         (256 * MiB) /* of an answer: the engine keeps less */
#define DIRS_MAX         16
#define EXPORT_MAX       256 /* files of one call that go to the work dir */
#define LINK_MAX         1024
#define LARGE_BODY       (256 * KiB) /* read on a worker */
#define SNIPPETS_MAX     256         /* snippets of one batch */
#define SNIPPETS_AT_ONCE 8           /* of these, at a time */
#define SNIPPETS_BYTES   (64 * MiB)  /* of all their pairs */

/* --- order.c: a call as its client made it --- */

struct order {
    char *code; /* owned; blank: nothing is to be done */
    size_t code_n;
    char instance[INSTANCE_MAX + 1]; /* whose variables; "" for none but the conversation's */
    uint64_t wall_ms;
    bool traceback;
    json_t *files;  /* owned: array of strings; or NULL */
    char *work_dir; /* owned: below the operator's; or NULL */
    /* python_executor's */
    char *answer_symbol, *answer_expr; /* owned, or NULL */
    bool last_value;                   /* of the last line, in place of what was printed */
};
void order_init(struct order *o, const struct qwen *q);
void order_done(struct order *o);
/* Options by their names, from JSON: what stands beside "code". */
int order_take(struct order *o, const struct qwen *q, const json_t *more, struct err *e) MUST_CHECK;
void order_take_params(struct order *o, struct written *p); /* its code */
bool order_is_blank(const struct order *o);
int instance_check(struct str name, struct err *e) MUST_CHECK;

/* --- sources.c: files on their way in --- */

struct source {
    char *text;        /* owned: as it was given */
    char name[256];    /* in the workspace; "" when it could not be had */
    char file[ID_MAX]; /* fetched: to be deleted again */
    char *bytes;       /* owned: of a local one */
    size_t n;
    struct err failed;
};
struct sources; /* of one call */
typedef void sources_fn(void *arg, struct source *items, size_t count);
/* Calls fn once, from the loop, when each has come or failed. files: or NULL. */
struct sources *sources_start(struct qwen *q, struct service *sv, const struct caller *c,
                              const struct order *o, sources_fn *fn, void *arg);
void sources_free(struct sources *s); /* after fn */
/* Where a path of the host may be read: a root of ours and the rest of the path. NULL: nowhere. */
struct root;
const struct root *root_find(const struct qwen *q, struct str path, struct str *ret_rest);

/* --- export.c: files on their way out, to the work dir --- */

typedef void export_fn(void *arg, struct str notes);
/* What the execution has made or changed, and its images. notes: what could not be written. */
void export_start(struct qwen *q, struct service *sv, const struct caller *c, const struct order *o,
                  const struct exec_info *info, export_fn *fn, void *arg);

/* --- errand.c: a call from its order to its answer --- */

struct reply {
    int status;    /* of HTTP */
    bool is_error; /* nothing was executed: text says why */
    struct str text;
    const char *session, *execution; /* or "" */
    const json_t *events;            /* or NULL */
    const char *uploaded;            /* "(Uploaded [file](a.csv)) ", or "" */
};
typedef void reply_fn(void *arg, const struct reply *r);

struct errand_spec {
    struct qwen *qwen;
    struct service *service;
    const struct caller *caller;       /* copied */
    const struct clearance *clearance; /* copied; NULL: the policy has not been asked */
    const char *tool;                  /* static */
    const char *base;                  /* of links to us: "http://host"; copied */
    bool attaches;                     /* images go along: links need not lead anywhere */
    bool stateless;
};
struct errand;
/* Takes what is in o. fn once, from the loop. */
struct errand *errand_start(const struct errand_spec *spec, struct order *o, reply_fn *fn,
                            void *arg);
void errand_leave(struct errand *g); /* nobody waits: fn is not called */

/* --- markdown.c --- */

/* Puts a link to the n-th image, from 1. */
typedef void link_fn(void *arg, struct buf *b, size_t n, const char *mime);
struct markdown {
    const json_t *events, *outcome; /* outcome: or NULL */
    bool traceback;
    struct str note; /* what the reader should know first; or empty */
    link_fn *link;
    void *arg;
};
void markdown_put(struct buf *b, const struct markdown *m);
/* One line for an exception, and one for each that led to it. */
void error_put_brief(struct buf *b, const json_t *ev);
/* The n-th image, from 1: base64 text, or SVG itself; NULL: there are fewer. */
const json_t *image_of(const json_t *events, size_t n, const char **ret_mime);
const char *suffix_of(const char *mime); /* "png" */

/* --- images.c: links to images, and what they lead to --- */

/* The signed name under which anybody who has it finds an image. */
void image_name(const struct qwen *q, const char *tenant, const char *execution, size_t n,
                const char *mime, struct buf *ret);
void handle_static(struct request *r);

/* --- executor.c: python_executor's pair --- */

/* [output, report]; owned. */
json_t *pair_of(const struct qwen *q, const struct order *o, const struct exec_info *info);
/* The code with what its answer is, as its last line. Inits ret. */
void executor_code(const struct order *o, struct buf *ret);

/* --- batch.c: many of them at once --- */

void handle_batch(struct request *r);

/* --- door.c, tools.c --- */

void handle_interpreter(struct request *r);
void handle_executor(struct request *r);
extern const struct tool tool_code_interpreter, tool_python_executor;

/* --- the room itself --- */

struct root {
    char *path; /* owned: without a slash at its end */
    int fd;     /* owned */
};

struct qwen {
    struct face face;
    struct qwen_config config;
    struct root roots[DIRS_MAX]; /* where local files may come from; the first is the work dir */
    size_t root_count;
    bool has_work_dir;
};
