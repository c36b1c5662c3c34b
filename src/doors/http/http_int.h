/* Private to the HTTP room. */
#pragma once

#include "doors/http/http.h"
#include "loop/loop.h"

struct MHD_Connection;
struct MHD_Daemon;
struct MHD_Response;

/* --- numbers: everything a stranger can make longer --- */

#define CONNECTION_MEMORY (64 * KiB) /* of one connection: its head, or a piece of a body */
#define TARGET_MAX        (8 * KiB)  /* path and query, as sent */
#define HEADERS_MAX       100
#define DOORS_MAX         16  /* ours, not a stranger's */
#define QUERY_MAX         128 /* a list of a hundred ids, and more */
#define PARAMS_MAX        4   /* in one route's path */
#define METHOD_MAX        16
#define JSON_BODY_MAX     (1 * MiB) /* unless the route says otherwise */
#define IGNORED_BODY_MAX  (64 * KiB)
#define TRIM_ABOVE        (256 * KiB) /* after a longer body free memory goes back to the system */
#define FORM_PARTS_MAX    100
#define FORM_TEXT_MAX     (64 * KiB)  /* of one text field */
#define FORM_HEAD_MAX     (4 * KiB)   /* of one part */
#define FORM_OUTSIDE_MAX  (64 * KiB)  /* before the first part and after the last */
#define UPLOAD_PIECE      (128 * KiB) /* written at a time; two of them are in memory */
#define STREAM_MAX        (64 * MiB)  /* a producer that never looks at what waits is a bug */
#define PARAM_TEXT        FIELD_PATH_MAX
#define ANSWER_HEADERS    16
#define CORRELATION_MAX   256 /* bytes of an x-correlation-id that is given back */

#define IDLE_MS   75000 /* a connection between requests, and a client that takes no byte */
#define PING_MS   15000
#define LINGER_MS 3000

/* --- route.c: targets and paths; bytes in, no state --- */

struct http_pair {
    struct str name, value;
    bool rest; /* a path parameter that takes slashes */
};

/* Splits "path?query" and refuses what no path may hold: controls, NUL, broken escapes. */
int target_split(struct str target, struct str *ret_path, struct str *ret_query,
                 struct err *e) MUST_CHECK;
/* Decodes %XX once, and + as a blank when asked. ret has room for in.n + 1; it gets a NUL. */
int percent_decode(struct str in, bool plus, char *ret, size_t *ret_n, struct err *e) MUST_CHECK;
/* Whether a path, not decoded, is one of the route's. ret: views of the path. */
bool path_fits(const char *pattern, struct str path, struct http_pair ret[PARAMS_MAX],
               size_t *ret_count);
/* Decodes one parameter; room for value.n + 1. */
int path_param(struct http_pair *p, char *room, struct err *e) MUST_CHECK;
/* Decodes a query into pairs; room for query.n and two more bytes per pair. */
int query_split(struct str query, char *room, struct http_pair ret[QUERY_MAX], size_t *ret_count,
                struct err *e) MUST_CHECK;
/* Case does not matter. */
bool str_same(struct str a, const char *b);

/* --- check.c: JSON against the tables --- */

struct tables {
    const struct door *doors[DOORS_MAX]; /* borrowed */
    size_t count;
};

const struct schema *tables_schema(const struct tables *t, const char *name);
/* param gets the path of what is wrong. */
int json_check(const struct tables *t, const json_t *object, const struct field *fields, bool open,
               char param[PARAM_TEXT], struct err *e) MUST_CHECK;
int query_check(const struct http_pair *pairs, size_t count, const struct field *fields,
                const char **ret_param, struct err *e) MUST_CHECK;
bool fields_require(const struct field *fields);

/* --- multipart.c: multipart/form-data, as it arrives --- */

struct part {
    struct str name, file, mime; /* file: p NULL when the part is a text field */
};

struct multipart_fns {
    int (*on_part)(void *arg, const struct part *p, struct err *e);
    int (*on_data)(void *arg, struct str bytes, struct err *e);
};

struct multipart;
/* NULL when content_type names no usable boundary. */
struct multipart *multipart_new(struct str content_type, const struct multipart_fns *fns, void *arg,
                                struct err *e);
int multipart_feed(struct multipart *m, struct str bytes, struct err *e) MUST_CHECK;
int multipart_end(struct multipart *m, struct err *e) MUST_CHECK;
void multipart_free(struct multipart *m);

/* --- the server --- */

struct http_listener;

/* One client's connection, from accept to close. */
struct http_conn {
    struct http_conn *next, **link;
    struct http_listener *listener; /* borrowed */
    struct request *request;        /* borrowed: the one in hand, or NULL */
    int fd;                         /* the library's */
    int64_t deadline_us;            /* 0: none */
    bool idle;                      /* between requests, with `heard` bytes of them so far */
    uint64_t heard;
    struct watch *hangup; /* owned, or NULL: no request has asked for it yet */
    bool gone;            /* the client: see request_on_gone() */
    bool linger;          /* unread bytes must not cost the client its answer */
    uint8_t address[16];
};

struct http {
    struct loop *loop; /* borrowed */
    struct http_config config;
    char *hosts, *origins;    /* owned, or NULL */
    char *tls_cert, *tls_key; /* owned: PEM texts, or NULL */
    char *tls_trust;          /* likewise: of the authorities that the handshake names */
    struct trust *clients;    /* owned, or NULL: nobody's client certificate is believed */
    struct trust *nodes;      /* owned, or NULL: nodes need none */
    struct tables tables;
    struct http_listener *listeners; /* owned */
    struct http_conn *conns;         /* owned by the library's connections */
    struct straggler *stragglers;    /* owned */
    size_t straggler_count;
    struct timer *tick;
    struct timer *trim;
    bool trim_due;
    size_t requests; /* alive: each holds us */
    size_t in_hand;  /* with a whole head, and not answered to the end */
    struct http_counts counts;
    struct peers *peers;           /* owned, or NULL: there are no other nodes */
    struct node_channel *channels; /* owned: those that other nodes have made */
    bool closing;                  /* answers say so */
    bool freed;                    /* the last request frees the rest */
};

/* Gives what has been freed back to the system, soon. */
void http_trim(struct http *h);
/* Frees what is left when the last request has gone. */
void http_release(struct http *h);

/* --- listener.c: the library inside the loop --- */

struct http_listener {
    struct http_listener *next;
    struct http *http; /* borrowed */
    struct MHD_Daemon *daemon;
    struct watch *watch;
    int fd;                /* owned: listens; -1 when closed */
    struct watch *accepts; /* owned, or NULL: closed */
    struct timer *rest;    /* owned: until it accepts again */
    bool local;
    bool kicked; /* on_kick() is coming */
    bool dead;
};

int listener_new(struct http *h, int fd, bool local, struct err *e) MUST_CHECK;
/* Something was resumed: the library runs from the loop, soon. */
void listener_kick(struct http_listener *li);
void listener_close(struct http_listener *li);
void listener_free(struct http_listener *li);
/* By header_ms from now; renewed as the body comes in. */
void conn_expect(struct http_conn *c, uint64_t ms);
/* A request has been read to its end: what comes from now on is of the next. */
void conn_whole(struct http_conn *c);
/* Between requests. */
void conn_idle(struct http_conn *c);
/* The clocks of all connections. */
struct timer *clock_new(struct http *h);
void linger_free(struct http *h);

/* --- subject.c: client certificates --- */

/* The authorities in a file of PEM; NULL: there are none in it. setting: whose file it is. */
struct trust *trust_new(const char *pem, const char *setting, struct err *e);
void trust_free(struct trust *t);
/* Whether a request has come with a node's certificate, if nodes need one. */
bool peer_is_certified(struct request *r);

/* --- request.c --- */

enum stage {
    STAGE_LINE,    /* the request line is there */
    STAGE_BODY,    /* the head is; pieces of a body come in */
    STAGE_WHOLE,   /* all of it is */
    STAGE_HANDLER, /* the route has it */
    STAGE_STREAM,  /* the answer is under way */
    STAGE_ANSWERED,
};

struct keep {
    struct keep *next;
    void (*fn)(void *);
    void *p;
};

struct http_body;
struct outflow;
struct forward;
struct node_channel;

/*
 * Three may hold a request: the library until it is done with it (mhd), the handler
 * until it has answered (STAGE_HANDLER, STAGE_STREAM), and what is under way elsewhere (pins).
 * It is freed when nobody does.
 */
struct request {
    struct http *http;          /* counted */
    struct http_conn *conn;     /* borrowed; NULL when the library is done */
    struct MHD_Connection *mhd; /* likewise */
    enum stage stage;
    bool suspended;
    bool past;     /* the library takes no answer of ours for it */
    bool refused;  /* answered past the library, or dropped: it only has to close */
    bool has_body; /* by its head */
    bool whole;    /* it has been read to its end */
    bool chunked;
    bool head_only; /* HEAD */
    bool keyed;     /* the caller is known by a key, or by none as long as none is needed */
    bool from_peer; /* another node has let it in */
    bool seeking;   /* for its key or the node of its tenant, in the database ... */
    bool sought_key, sought;      /* ... and that has been done */
    bool late;                    /* its head was let by meanwhile */
    struct forward *forward;      /* owned, or NULL: another node has it */
    struct node_channel *channel; /* borrowed, or NULL: its body goes there */
    unsigned pins;
    struct caller caller;
    const struct door *door;
    const struct route *route;
    char method[METHOD_MAX];
    char *target;           /* owned: as sent */
    struct str path, query; /* of target */
    char *text;             /* owned: headers, decoded parameters and query */
    char *text_end;         /* where the next of these goes */
    struct http_pair params[PARAMS_MAX], queries[QUERY_MAX], headers[HEADERS_MAX];
    size_t param_count, query_count, header_count;
    uint64_t body_length, body_seen; /* length: UINT64_MAX when it is not told */
    int64_t body_us;                 /* when it began */
    struct http_body *body;          /* owned */
    json_t *json;                    /* owned */
    struct upload *uploads;          /* owned */
    size_t upload_count;
    struct http_pair answer_headers[ANSWER_HEADERS]; /* owned texts */
    size_t answer_header_count;
    struct outflow *stream; /* owned */
    loop_fn *on_gone;
    void *gone_arg;
    bool sent;                     /* the whole answer */
    bool gone_due, low_due, later; /* told from the loop, not from inside the library */
    struct keep *keeps;
    char *base_url; /* owned, or NULL */
    int64_t began_us;
    int status;
    uint64_t bytes;
};

struct request *request_new(struct http *h, const char *target);
/* Takes the head from the library, with its own views of it. False when it has answered. */
bool request_head(struct request *r, const char *method, const char *url, const char *version);
/* Frees it when nobody holds it. */
void request_settle(struct request *r);
/* The database is asked about it; it is held meanwhile, and its body waits. */
void request_seek(struct request *r);
void request_suspend(struct request *r);
void request_resume(struct request *r);
/* The library is done with it. whole: the answer went out. */
void request_over(struct request *r, bool whole);
void request_later(struct request *r);

/* --- guard.c: who may come in; each is false when it has answered --- */

bool guard_head(struct request *r);
bool guard_host(struct request *r);
bool guard_origin(struct request *r);
/* False also while the database is asked for the key: then on_sought is called with r, once. */
bool guard_key(struct request *r, done_fn *on_sought);
/* Not answered: whether the key, or the token, that let it in is still good. */
bool guard_stands(struct request *r);
/* The Origin to name in the answer, or p NULL. */
struct str guard_cors(struct request *r);

/* --- body.c, upload.c --- */

/* False when it has answered. */
bool body_begin(struct request *r);
/* A piece: all of it is taken. May suspend or answer. */
void body_piece(struct request *r, struct str piece);
/* All of it is there: calls the handler, now or when the last byte has been written. */
void body_end(struct request *r);
void body_free(struct request *r);

struct uploads;
struct uploads *uploads_new(struct request *r);
/* A new upload, written to from now on. */
int uploads_begin(struct uploads *u, const struct part *p, struct err *e) MUST_CHECK;
int uploads_put(struct uploads *u, struct str bytes, struct err *e) MUST_CHECK;
/* Writes when there is enough; suspends the request while too much waits. */
void uploads_pace(struct uploads *u);
/* Calls done() when everything is written, or when writing failed. */
void uploads_end(struct uploads *u, void (*done)(struct request *r, const struct err *failed));
void uploads_free(struct uploads *u);

/* --- answer.c --- */

/* Sends what the library made, with the headers every answer has. Takes resp. */
void answer_send(struct request *r, int status, struct MHD_Response *resp, uint64_t bytes);
/* The handler is done with it. */
void answer_done(struct request *r);

/* --- range.c --- */

enum range { RANGE_ALL, RANGE_PART, RANGE_BEYOND };
/* What a Range header (p NULL: none) means for so many bytes. Several ranges, other units and what
 * cannot be read count as none, as RFC 9110 section 14.2 allows. */
enum range range_parse(struct str header, uint64_t size, uint64_t *ret_from, uint64_t *ret_count);
void answer_content_range(struct request *r, uint64_t from, uint64_t count, uint64_t size);
void answer_beyond(struct request *r, uint64_t size); /* 416 */

/* --- forward.c: requests for tenants of other nodes --- */

/* What the header of another node says, if there is one. False when it has answered. */
bool forward_take(struct request *r);
enum forward_to { FORWARD_NOT, FORWARD_TO, FORWARD_SEEK, FORWARD_ANSWERED };
/* Signs a request of ours to another node: the value of the header. */
#define PEER_HEADER    "retort-peer"
#define PEER_VALUE_MAX 1024
void forward_sign(const struct http *h, const char *method, const char *target, struct str host,
                  const struct caller *c, bool keyed, char ret[PEER_VALUE_MAX]);
/* When the caller is known. TO: *ret_url. SEEK: service_home_find() first. */
enum forward_to forward_where(struct request *r, const char **ret_url);
/* From here on the pieces of the body are the other node's. */
void forward_begin(struct request *r, const char *url);
void forward_piece(struct request *r, struct str piece);
void forward_end(struct request *r);
void forward_gone(struct request *r);

/* --- channel.c: a sandbox on another node --- */

struct channel *channel_dial(void *http, const char *url, const struct caller *c);
/* The POST of a channel: its head, a piece of its body; it is gone. */
bool channel_up(struct request *r);
void channel_piece(struct request *r, struct str piece);
void channel_up_gone(struct request *r);

/* --- stream.c --- */

/* An answer made elsewhere: stream_response(), headers, stream_begin(), then answer_stream_put().
 * length: UINT64_MAX when it is not known. */
struct MHD_Response *stream_response(struct request *r, int status, uint64_t length);
void stream_begin(struct request *r, int status, struct MHD_Response *resp);

void outflow_free(struct outflow *s);
void stream_gone(struct request *r);
void stream_tell_low(struct request *r);
/* Ends it so that the client can tell it is not whole. */
void stream_cut(struct request *r);
/* The same for one whose handler still writes: it is told that the client has gone. */
void stream_revoke(struct request *r);
