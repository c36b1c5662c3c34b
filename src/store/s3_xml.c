/*
 * Parses the answers of S3: the part of XML that they use, without attributes and CDATA. A stranger
 * may have written an answer, so only names that have the form of a blob's name are taken.
 */
#include "store/s3_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define PAGE_MAX 1000 /* S3's own */

static const char *find(struct str in, size_t at, struct str what)
{
    return at >= in.n ? NULL : memmem(in.p + at, in.n - at, what.p, what.n);
}

/* Behind "<tag>" or "<tag ...>", or NULL. */
static const char *open_tag(struct str xml, const char *tag, size_t at)
{
    size_t n = strlen(tag);

    for (const char *p; (p = find(xml, at, STR("<"))); at = (size_t)(p - xml.p) + 1) {
        size_t left = xml.n - (size_t)(p - xml.p);
        if (left < n + 2 || memcmp(p + 1, tag, n) != 0 || (p[n + 1] != '>' && p[n + 1] != ' '))
            continue;
        p = memchr(p, '>', left);
        return p ? p + 1 : NULL;
    }
    return NULL;
}

struct str xml_next(struct str xml, const char *tag, size_t *at)
{
    const char *from = open_tag(xml, tag, *at), *to;
    char close[64];
    int n = snprintf(close, sizeof(close), "</%s>", tag);

    if (!from)
        return (struct str){0};
    to = find(xml, (size_t)(from - xml.p), (struct str){close, (size_t)n});
    if (!to)
        return (struct str){0};
    *at = (size_t)(to - xml.p) + (size_t)n;
    return (struct str){from, (size_t)(to - from)};
}

struct str xml_field(struct str xml, const char *tag)
{
    size_t at = 0;

    return xml_next(xml, tag, &at);
}

void xml_copy(struct str from, char *ret, size_t size)
{
    snprintf(ret, size, "%.*s", (int)(from.n < size ? from.n : 0), from.n ? from.p : "");
}

/* "2026-01-02T03:04:05.000Z"; 0: it is no time. */
int64_t xml_time(struct str text)
{
    char plain[40];
    struct tm tm = {0};

    xml_copy(text, plain, sizeof(plain));
    return strptime(plain, "%Y-%m-%dT%H:%M:%S", &tm) ? timegm(&tm) : 0;
}

/* --- a page of objects --- */

/* prefix "p/": "p/ab/cdef..." is the blob abcdef... */
static bool hash_in(const char *key, const char *prefix, char ret[HASH_HEX])
{
    size_t n = strlen(prefix);

    if (strncmp(key, prefix, n) != 0 || strlen(key + n) != HASH_HEX || key[n + 2] != '/')
        return false;
    snprintf(ret, HASH_HEX, "%.2s%s", key + n, key + n + 3);
    return blob_is_hash(ret);
}

static void take_object(struct s3_page *p, struct str xml, const char *prefix)
{
    struct s3_object o = {.modified_s = xml_time(xml_field(xml, "LastModified"))};
    char size[32];

    xml_copy(xml_field(xml, "Key"), p->last, sizeof(p->last));
    xml_copy(xml_field(xml, "Size"), size, sizeof(size));
    o.size = strtoull(size, NULL, 10);
    if (!hash_in(p->last, prefix, o.hash) || o.modified_s == 0 || p->count == PAGE_MAX)
        return;
    p->at = mem_realloc(p->at, (p->count + 1) * sizeof(*p->at));
    p->at[p->count++] = o;
}

void s3_page_parse(struct str xml, const char *prefix, struct s3_page *ret)
{
    size_t at = 0;
    struct str object, more = xml_field(xml, "IsTruncated");

    while ((object = xml_next(xml, "Contents", &at)).p)
        take_object(ret, object, prefix);
    if (!str_is(more, "true"))
        ret->last[0] = '\0';
}

void s3_page_done(struct s3_page *p)
{
    free(p->at);
    *p = (struct s3_page){0};
}
