/* Private to the MCP room: conversations and transports. */
#pragma once

#include "doors/mcp/mcp_int.h"

/* --- conversation.c: what outlasts a message --- */

/* Changes that have not been sent yet. */
struct changes_due {
    unsigned kinds; /* IN(CHANGE_*) */
    json_t *uris;   /* owned: object, or NULL */
};

/* A session of the legacy era over HTTP, or the one of standard input and output. A modern request
 * over HTTP has none. */
struct conversation {
    struct conversation *next, *prev; /* of all, by their last use, the latest first */
    struct conversation *beside;      /* with the same hash */
    struct mcp *mcp;                  /* borrowed */
    char id[ID_MAX];                  /* "mcp_..." */
    struct caller owner;
    struct client client; /* of the legacy era; version NULL before initialize */
    struct peer *aside;   /* for what belongs to no call, or NULL: a GET stream, stdout */
    struct call *calls;   /* under way */
    size_t call_count;
    json_t *watched;        /* owned: object, URIs subscribed to; or NULL */
    struct changes_due due; /* of listen.c */
    char session[ID_MAX];   /* the interpreter used when none is named; "" at first */
    int64_t used_us;
    struct streams *streams; /* owned by streams.c; NULL: not over HTTP, so it never idles */
    bool has_one_stream;     /* of old_sse.c: all that is said to the client goes out on one GET */
};
/* NULL: there are too many. The longest unused conversation of the tenant may end for this one. */
struct conversation *conversation_new(struct mcp *m, const struct caller *owner);
struct conversation *conversation_find(struct mcp *m, struct str id, const struct caller *who);
/* Cancels its calls. */
void conversation_free(struct conversation *v);
struct call *conversation_call(struct conversation *v, const json_t *id);
/* The client as a request of the legacy era finds it: as was agreed on; of initialize, as it asks.
 */
void conversation_client(const struct conversation *v, struct str method, const json_t *params,
                         struct client *ret);

/* Ends the conversations over HTTP that were idle for IDLE_MS. */
void conversations_sweep(struct mcp *m);
void conversations_free(struct mcp *m);

/* --- batch.c: several messages at once, of 2025-03-26 --- */

#define BATCH_MAX 100
/*
 * Serves each message of an array that came in a conversation whose version HAS_BATCH. What is
 * answered goes to p at the end, as one array: p's answer() or drop() comes
 * once, perhaps before this returns. False when there is nothing to answer: p was not used.
 */
bool batch_serve(struct conversation *v, struct peer *p, const struct tool_set *tool_set,
                 const struct caller *who, const json_t *messages);
/* NULL, or why the array cannot be served. */
const char *batch_refused(const struct conversation *v, const json_t *messages);

/* --- message.c: headers against the body --- */

bool header_lists(struct str list, const char *word);
/* *ret: a view of value, or of room, which has value.n bytes. False: its base64 is broken. */
bool header_decode(struct str value, char *room, struct str *ret);
/* Whether the header says the same as v: a string, a number or a boolean. */
bool header_says(struct str value, const json_t *v);
/* A header by its name; p NULL: there is none. */
typedef struct str header_fn(void *arg, const char *name);
/* NULL, or what is wrong with the headers of arguments that the schema of the tool marks. */
const char *headers_differ(const struct tool *t, const json_t *args, header_fn *header, void *arg);

/* --- oauth.c: where clients get a token --- */

char *oauth_challenge(const struct mcp *m); /* owned; NULL: it is not configured */
void handle_resource_metadata(struct request *r);

/* --- streams.c: event streams over HTTP, which a client can resume --- */

struct sse_stream;
/* all NULL: of the modern era, which keeps no events. */
struct sse_stream *sse_new(struct streams *all);
/* r reads the stream from now on. r is held until the stream ends; when its client disconnects, the
 * caller calls sse_gone(). primed: the stream begins with an empty event that has an id. */
void sse_open(struct sse_stream *s, struct request *r, bool primed);
void sse_put(struct sse_stream *s, json_t *message); /* takes message */
size_t sse_waits(const struct sse_stream *s);
void sse_gone(struct sse_stream *s);
void sse_hang_up(struct sse_stream *s); /* the reader is done; the stream is not */
void sse_end(struct sse_stream *s);     /* after the response: it is kept for a while */
void sse_free(struct sse_stream *s);    /* there will be no response */

struct streams *streams_new(struct conversation *owner);
void streams_free(struct streams *all);
/* Whether a client reads the messages that belong to no call. */
bool streams_are_open(const struct streams *all);
void streams_close(struct streams *all);
void streams_listen(struct streams *all, struct request *r);
/* The same for a conversation that has one stream: r reads answers, too, and the first event says
 * where messages are to be sent. When its client disconnects, the caller calls streams_leave(). */
void streams_begin(struct streams *all, struct request *r, const char *endpoint);
void streams_leave(struct streams *all);
/* Bytes that the reader has not read. */
size_t streams_wait(const struct streams *all);
/* Sends r the events after last_id. False: the stream is not kept any more; r is not answered. */
bool streams_resume(struct streams *all, struct request *r, struct str last_id);
bool event_id_read(struct str id, uint64_t *ret_stream, uint64_t *ret_event);
/* Drops streams whose time is over. */
void streams_expire(struct mcp *m);

/* --- old_sse.c: HTTP+SSE, the transport of 2024-11-05 --- */

void handle_old_sse(struct request *r);  /* GET: opens the stream */
void handle_old_post(struct request *r); /* POST: a message */
/* Whether a GET at the path of streamable HTTP is a client of that transport. */
bool is_old_sse(struct request *r);

/* --- line_writer.c: one line for each message --- */

#define LINE_MAX_BYTES (8 * MiB) /* clients refuse lines of 10 MiB */

struct line_writer;
/* on_written: some bytes were written. on_unread: the reader has gone, and all lines are dropped.
 * Both may be called from inside line_writer_put(). */
struct line_writer *line_writer_new(struct loop *l, int fd, loop_fn *on_written, loop_fn *on_unread,
                                    void *arg);
void line_writer_free(struct line_writer *o);
/* False: the line is longer than a client would read, and left out. */
bool line_writer_put(struct line_writer *o, const json_t *message);
bool line_writer_put_text(struct line_writer *o, char *text,
                          size_t n);                   /* takes text, malloced, or NULL */
size_t line_writer_waits(const struct line_writer *o); /* bytes */

/* --- roots.c: folders that the client's user has opened --- */

/* Whether the client has roots, and they are wanted. */
bool roots_are_known(const struct conversation *v);
json_t *roots_question(char ret_id[ID_MAX]); /* owned: the request */
/* Hands the folders of a response to the config. answer NULL, or an error: there are none. */
void roots_take(struct mcp *m, const json_t *answer);

/* --- stdio.c --- */

/* After the conversations, whose calls write through it. */
void stdio_free(struct stdio *s);

/* --- listen.c: subscribers to changes --- */

/* The conversation has a stream for changes now: those that wait are sent. */
void conversation_listens(struct conversation *v);
/* Ends the streams of changes, with a result each. */
void listeners_end(struct mcp *m);
void listeners_free(struct mcp *m);
void handle_listen(struct call *c);
void handle_subscribe(struct call *c);
void handle_unsubscribe(struct call *c);
