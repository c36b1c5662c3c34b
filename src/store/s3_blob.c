/*
 * Blobs as objects of S3: prefix/ab/cdef..., named by their SHA-256 as on the disk.
 *
 * A small one is one request. A large one goes in parts, each with its own hash; it gets its name
 * with the last request, so half an upload is never seen. An upload that fails is given up; what
 * could not be given up, because S3 was away, is found by s3_abort_old().
 */
#include "store/s3_int.h"

#include "loop/loop.h"

#include <gnutls/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define PART_SIZE  (16 * MiB)
#define PARTS_MAX  10000     /* S3's own limit */
#define ETAGS_MAX  (2 * MiB) /* 10,000 of them */
#define BREAKS_MAX 100       /* of one download; each has brought something */
#define READ_SIZE  (256 * KiB)

void s3_key_of(const char *hash, char ret[S3_KEY_MAX])
{
    snprintf(ret, S3_KEY_MAX, "%.2s/%s", hash, hash + 2);
}

/* --- up --- */

static int put_whole(struct s3 *s, const char *key, int fd, const char *hash, uint64_t size,
                     struct err *e)
{
    const struct s3_request q = {
        .method = "PUT", .key = key, .fd = fd, .size = size, .has_body = true, .hash = hash};
    struct s3_answer a;
    int rc = s3_call(s, &q, &a, e);

    if (rc == 0 && a.status != 200)
        rc = err_set(e, ERR_HOST, "S3 answers an upload with %d", a.status);
    s3_answer_done(&a);
    return rc;
}

/* An upload in parts. */
struct s3_upload {
    struct s3 *s3;   /* borrowed */
    const char *key; /* borrowed */
    char id[1024];   /* as S3 says it, with %XX */
    int fd;          /* borrowed */
    uint64_t size, part;
    struct buf list; /* owned: the XML that completes it */
};

static int begin(struct s3_upload *u, struct err *e)
{
    const struct s3_request q = {.method = "POST", .key = u->key, .query = "uploads="};
    AUTO(buf_done) struct buf id = BUF(sizeof(u->id) - 1);
    char plain[sizeof(u->id)];
    struct s3_answer a;
    int rc = s3_call(u->s3, &q, &a, e);

    if (rc == 0) {
        size_t at = 0;
        struct str said = xml_next(buf_str(&a.text), "UploadId", &at);
        snprintf(plain, sizeof(plain), "%.*s", (int)(said.n < sizeof(plain) ? said.n : 0),
                 said.n ? said.p : "");
        rc = *plain ? s3_encode(&id, plain) : -1;
        if (rc < 0)
            err_set(e, ERR_HOST, "S3 begins no upload in parts: %d", a.status);
        else
            snprintf(u->id, sizeof(u->id), "%.*s", (int)id.n, id.p);
    }
    s3_answer_done(&a);
    return rc;
}

static int hash_part(int fd, uint64_t at, uint64_t size, char ret[HASH_HEX], struct err *e)
{
    AUTO_FREE char *bytes = mem_zalloc(READ_SIZE);
    gnutls_hash_hd_t hash;
    uint8_t sum[32];
    ssize_t n = 1;

    if (gnutls_hash_init(&hash, GNUTLS_DIG_SHA256) < 0)
        return err_set(e, ERR_HOST, "SHA-256 is not available");
    while (size > 0 && n != 0) {
        n = pread(fd, bytes, size < READ_SIZE ? (size_t)size : READ_SIZE, (off_t)at);
        if (n < 0 && errno != EINTR)
            break;
        if (n > 0) {
            gnutls_hash(hash, bytes, (size_t)n);
            at += (uint64_t)n;
            size -= (uint64_t)n;
        }
        work_yield();
    }
    gnutls_hash_deinit(hash, sum);
    hash_show(sum, ret);
    return size > 0 ? err_sys(e, "read a blob") : 0;
}

static int put_part(struct s3_upload *u, unsigned number, uint64_t at, struct err *e)
{
    uint64_t size = u->size - at < u->part ? u->size - at : u->part;
    char query[sizeof(u->id) + 64], hash[HASH_HEX];
    struct s3_request q = {.method = "PUT",
                           .key = u->key,
                           .query = query,
                           .fd = u->fd,
                           .at = at,
                           .size = size,
                           .has_body = true,
                           .hash = hash};
    struct s3_answer a;
    int rc;

    snprintf(query, sizeof(query), "partNumber=%u&uploadId=%s", number, u->id);
    if (hash_part(u->fd, at, size, hash, e) < 0)
        return -1;
    rc = s3_call(u->s3, &q, &a, e);
    if (rc == 0 && (a.status != 200 || !*a.etag))
        rc = err_set(e, ERR_HOST, "S3 answers a part of an upload with %d", a.status);
    if (rc == 0)
        buf_printf(&u->list, "<Part><PartNumber>%u</PartNumber><ETag>%s</ETag></Part>", number,
                   a.etag);
    s3_answer_done(&a);
    return rc;
}

static int put_parts(struct s3_upload *u, struct err *e)
{
    unsigned number = 1;

    for (uint64_t at = 0; at < u->size; at += u->part)
        if (put_part(u, number++, at, e) < 0)
            return -1;
    return 0;
}

/* The answer may be 200 and an error all the same: S3 begins it before it knows. */
static int complete(struct s3_upload *u, struct err *e)
{
    char query[sizeof(u->id) + 16];
    struct s3_request q = {.method = "POST", .key = u->key, .query = query};
    struct s3_answer a;
    size_t at = 0;
    int rc;

    buf_put(&u->list, STR("</CompleteMultipartUpload>"));
    if (buf_check(&u->list, e) < 0)
        return -1;
    snprintf(query, sizeof(query), "uploadId=%s", u->id);
    q.text = buf_str(&u->list);
    rc = s3_call(u->s3, &q, &a, e);
    if (rc == 0 &&
        (a.status != 200 || !xml_next(buf_str(&a.text), "CompleteMultipartUploadResult", &at).p))
        rc = err_set(e, ERR_AWAY, "the store of files, %s, has not completed an upload: %d",
                     s3_shown(u->s3), a.status);
    s3_answer_done(&a);
    return rc;
}

static void give_up(struct s3_upload *u)
{
    char query[sizeof(u->id) + 16];
    const struct s3_request q = {.method = "DELETE", .key = u->key, .query = query, .once = true};
    struct s3_answer a;
    struct err ignored;

    snprintf(query, sizeof(query), "uploadId=%s", u->id);
    (void)!s3_call(u->s3, &q, &a, &ignored);
    s3_answer_done(&a);
}

/* Whether it is there with so many bytes: the answer to the last request may have been lost. */
static bool is_there(struct s3_upload *u)
{
    const struct s3_request q = {.method = "HEAD", .key = u->key};
    struct s3_answer a;
    struct err ignored;
    bool there = s3_call(u->s3, &q, &a, &ignored) == 0 && a.status == 200 && a.length == u->size;

    s3_answer_done(&a);
    return there;
}

static int put_in_parts(struct s3 *s, const char *key, int fd, uint64_t size, struct err *e)
{
    uint64_t least = (size + PARTS_MAX - 1) / PARTS_MAX;
    struct s3_upload u = {.s3 = s,
                          .key = key,
                          .fd = fd,
                          .size = size,
                          .part = least > PART_SIZE ? least : PART_SIZE,
                          .list = BUF(ETAGS_MAX)};
    int rc = begin(&u, e);

    if (rc == 0) {
        buf_put(&u.list, STR("<CompleteMultipartUpload>"));
        struct err why = {0};
        rc = put_parts(&u, &why) < 0 || (complete(&u, &why) < 0 && !is_there(&u)) ? -1 : 0;
        if (rc < 0) {
            *e = why;
            give_up(&u);
        }
    }
    buf_done(&u.list);
    return rc;
}

int s3_put(struct s3 *s, int fd, const char *hash, uint64_t size, struct err *e)
{
    char key[S3_KEY_MAX];

    s3_key_of(hash, key);
    return size <= PART_SIZE ? put_whole(s, key, fd, hash, size, e)
                             : put_in_parts(s, key, fd, size, e);
}

/* --- down --- */

struct s3_download {
    s3_body_fn *fn;
    void *arg;
    uint64_t taken;
    bool refused; /* by fn */
};

static int on_part(void *arg, struct str bytes, struct err *e)
{
    struct s3_download *d = arg;

    if (d->fn(d->arg, bytes, e) < 0) {
        d->refused = true;
        return -1;
    }
    d->taken += bytes.n;
    return 0;
}

int s3_get(struct s3 *s, const char *hash, s3_body_fn *fn, void *arg, struct err *e)
{
    struct s3_download d = {.fn = fn, .arg = arg};
    char key[S3_KEY_MAX];

    s3_key_of(hash, key);
    for (int breaks = 0;; breaks++) {
        const struct s3_request q = {
            .method = "GET", .key = key, .on_body = on_part, .arg = &d, .from = d.taken};
        uint64_t before = d.taken;
        struct s3_answer a;
        struct err why = {0};
        int rc = s3_call(s, &q, &a, &why), status = a.status;
        s3_answer_done(&a);
        if (rc == 0 && status == 404)
            return err_set(e, ERR_MISSING, "the blob is not there");
        if (rc == 0) /* 416: the connection broke behind the last byte */
            return 0;
        if (d.refused || d.taken == before || breaks == BREAKS_MAX) {
            *e = why;
            return -1;
        }
    }
}

int s3_delete(struct s3 *s, const char *hash, const char *date, struct err *e)
{
    char key[S3_KEY_MAX];
    struct s3_answer a;
    int rc;

    s3_key_of(hash, key);
    const struct s3_request q = {.method = "DELETE", .key = key, .date = date, .once = true};
    rc = s3_call(s, &q, &a, e);
    s3_answer_done(&a);
    return rc;
}
