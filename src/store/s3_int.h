/* Private to the store: one S3 server, as requests that block. */
#pragma once

#include "store/store_int.h"

#define S3_KEY_MAX  512 /* of ours, below the prefix */
#define S3_DATE_MAX 32  /* 20260102T030405Z */

/* S3 is trusted with nothing but the durability of what it has acknowledged: what it sends is
 * hashed before it is handed out, its answers have limits, redirects are not followed. */
struct s3;

/* Tries nothing yet. The strings of config are copied. */
struct s3 *s3_new(const struct s3_config *config, struct err *e);
void s3_free(struct s3 *s);

/* --- s3_wire.c: one request --- */

typedef int s3_body_fn(void *arg, struct str bytes, struct err *e);

struct s3_request {
    const char *method;
    const char *key;   /* below the prefix; NULL: the bucket itself */
    const char *query; /* in the order of its names, with %XX, each with a '='; or NULL */
    /* The body, one of them. */
    struct str text;
    int fd; /* borrowed; where size > 0 or has_body */
    uint64_t at, size;
    bool has_body;
    const char *hash; /* SHA-256 of the body in hex; NULL: it has none */
    /* The answer. */
    s3_body_fn *on_body; /* of a status 2xx; or NULL: into text_of */
    void *arg;
    uint64_t from;    /* only the bytes from here on */
    const char *date; /* the time that is signed, or NULL: now. S3 refuses a request that reaches it
                         a quarter of an hour after that */
    bool once;        /* is not repeated */
    bool probe;       /* goes out although S3 is away */
};

struct s3_answer {
    int status;             /* 2xx, 404, or 416 */
    struct buf text;        /* owned: the body, where nobody else takes it */
    uint64_t length;        /* of the body, as S3 says */
    char etag[128];         /* with its quotes, or "" */
    char date[S3_DATE_MAX]; /* when S3 says it was, as a request signs it; "" */
    int64_t date_s;         /* the same since 1970, or 0 */
};
void s3_answer_done(struct s3_answer *a);

/* With retries. -1 and ERR_AWAY: S3 does not answer, or refuses us. An error of on_body is handed
 * on. */
int s3_call(struct s3 *s, const struct s3_request *q, struct s3_answer *ret,
            struct err *e) MUST_CHECK;
/* What s3_call() last found; ERR_AWAY. From any thread. */
bool s3_is_away(struct s3 *s, struct err *e);
/* Whether S3 takes what is written: one try. ret_status: what S3 has answered, or 0. */
int s3_probe(struct s3 *s, int *ret_status, struct err *e) MUST_CHECK;
const char *s3_shown(const struct s3 *s); /* s3://bucket/prefix */
/* "prefix/", or "". */
const char *s3_prefix(const struct s3 *s);
/* No more waiting: retries and back-offs end. */
void s3_stop(struct s3 *s);

/* --- s3_blob.c: a blob is an object --- */

/* All of fd, which has so many bytes and this SHA-256. When it returns, S3 has it. */
int s3_put(struct s3 *s, int fd, const char *hash, uint64_t size, struct err *e) MUST_CHECK;
/* In order, from the start; a connection that breaks is resumed. ERR_MISSING. */
int s3_get(struct s3 *s, const char *hash, s3_body_fn *fn, void *arg, struct err *e) MUST_CHECK;
/* Once, as signed at this date. 0: it is gone. -1: it may be gone, now or a little later. */
int s3_delete(struct s3 *s, const char *hash, const char *date, struct err *e) MUST_CHECK;

/* --- s3_list.c --- */

struct s3_object {
    char hash[HASH_HEX];
    int64_t modified_s; /* since 1970 */
    uint64_t size;
};
struct s3_page {
    struct s3_object *at; /* owned */
    size_t count;
    char last[S3_KEY_MAX]; /* the key after which to go on; "": that was the end */
    char date[S3_DATE_MAX];
    int64_t date_s;
};
/* Blobs in the order of their names, after this key ("": from the first). Other objects are left
 * out. */
int s3_list(struct s3 *s, const char *after, struct s3_page *ret, struct err *e) MUST_CHECK;
/* Gives up uploads in parts that began so long ago and were never completed. */
int s3_abort_old(struct s3 *s, int64_t older_s, struct err *e) MUST_CHECK;

/* "ab/cdef..." */
void s3_key_of(const char *hash, char ret[S3_KEY_MAX]);
/* %XX but letters, digits and -_.~ */
int s3_encode(struct buf *b, const char *text);

/* --- s3_xml.c --- */

/* The text of the next <tag> at *at or after it, and moves there; n == 0 and p == NULL: none. */
struct str xml_next(struct str xml, const char *tag, size_t *at);
struct str xml_field(struct str xml, const char *tag); /* the first */
/* "" where it does not fit. */
void xml_copy(struct str from, char *ret, size_t size);
/* "2026-01-02T03:04:05.000Z" since 1970; 0: it is no time. */
int64_t xml_time(struct str text);
/* The page in this XML; of other keys than ours it takes nothing. */
void s3_page_parse(struct str xml, const char *prefix, struct s3_page *ret);
void s3_page_done(struct s3_page *p);
