/* Private to the Qwen room. */
#pragma once

#include "doors/mcp/tool.h"
#include "doors/qwen/parse_code.h"
#include "doors/qwen/qwen.h"

/* --- numbers --- */

#define BODY_QWEN_MAX    (20 * MiB)
#define INSTANCE_MAX     128 /* bytes of a name */
#define INSTANCE_DEFAULT "default"
#define SOURCES_MAX      1024        /* files of one call: an agent gives all of its conversation */
#define SOURCE_MAX       (8 * KiB)   /* bytes of a URL or a path; a data URL may be longer */
#define TEXT_MAX         (256 * MiB) /* of an answer: the engine keeps less */
#define DIRS_MAX         16
#define EXPORT_MAX       256 /* files of one call that go to the work dir */
#define LINK_MAX         1024
#define LARGE_BODY       (256 * KiB) /* read on a worker */
#define SNIPPETS_MAX     256         /* snippets of one batch */
#define SNIPPETS_AT_ONCE 8           /* of all batches, at a time */
#define SNIPPETS_BYTES   (64 * MiB)  /* of all their pairs */

/* --- call_params.c: the parameters of a call --- */

#define WALL_ALL_THERE_IS UINT64_MAX

struct call_params {
    char *code; /* owned; blank: nothing is run */
    size_t code_n;
    char instance[INSTANCE_MAX + 1]; /* names the session; "": the caller finds one */
    uint64_t wall_ms;                /* 0: what is usual; WALL_ALL_THERE_IS: the pool's limit */
    bool traceback;
    json_t *files;  /* owned: array of strings and of objects with a name; or NULL */
    char *work_dir; /* owned: a folder below the operator's work dir; or NULL */
    /* Of python_executor: */
    char *answer_symbol, *answer_expr; /* owned, or NULL */
    bool last_value; /* the answer is the value of the last line, not the output */
};
void call_params_init(struct call_params *p, const struct qwen *q);
void call_params_done(struct call_params *p);
/* Takes the options from a JSON object, by their names. */
int call_params_take(struct call_params *p, const struct qwen *q, const json_t *more,
                     struct err *e) MUST_CHECK;
void call_params_set_code(struct call_params *p, struct parsed_code *parsed);

/* --- interpreter_call.c: one call of a tool, from its parameters to its reply --- */

struct input_file {
    const char
        *source; /* borrowed from the parameters: a URL, or a path of this machine; or NULL */
    struct str content;  /* borrowed: the text itself; p NULL: it comes from the source */
    const json_t *coded; /* borrowed: the bytes in base64, which the source has not; or NULL */
    char *bytes;         /* owned: of coded; or NULL */
    int fd;              /* owned: a file of this machine; or -1 */
    char name[256];      /* in the workspace; "" when the file could not be had */
};

struct interpreter_call_spec {
    struct qwen *qwen;
    struct service *service;
    const struct caller *caller; /* copied */
    struct call *call;           /* of MCP, whose user can be asked; or NULL */
    const char *tool;            /* static */
    const char *base;            /* of links to this server: "http://host"; copied */
    struct exec_lane *lane;      /* or NULL */
    bool attaches;               /* images go along: links need not lead anywhere */
    bool stateless;              /* python_executor */
};

struct interpreter_call;
typedef void call_reply_fn(void *arg, const struct interpreter_call *c);

struct interpreter_call {
    struct interpreter_call_spec spec;
    struct caller caller;
    char base[LINK_MAX];
    struct call_params params;
    call_reply_fn *fn; /* NULL: the client has gone */
    void *arg;
    struct input_file *inputs; /* owned */
    size_t input_count;
    struct execution *x; /* borrowed; NULL before and after */
    struct buf notes;    /* come before the text */
    struct buf text;
    /* What fn reads. */
    int status;                              /* of HTTP */
    bool is_error;                           /* nothing was executed: reply says why */
    struct str reply;                        /* borrowed */
    char session[ID_MAX], execution[ID_MAX]; /* or "" */
    json_t *events, *outcome;                /* owned, or NULL */
    bool has_images_dir;                     /* its images are in the images dir */
    char uploaded[2 * KiB];                  /* "(Uploaded [file](a.csv)) ", or "" */
};
/* Takes what is in p. Calls fn once, from the loop. */
struct interpreter_call *interpreter_call_start(const struct interpreter_call_spec *spec,
                                                struct call_params *p, call_reply_fn *fn,
                                                void *arg);
void interpreter_call_leave(struct interpreter_call *c); /* fn is not called */

/* --- input_files.c: files that a call is given --- */

/* What the parameters say of one file; *e: neither a string nor an object that names it. */
int input_file_take(struct input_file *in, const json_t *one, struct err *e) MUST_CHECK;
/* Whether input_file_open() has something to do. */
bool input_file_blocks(const struct input_file *in);
/* Opens a file of this machine, or decodes bytes. Blocks: for a worker. */
int input_file_open(const struct qwen *q, const char *tenant, struct input_file *in,
                    struct err *e) MUST_CHECK;
/* Gives files with the same name names of their own: the second a.csv is a-2.csv. Puts a sentence
 * about each into notes. */
void input_files_distinguish(struct input_file *in, size_t count, struct buf *notes);

/* --- export.c: files on their way out, to the work dir --- */

typedef void export_fn(struct interpreter_call *c, struct str notes);
/* Writes what the execution made or changed, and its images. notes: what could not be written. */
void export_start(struct interpreter_call *c, export_fn *fn);
/* Writes its images to the images dir, and nothing else. */
void export_images_start(struct interpreter_call *c, export_fn *fn);

/* --- markdown.c --- */

/* Puts a link to the n-th image, from 1. */
typedef void link_fn(void *arg, struct buf *b, size_t n, const char *mime);
struct markdown {
    const json_t *events, *outcome; /* outcome: or NULL */
    bool traceback;
    struct str note; /* comes first; or empty */
    link_fn *link;
    void *arg;
};
void markdown_put(struct buf *b, const struct markdown *m);
/* One line for an exception, and one for each exception that caused it. */
void error_put_brief(struct buf *b, const json_t *ev);
const char *suffix_of(const char *mime); /* "png" */

/* --- images.c: links to images, and the images --- */

/* Puts the signed file name of an image below /qwen/static. */
void image_name(const struct qwen *q, const char *tenant, const char *execution, size_t n,
                const char *mime, struct buf *ret);
/* Decodes an image of the record. Owned; NULL: there is no image in it. */
char *image_bytes(const json_t *image, const char *mime, size_t *ret_n);
void handle_static(struct request *r);

/* --- executor.c: python_executor's pair --- */

/* [output, report]; owned. */
json_t *pair_of(const struct qwen *q, const struct call_params *p, const struct exec_info *info);

/* --- batch.c: many snippets for python_executor --- */

void handle_batch(struct request *r);

/* --- files.c: files of an instance --- */

void handle_files_post(struct request *r);
void handle_files_get(struct request *r);

/* --- door.c, tools.c --- */

extern const struct tool tool_code_interpreter, tool_python_executor;

/* --- the door --- */

struct root {
    char *path; /* owned: without a slash at its end */
    int fd;     /* owned */
};

struct qwen {
    struct tool_set tool_set;
    struct qwen_config config;
    struct root roots[DIRS_MAX]; /* where local files may come from; the first is the work dir */
    size_t root_count;
    bool has_work_dir;     /* roots[0]; each tenant has a folder of its own in it */
    char *images_dir;      /* owned: its whole path; or NULL */
    int images_fd;         /* owned: it, where only root could make it; or -1 */
    struct exec_lane lane; /* of batches */
};

/* --- qwen.c: the folders of the host --- */

#define TENANT_FOLDER_MAX (3 * sizeof(((struct caller *)0)->tenant))
/* The name of a tenant's folder in the work dir: its bytes but letters, digits, _ and - as %2F. */
const char *tenant_folder(const char *tenant, char ret[TENANT_FOLDER_MAX]);
/* That folder, opened; made if it is not there. An owned descriptor, or -1. Blocks. */
int tenant_folder_open(const struct qwen *q, const char *tenant, struct err *e) MUST_CHECK;
