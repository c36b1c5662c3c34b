/*
 * http: strangers' HTTP in, requests out; answers in, bytes out. Every door that
 * speaks HTTP is a table of routes served from here.
 *
 * Touches: listening sockets it is given, TLS, libmicrohttpd inside the loop, blobs
 * for uploads. Never touches: what a route means.
 *
 * http_new(), http_add() a door's routes and schemas, http_listen() each socket.
 * http_on_request() in http.c reads top to bottom as a request's life: limits, Host and
 * Origin, route, authorise, body, handler, answer. A handler answers once, now or
 * later from the loop. A request lives until it has been answered, even when its
 * client has gone; answering that one does nothing.
 */
#pragma once

#include "service/service.h"

#include <jansson.h>

struct http;
struct request;

typedef void request_fn(struct request *r);

/* --- tables: they route, validate, and print the OpenAPI document --- */

enum field_type {
    FIELD_END,
    FIELD_TEXT,   /* string; min, max: bytes */
    FIELD_INT,    /* integer; min, max */
    FIELD_NUMBER, /* number; min, max */
    FIELD_BOOL,
    FIELD_OBJECT, /* any object, or of the schema `of` */
    FIELD_LIST,   /* array of the schema `of`, of "string", "integer", "number" or "boolean", or of
                     anything; max: items */
    FIELD_MAP,  /* object of strings; max: members. of: the document's pattern of names, or NULL */
    FIELD_ENUM, /* string, one of `of`: "python|shell" */
    FIELD_ANY,  /* of: the document's list of values, as JSON; or NULL. The handler checks it */
};

#define REQUIRED true
#define OPTIONAL false

struct field {
    const char *name;
    enum field_type type;
    bool required;
    double min, max; /* 0 and 0: no bound */
    const char *of;
    const char *text;    /* one sentence */
    const char *example; /* as JSON, or NULL */
};

/* A named object of the OpenAPI document; also what FIELD_OBJECT and FIELD_LIST refer to. */
struct schema {
    const char *name;
    const char *text;
    const struct field *fields; /* ends with FIELD_END */
    bool open;                  /* further members are allowed */
    const char *one_of;         /* for the document: exactly one of these sets of members is there,
                                   "id|content path"; or NULL */
};

enum http_method { HTTP_GET, HTTP_PUT, HTTP_POST, HTTP_DELETE, HTTP_PATCH };

enum body_kind {
    BODY_NONE,   /* a body is ignored up to 64 KiB, refused above */
    BODY_JSON,   /* an object that fits `body`; missing counts as {} when nothing is required */
    BODY_RAW,    /* one upload, the body itself */
    BODY_FORM,   /* multipart/form-data: uploads and text fields */
    BODY_EITHER, /* BODY_FORM by Content-Type, else BODY_JSON */
    BODY_BYTES,  /* JSON that the door reads by itself: request_body() */
    BODY_ANY,    /* BODY_FORM by Content-Type, else BODY_BYTES */
    BODY_TEXT,   /* as BODY_BYTES, of any Content-Type */
};

enum route_flags {
    ROUTE_OPEN = 1,       /* no key needed: /health */
    ROUTE_ADMIN = 2,      /* an admin's key */
    ROUTE_HIDDEN = 4,     /* not in the OpenAPI document */
    ROUTE_LOCAL = 8,      /* no key needed from this machine, and not through a proxy */
    ROUTE_QUERY = 16,     /* the handler looks at the query by itself: nothing in it is refused */
    ROUTE_READS = 64,     /* open to keys that only read, although it is no GET: what it does is
                             decided below, or it changes nothing */
    ROUTE_QUERY_KEY = 32, /* a key may be in the query, as api_key or token: for readers of event
                             streams, which in a browser can send no headers */
    ROUTE_NODES = 256,    /* for other nodes alone, and never forwarded: handle_channel() or
                             handle_channel_end() */
    ROUTE_NUL = 128, /* U+0000 in strings of JSON becomes U+FFFD, and is not refused: models and
                        texts of PDF have it */
};

/* A further answer of a route: another status, or another shape of the same one. */
struct also {
    int status; /* 0: the end of the list */
    const char *answer;
    const char *text;
};

struct route {
    enum http_method method; /* GET also serves HEAD */
    const char *path;        /* "/v1/sessions/{session}/files/{path...}": "..." takes slashes */
    const char *id;          /* operationId: "get_file" */
    const char *tag;         /* heading in the document: "Files" */
    const char *text;        /* one or more sentences, the first the summary */
    unsigned flags;
    enum body_kind body_kind;
    const struct field *body;  /* or NULL */
    const struct field *query; /* or NULL; an unknown one is refused */
    int status;                /* of success */
    const char *answer;        /* schema name; a MIME type for bytes; NULL: nothing */
    const char *answer_text;   /* what comes back, one sentence */
    const struct also *also;   /* or NULL */
    uint64_t body_max;         /* bytes of a JSON body, BODY_BYTES too; 0: 1 MiB */
    request_fn *handle;
};

struct door {
    const char *name; /* static: in the audit log */
    const struct route *routes;
    size_t route_count;
    const struct schema *schemas;
    size_t schema_count;
    void *ctx;             /* borrowed: request_ctx() */
    const char *challenge; /* borrowed: WWW-Authenticate where a key is missing; NULL: "Bearer" */
    /* Formats an error, or NULL: returns the body, owned by the caller. May add headers. type and
     * param as in answer_fail(); takes message. */
    json_t *(*error)(struct request *r, int status, const char *type, const char *param,
                     json_t *message);
    /* Identifies callers without a key, or NULL. 1: the caller is *ret; 0: a key decides; -1: the
     * request has been answered. */
    int (*identify)(struct request *r, void *arg, struct caller *ret);
    void *identify_arg; /* borrowed */
    /* For a door with a table below one route, or NULL: the part of the door that the request
     * is for ("azure/mcp"), and whether the request only reads. */
    const char *(*part)(struct request *r, bool *ret_reads);
    bool drops_nulls;   /* see fields_drop_nulls() */
    bool correlates;    /* every answer has x-correlation-id: the client's, else the request's id */
    const char *prefix; /* "/anthropic": errors of paths below it that match no route have this
                           door's format, too; or NULL */
    const char
        *id_header; /* a further header that every answer says the request's id in, or NULL */
};

/* --- the server --- */

struct http_config {
    struct service *service; /* borrowed */
    const char *hosts;       /* further Host names served without a key, comma-separated; or NULL */
    const char *origins;     /* further Origins allowed ("https://app.example"), or NULL */
    uint64_t max_connections;       /* 0: 10,000 */
    uint64_t max_per_address;       /* 0: no limit */
    uint64_t header_ms;             /* for the whole request head and between pieces of a body */
    const char *tls_cert, *tls_key; /* PEM, both or neither */
    const char *tls_ca;             /* PEM: whose client certificates are believed; or NULL */
    const char *public_url;         /* this server as clients see it, behind a proxy; or NULL */
    /* The user of the process at the other end of a Unix socket, as the host calls it. */
    bool (*peer)(void *arg, int fd, uid_t *ret);
    void *peer_arg;
    /* Of nodes: what they share, and who vouches for them; or NULL. */
    const uint8_t *peer_secret; /* PEER_SECRET_BYTES; borrowed: outlives us */
    const char *peer_ca;        /* a file, or NULL: the system's; likewise */
    /* Files, both or neither: what this node shows to others. With them it takes nothing from a
     * node that shows no certificate of an authority of peer_ca. Likewise. */
    const char *peer_cert, *peer_key;
};
#define PEER_SECRET_BYTES 32

struct http *http_new(struct loop *l, const struct http_config *config, struct err *e);
void http_add(struct http *h, const struct door *d); /* borrowed: outlives us */
/* Takes a listening TCP or Unix socket. local: only this machine can reach it. */
int http_listen(struct http *h, int fd, bool local, struct err *e) MUST_CHECK;
void http_close_listeners(struct http *h); /* no new connections; those there are go on */
bool http_is_idle(struct http *h);         /* no request is in hand */
void http_free(struct http *h);
/* The whole document; owned by the caller. */
json_t *http_openapi(struct http *h);
/* Requests answered, by status / 100, and connections open now. */
struct http_counts {
    uint64_t answers[6];
    uint64_t connections, accepted, refused;
    uint64_t forwarded; /* to other nodes */
};
void http_counts(struct http *h, struct http_counts *ret);

/* --- a request --- */

void *request_ctx(struct request *r);
struct service *request_service(struct request *r);
const struct caller *request_caller(struct request *r);
enum http_method request_method(struct request *r); /* of its route: a HEAD is a GET */
const char *request_route_path(struct request *r);  /* "/v1/sessions/{session}" */
/* Decoded once; no NUL. Everything is borrowed from the request. */
struct str request_path(struct request *r, const char *name);
struct str request_query(struct request *r, const char *name);  /* p NULL: not there */
struct str request_header(struct request *r, const char *name); /* likewise */
/* One that may be there several times: the next of its values, *at being 0 at first. */
struct str request_query_next(struct request *r, const char *name, size_t *at);
/* The key or token that came with it; empty: none. */
struct str request_secret(struct request *r);
json_t *request_json(struct request *r);    /* BODY_JSON: never NULL */
struct str request_body(struct request *r); /* BODY_BYTES */
/* BODY_BYTES as JSON, as json_read_any() reads it; a long one has been parsed by a worker already.
 * The caller owns *ret. */
int request_value(struct request *r, json_t **ret, struct err *e) MUST_CHECK;
/* Begins the links of every door: public_url, else "https://host" as the client reached us, and ""
 * without a Host header. No slash at the end. */
const char *request_base_url(struct request *r);
/* Over a Unix socket: the user id of the client's process, on the host. False: unknown. */
bool request_peer(struct request *r, uid_t *ret);
/* Over TLS: the subject of the client's certificate. 1: one of an authority of tls_ca, valid now,
 * and for clients; 0: it has shown none, or none is asked for; -1: it has shown one that is not
 * good. */
struct subject {
    char cn[128]; /* its one common name, or "" */
    char dn[512]; /* as RFC 4514 writes it: "CN=storage,O=Example" */
};
int request_subject(struct request *r, struct subject *ret);
/* page= of a list: after, limit (1 to 1000, default 100). */
struct page request_page(struct request *r);
bool request_is_head(struct request *r); /* of a GET: only the headers are wanted */

struct upload {
    struct str field, name, mime; /* name: as the client sent it; empty for BODY_RAW */
    struct blob *blob;            /* owned by the request until taken: set to NULL */
    struct str text;              /* of a form field that is no file; blob is NULL */
    uint64_t size;
};
struct upload *request_uploads(struct request *r, size_t *ret_count);

/* fn(p) when the request ends. */
void request_keep(struct request *r, void (*fn)(void *), void *p);
/* The client has gone before the answer was complete: called at most once. The handler still
 * answers, or drops. */
void request_on_gone(struct request *r, loop_fn *fn, void *arg);
void request_drop(struct request *r);
/* In a function that request_keep() calls: all bytes of the answer went out to the client. */
bool request_is_sent(struct request *r);

/* --- the answer --- */

/* Before any of the calls below. */
void answer_header(struct request *r, const char *name, const char *value);
void answer_json(struct request *r, int status, json_t *value); /* takes value */
void answer_text(struct request *r, int status, const char *mime, struct str text);
/* The same with 200, or as much of it as the Range header asks for. */
void answer_range(struct request *r, const char *mime, struct str text);
void answer_empty(struct request *r, int status);
/* {"error":{"type","message","param","request_id"}} with the status of e->kind. ERR_HOST is logged
 * with its text and told without it. param: or NULL. */
void answer_error(struct request *r, const struct err *e, const char *param);
void answer_fail(struct request *r, int status, const char *type, const char *param,
                 const char *fmt, ...) PRINTF(5, 6);
/* Takes fd, a regular file. Ranges, HEAD, ETag (hash, or NULL) and If-None-Match are seen to.
 * name: for Content-Disposition, or empty. */
void answer_file(struct request *r, int fd, uint64_t size, const char *mime, struct str name,
                 const char *hash);

/* --- streams: bodies of unknown length --- */

/* Headers go out at once. ping: sent after 15 silent seconds, a static string; or empty. */
void answer_stream(struct request *r, int status, const char *mime, struct str ping);
void answer_stream_put(struct request *r, struct str bytes); /* copies */
void answer_stream_end(struct request *r);

/* Back-pressure: a stream is held from when more than STREAM_HIGH bytes wait for the client until
 * fewer than STREAM_LOW do, or the client has gone. fn(arg, true) is called by the put that makes
 * it too much, fn(arg, false) from the loop. */
#define STREAM_HIGH (1 * MiB)
#define STREAM_LOW  (256 * KiB)
typedef void hold_fn(void *arg, bool held);
void answer_stream_on_hold(struct request *r, hold_fn *fn, void *arg);
bool answer_stream_is_held(const struct request *r);
size_t answer_stream_waits(const struct request *r); /* bytes */
/* Puts the part of all from *at on until the stream is held; true: that was the rest. */
bool answer_stream_put_some(struct request *r, struct str all, size_t *at);

/* Events: a stream with status 200, its Content-Type and a ping that readers ignore. */
enum event_format { EVENTS_SSE, EVENTS_NDJSON };
void answer_events(struct request *r, enum event_format format);
/* data: one line. id, name: or NULL; a line of JSON has neither. */
void answer_event(struct request *r, const char *id, const char *name, struct str data);
/* Appends a server-sent event to b, for doors that keep what they have sent. */
void event_write(struct buf *b, const char *id, const char *name, struct str data);

/* --- for doors that speak something else inside --- */

/* Strict: no duplicate members, no NUL, limits of base/json.h. Any value; owned by the caller.
 * ERR_LIMIT: more values than one text may hold. */
int json_read_any(struct str text, json_t **ret, struct err *e) MUST_CHECK;
/* Against a table without references to schemas; param gets the path of what is wrong. */
#define FIELD_PATH_MAX 128 /* "files[0].path" */
int fields_check(const struct field *fields, const json_t *object, char param[FIELD_PATH_MAX],
                 struct err *e) MUST_CHECK;
/* Null counts as not given where a member may be left out: models and typed clients write it so. */
void fields_drop_nulls(const struct field *fields, json_t *object);
json_t *fields_schema(const struct field *fields); /* JSON Schema; owned by the caller */

/* --- channels: a sandbox on another node (channel.c). Two requests of the path {channel} make one:
 * what comes down is the answer to the GET, what goes up the body of the POST. --- */

request_fn handle_channel;     /* of the GET */
request_fn handle_channel_end; /* of the POST, when its body is over */

/* What the status of an err is: 400, 404, 409, 413, 429, 500, 503. */
int http_status_of(const struct err *e);
const char *http_type_of(const struct err *e); /* "not_found": its name in an answer */
