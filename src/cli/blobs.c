/*
 * Where the bytes of files are kept, and the keys to that, which are read before the server gives
 * up its rights. A key never comes as an argument: other users can read those.
 */
#include "cli/serve_int.h"

#include <fcntl.h>
#include <ini.h>
#include <stdio.h>
#include <stdlib.h>

#define KEY_FILE_MAX   (8 * KiB)
#define SCHEME         "s3://"
#define REGION_DEFAULT "us-east-1"

/* --- the place --- */

static const char *region_of(const struct settings *s)
{
    const char *env = getenv("AWS_REGION");

    return s->serve.s3_region ? s->serve.s3_region : env && *env ? env : REGION_DEFAULT;
}

static char *amazon(const char *region)
{
    AUTO(buf_done) struct buf b = BUF(4 * KiB);

    buf_printf(&b, "https://s3.%s.amazonaws.com", region);
    return mem_strndup(buf_str(&b));
}

static int read_place(struct blob_set *set, const struct settings *s, struct err *e)
{
    const char *url = s->serve.blobs + strlen(SCHEME), *slash = strchrnul(url, '/');

    if (strncmp(s->serve.blobs, SCHEME, strlen(SCHEME)) != 0)
        return err_set(e, ERR_CALLER, "blobs: '%.200s' is not s3://BUCKET/PREFIX", s->serve.blobs);
    set->bucket = mem_strndup((struct str){url, (size_t)(slash - url)});
    set->prefix = mem_strdup(*slash ? slash + 1 : "");
    if (*set->prefix && set->prefix[strlen(set->prefix) - 1] == '/')
        set->prefix[strlen(set->prefix) - 1] = '\0';
    set->endpoint = s->serve.s3_endpoint ? mem_strdup(s->serve.s3_endpoint) : amazon(region_of(s));
    set->s3 = (struct s3_config){.bucket = set->bucket,
                                 .prefix = set->prefix,
                                 .endpoint = set->endpoint,
                                 .region = region_of(s),
                                 .virtual_host = s->serve.s3_style == S3_VIRTUAL_HOST,
                                 .cache_bytes = s->serve.blob_cache_bytes};
    if (s3_config_check(&set->s3, e) < 0)
        return err_wrap(e, "blobs");
    set->in_s3 = true;
    return 0;
}

/* A setting that does nothing is a mistake. */
static int check_unused(const struct settings *s, struct err *e)
{
    const struct {
        const char *name, *value;
    } rows[] = {
        {"s3-endpoint", s->serve.s3_endpoint},
        {"s3-region",   s->serve.s3_region  },
        {"s3-key-file", s->serve.s3_key_file},
        {"s3-ca",       s->serve.s3_ca      },
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        if (rows[i].value)
            return err_set(e, ERR_CALLER, "%s does nothing without blobs = s3://BUCKET/PREFIX",
                           rows[i].name);
    return 0;
}

int blobs_settings_check(const struct settings *s, struct err *e)
{
    struct blob_set set = {.ca = -1};
    int rc = s->serve.blobs ? read_place(&set, s, e) : check_unused(s, e);

    blob_set_done(&set);
    return rc;
}

/* --- the keys --- */

static void forget(char **secret)
{
    if (*secret)
        explicit_bzero(*secret, strlen(*secret));
    mem_freep(secret);
}

static void take(char **to, const char *value)
{
    forget(to);
    if (value && *value)
        *to = mem_strdup(value);
}

/* As in the file of Amazon's tools: of its sections, [default]. */
static int on_line(void *arg, const char *section, const char *name, const char *value)
{
    struct blob_set *set = arg;
    struct {
        const char *name;
        char **to;
    } rows[] = {
        {"aws_access_key_id",     &set->key_id},
        {"aws_secret_access_key", &set->secret},
        {"aws_session_token",     &set->token },
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        if ((!*section || strcmp(section, "default") == 0) && strcmp(name, rows[i].name) == 0)
            take(rows[i].to, value);
    return 1;
}

static int read_key_file(struct blob_set *set, const char *path, struct err *e)
{
    AUTO_FREE char *text = mem_zalloc(KEY_FILE_MAX);

    if (fd_read_file_at(AT_FDCWD, path, text, KEY_FILE_MAX) < 0) {
        err_sys(e, "s3-key-file: cannot read %s", path);
        e->kind = ERR_CALLER;
        return -1;
    }
    (void)ini_parse_string(text, on_line, set);
    explicit_bzero(text, KEY_FILE_MAX);
    if (!set->key_id || !set->secret)
        return err_set(e, ERR_CALLER,
                       "s3-key-file: %s has no aws_access_key_id and aws_secret_access_key", path);
    return 0;
}

static int read_keys(struct blob_set *set, const struct settings *s, struct err *e)
{
    if (s->serve.s3_key_file)
        return read_key_file(set, s->serve.s3_key_file, e);
    take(&set->key_id, getenv("AWS_ACCESS_KEY_ID"));
    take(&set->secret, getenv("AWS_SECRET_ACCESS_KEY"));
    take(&set->token, getenv("AWS_SESSION_TOKEN"));
    if (!set->key_id || !set->secret)
        return err_set(
            e, ERR_CALLER,
            "blobs in S3 need a key: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or "
            "s3-key-file");
    return 0;
}

int blob_set_open(struct blob_set *set, const struct settings *s, struct err *e)
{
    *set = (struct blob_set){.ca = -1};
    if (!s->serve.blobs)
        return 0;
    if (read_place(set, s, e) < 0 || read_keys(set, s, e) < 0)
        return -1;
    if (s->serve.s3_ca) {
        set->ca = file_keep("s3-ca", s->serve.s3_ca, set->ca_path, e);
        if (set->ca < 0)
            return -1;
        set->s3.ca_file = set->ca_path;
    }
    set->s3.key_id = set->key_id;
    set->s3.secret = set->secret;
    set->s3.token = set->token;
    return 0;
}

void blob_set_done(struct blob_set *set)
{
    free(set->bucket);
    free(set->prefix);
    free(set->endpoint);
    forget(&set->key_id);
    forget(&set->secret);
    forget(&set->token);
    fd_closep(&set->ca);
    *set = (struct blob_set){.ca = -1};
}
