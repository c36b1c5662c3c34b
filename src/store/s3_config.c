/* Checks the settings of S3: bucket, region, endpoint, prefix. */
#include "store/store_int.h"

#define BUCKET_MIN 3
#define BUCKET_MAX 63
#define PREFIX_MAX 256
#define LOWER      "abcdefghijklmnopqrstuvwxyz0123456789-"

static bool is_of(const char *text, const char *letters)
{
    return *text && strspn(text, letters) == strlen(text);
}

/* Each part of the path stands for itself: nothing that a proxy on the way would put right. */
static bool is_prefix(const char *text)
{
    if (!*text)
        return true;
    return strlen(text) <= PREFIX_MAX && is_of(text, S3_SAFE) && *text != '/' &&
           text[strlen(text) - 1] != '/' && !strstr(text, "//") && !strstr(text, "..") &&
           !strstr(text, "./") && !strstr(text, "/.");
}

static bool is_endpoint(const char *text)
{
    const char *host = strstr(text, "://");

    if (strncmp(text, "https://", 8) != 0 && strncmp(text, "http://", 7) != 0)
        return false;
    host += 3;
    if (strlen(host) > 0 && host[strlen(host) - 1] == '/')
        return strcspn(host, "/?#@ ") == strlen(host) - 1 && host[0] != '/';
    return *host && strcspn(host, "/?#@ ") == strlen(host);
}

int s3_config_check(const struct s3_config *c, struct err *e)
{
    size_t n = strlen(c->bucket);

    if (n < BUCKET_MIN || n > BUCKET_MAX || !is_of(c->bucket, LOWER "."))
        return err_set(e, ERR_CALLER, "'%.100s' is not the name of a bucket", c->bucket);
    if (!is_prefix(c->prefix))
        return err_set(e, ERR_CALLER,
                       "the prefix '%.100s' is not made of letters, digits and -_./ alone",
                       c->prefix);
    if (!is_of(c->region, LOWER))
        return err_set(e, ERR_CALLER, "'%.100s' is not the name of a region", c->region);
    if (!is_endpoint(c->endpoint))
        return err_set(e, ERR_CALLER,
                       "the endpoint '%.200s' is not https://HOST or http://HOST, with :PORT where "
                       "it has one",
                       c->endpoint);
    return 0;
}
