/* The answer to one request as it is made; private to the files that work on it. */
#pragma once

#include "doors/anthropic/messages_int.h"

struct turn {
    struct anthropic *anthropic;
    struct service *service;
    struct caller caller;
    struct request_params params;
    struct history history;
    struct message message;
    struct turn_failure failure;
    loop_fn *on_news; /* NULL: nobody listens */
    void *arg;
    bool over, left;
    unsigned waits;
    char session[ID_MAX]; /* "" without code execution */
    bool exists;          /* it is a session; else an id that becomes one with the first call */
    size_t wrong_calls;   /* of the last reply: of tools that nobody has declared */
    bool called;          /* the model has called a server tool */
    json_t *uploads;      /* owned: [{"id", "path"}], files that the first call brings along */
    json_t *skills;       /* owned: [{"type", "skill_id", "version"}], as they were found */
    json_t *skill_files;  /* owned: [{"path", "hash", "size" or "uri"}], of the first call */
    struct model *model;  /* borrowed */
    struct model_call *asking;
    struct tool_call *tool_call;
    struct pdf_reader *pdfs; /* owned, or NULL: a text is being taken out */
    size_t pending_at;       /* the call of history.pending that runs or is next */
    bool replied;            /* the model has, in this run */
    size_t turns;
    unsigned calls; /* made in this run */
    int64_t begun_us;
    /* The reply that comes, which is written as it comes. */
    size_t parts_begun; /* parts of it that are in the message, or are none for the client */
    json_t *parts_told; /* owned: [{"at": index in the content, "id"?: of a call} or null] */
    size_t calls_told;
    int open_tool;   /* whose call is being written: enum server_tool, -1 a client tool */
    size_t bytes;    /* of the message, about */
    json_t *outputs; /* owned: for the manifest */
    json_t *log;     /* owned: calls, for the manifest */
    const char *stop;
};

/* --- turn.c --- */

/* Each callback that cannot be taken back is counted in waits, and calls this first. True: the turn
 * was left, and may be freed now. */
bool turn_is_gone(struct turn *r);
/* Ends the turn with an error. code: of errors.c, or NULL. */
void turn_fail(struct turn *r, const struct err *e, const char *code);
void turn_fail_with(struct turn *r, int status, const char *code, const char *text);
/* Ends the message with this stop reason, a literal. */
void turn_finish(struct turn *r, const char *stop);
/* Makes the next pending call; after the last one asks the model. */
void turn_work(struct turn *r);
/* Adds a block to the message. Takes block. */
void turn_put(struct turn *r, json_t *block);
/* There is more of the message. */
void turn_tell(struct turn *r);
/* The limits at which a message pauses: its time is not over, it is too long. */
bool turn_has_time(const struct turn *r);
bool turn_is_long(const struct turn *r);

/* What container.c and tool_call.c tell, from the loop. All values are borrowed. */
/* The container of turn->session is ready, or (0) will be made by the first call. */
void turn_on_container(struct turn *r, int64_t expires_ms);
/* The first call has made it. */
void turn_on_session(struct turn *r);
/* The call is over. content: of its result block; outputs: for the manifest; images: for the model,
 * or NULL; text: for the model in place of content, or NULL. */
void turn_on_result(struct turn *r, json_t *content, json_t *outputs, json_t *images,
                    const char *text);
/* The code has called tools of the client: [{"id", "name", "input"}]. */
void turn_on_client_calls(struct turn *r, json_t *calls);
/* The call is over: it needs this approval, which nobody has given yet. */
void turn_on_approval(struct turn *r, const char *id, int64_t expires_ms);

/* All files that are attached to messages have been read. */
void turn_on_attached(struct turn *r);
/* All documents are what the model takes. */
void turn_on_documents(struct turn *r);

/* --- attachments.c --- */

/* Reads images and documents that are files into the parts of the messages: then
 * turn_on_attached() or turn_fail(). */
void attachments_read(struct turn *r);

/* --- pdf_text.c --- */

/* The text of every document in the place of its bytes, for a model that takes no PDF: then
 * turn_on_documents() or turn_fail(). */
void pdf_texts_take(struct turn *r);
void pdf_texts_leave(struct pdf_reader *g);

/* --- turn_reply.c --- */

/* Asks the model, writes its reply down, then turn_work() or turn_finish(). */
void turn_ask(struct turn *r);

/* --- skill_mount.c --- */

/* Finds the skills of the request, tells the model of them, then container_prepare() or
 * turn_fail(). */
void skills_prepare(struct turn *r);
/* Leaves out what the container has, which must exist; then turn_work() or turn_fail(). */
void skills_mount(struct turn *r);
/* The bytes of a file of one of the program's own skills, by the uri in skill_files. */
struct str own_skill_bytes(struct str uri);

/* --- container.c --- */

/* Finds the container and puts the uploads into it, or promises one: then turn_on_container() or
 * turn_fail(). */
void container_prepare(struct turn *r);
/* The session that was promised is there. */
void container_made(struct turn *r);
