/* Private to the MCP room: resources, prompts and skills. */
#pragma once

#include "doors/mcp/mcp_int.h"

/* --- uri.c: URIs of resources --- */

#define WINDOW_DIGITS 15 /* of offset and limit */

enum uri_kind { URI_OTHER, URI_FILE, URI_OUTPUT, URI_IMAGE };

struct uri {
    enum uri_kind kind;
    char id[ID_MAX];           /* of a session or an execution; "": there is none */
    char path[SPACE_PATH_MAX]; /* as it is kept */
    uint64_t offset, limit;    /* bytes; limit 0: as much as there is */
    bool is_part;              /* one of them was given */
    size_t image;              /* from 1 */
};
/* Both return ret. */
const char *uri_of_output(char ret[URI_MAX], struct str execution);
const char *uri_of_image(char ret[URI_MAX], struct str execution, size_t n);
/* -1: a retort:// URI that is wrong. URI_OTHER: any other URI. */
int uri_read(struct str text, struct uri *ret, struct err *e) MUST_CHECK;
/* Decodes percent-escapes. -1 for "%4", "%zz", a NUL, and what is too long. */
int uri_decode(struct str text, char ret[SPACE_PATH_MAX]) MUST_CHECK;

/* --- embed.py: files that are part of the program --- */

extern const struct embedded embedded[]; /* ends with a uri of NULL */
/* Whether clients of the tool set see the file: a skill of their own, or no skill. */
bool embedded_is_shown(const struct embedded *f, const struct tool_set *set);
json_t *embedded_show(const struct embedded *f,
                      const struct protocol_version *v); /* owned: a Resource */

/* --- resources.c, reading.c --- */

/* Ends the call with result, which is taken, and how long a modern client may keep it. */
void call_result_cached(struct call *c, json_t *result, int ttl_ms, const char *scope);
/* False: the call has a cursor, and is answered with an error. */
bool call_has_one_page(struct call *c);
/* There is no such resource, or not for this caller: the code of the era, with data.uri. */
void call_no_resource(struct call *c, struct str uri);
/* Ends the call with the contents. */
void read_resource(struct call *c, const struct uri *u);
void mcp_unfollow(struct mcp *m);

/* --- prompts.c --- */

#define PROMPT_ARGS    4
#define PROMPT_ARG_MAX 4096

struct prompt_arg {
    const char *name, *text;
    bool required;
    const char *values; /* what may be completed: "files", "failures", "a|b|c"; or NULL */
};

struct prompt {
    const char *name, *title, *text;
    struct prompt_arg args[PROMPT_ARGS]; /* strings of at most PROMPT_ARG_MAX */
    const char *message;                 /* with "{name}" for an argument */
    const char *without; /* the same where the last argument was left out; or NULL */
};
const struct prompt *prompt_find(struct str name); /* or NULL */

/* --- session_files.c: the files of a caller's sessions --- */

#define ITER_SESSIONS 20  /* looked at in one call */
#define ITER_FILES    200 /* of each, the latest */

struct session_files {          /* of one session, those changed last */
    const char *session, *name; /* name: or NULL */
    const struct space_file *list;
    size_t count;
};
struct session_files_cursor { /* where to go on */
    char session[ID_MAX];     /* "": there is nothing more */
    int64_t created_ms;
};
/* Sessions newest first, from behind `after` (or NULL). each() false: enough. */
typedef bool session_files_fn(void *arg, const struct session_files *files);
typedef void session_files_end_fn(void *arg, const struct session_files_cursor *end,
                                  const struct err *failed);
void session_files_each(struct call *c, struct service *sv,
                        const struct session_files_cursor *after, session_files_fn *each,
                        session_files_end_fn *end, void *arg);
