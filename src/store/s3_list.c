/* Lists the objects of a bucket, and gives up uploads that were never finished. */
#include "store/s3_int.h"

#include <stdio.h>

#define PAGE_MAX  1000 /* S3's own */
#define QUERY_MAX 4096

int s3_encode(struct buf *b, const char *text)
{
    static const char plain[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~";

    for (; *text; text++)
        if (strchr(plain, *text))
            buf_put(b, (struct str){text, 1});
        else
            buf_printf(b, "%%%02X", (unsigned char)*text);
    return b->full ? -1 : 0;
}

/* The names of the query stand in their order: libcurl signs it as it is. */
int s3_list(struct s3 *s, const char *after, struct s3_page *ret, struct err *e)
{
    AUTO(buf_done) struct buf b = BUF(QUERY_MAX);
    struct s3_request q = {.method = "GET"};
    struct s3_answer a;
    int rc;

    *ret = (struct s3_page){0};
    buf_printf(&b, "list-type=2&max-keys=%d&prefix=", PAGE_MAX);
    s3_encode(&b, s3_prefix(s));
    if (*after) {
        buf_put(&b, STR("&start-after="));
        s3_encode(&b, after);
    }
    buf_put(&b, (struct str){"", 1});
    if (buf_check(&b, e) < 0)
        return -1;
    q.query = b.p;
    rc = s3_call(s, &q, &a, e);
    if (rc == 0 && a.status != 200)
        rc = err_set(e, ERR_AWAY, "the store of files, %s, lists nothing: %d", s3_shown(s),
                     a.status);
    if (rc == 0) {
        s3_page_parse(buf_str(&a.text), s3_prefix(s), ret);
        memcpy(ret->date, a.date, sizeof(ret->date));
        ret->date_s = a.date_s;
    }
    s3_answer_done(&a);
    return rc;
}

/* --- uploads that nobody completed --- */

static int abort_one(struct s3 *s, struct str xml, struct err *e)
{
    AUTO(buf_done) struct buf query = BUF(QUERY_MAX);
    char key[S3_KEY_MAX], id[1024];
    struct s3_request q = {.method = "DELETE", .once = true};
    size_t n = strlen(s3_prefix(s));
    struct s3_answer a;
    int rc;

    xml_copy(xml_field(xml, "Key"), key, sizeof(key));
    xml_copy(xml_field(xml, "UploadId"), id, sizeof(id));
    if (strncmp(key, s3_prefix(s), n) != 0 || !*id || strspn(key, S3_SAFE) != strlen(key))
        return 0;
    buf_put(&query, STR("uploadId="));
    s3_encode(&query, id);
    buf_put(&query, (struct str){"", 1});
    if (buf_check(&query, e) < 0)
        return -1;
    q.key = key + n;
    q.query = query.p;
    rc = s3_call(s, &q, &a, e);
    s3_answer_done(&a);
    return rc;
}

static int abort_listed(struct s3 *s, const struct s3_answer *a, int64_t older_s, struct err *e)
{
    struct str one;
    size_t at = 0;

    while ((one = xml_next(buf_str(&a->text), "Upload", &at)).p) {
        int64_t began_s = xml_time(xml_field(one, "Initiated"));
        if (began_s > 0 && a->date_s - began_s > older_s && abort_one(s, one, e) < 0)
            return -1;
    }
    return 0;
}

int s3_abort_old(struct s3 *s, int64_t older_s, struct err *e)
{
    AUTO(buf_done) struct buf b = BUF(QUERY_MAX);
    struct s3_request q = {.method = "GET"};
    struct s3_answer a;
    int rc;

    buf_put(&b, STR("prefix="));
    s3_encode(&b, s3_prefix(s));
    buf_put(&b, STR("&uploads="));
    buf_put(&b, (struct str){"", 1});
    if (buf_check(&b, e) < 0)
        return -1;
    q.query = b.p;
    rc = s3_call(s, &q, &a, e);
    if (rc == 0 && a.status == 200)
        rc = abort_listed(s, &a, older_s, e);
    s3_answer_done(&a);
    return rc;
}
