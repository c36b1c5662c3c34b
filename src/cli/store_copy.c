/*
 * retort store copy: moves what a server keeps between a state directory, PostgreSQL and S3.
 *
 * Passwords and keys are read as whoever calls. Root then becomes the owner of the directory, so
 * that what is made there stays the server's.
 */
#include "cli/serve_int.h"
#include "cli/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define TTY_US   INT64_C(200000)
#define PLAIN_US INT64_C(10000000)

/* --- FROM and TO --- */

/* One of the two, in its parts: a directory, or a database, a bucket, or both. */
struct copy_end {
    char *dir, *url, *s3; /* owned, or NULL */
    struct store_place place;
};

static bool is_s3(const char *text)
{
    return strncmp(text, "s3://", 5) == 0;
}

static void end_done(struct copy_end *end)
{
    free(end->dir);
    free(end->url);
    free(end->s3);
}

static int take_url(struct copy_end *end, struct str one, struct err *e)
{
    AUTO_FREE char *text = mem_strndup(one);
    char **to = is_s3(text) ? &end->s3 : &end->url;

    if (!is_s3(text) && store_url_check(text, e) < 0)
        return -1;
    if (*to)
        return err_set(e, ERR_CALLER, "there are two of a kind in it");
    *to = take_ptr(&text);
    return 0;
}

/* Where the second URL begins, or its end: a list of hosts has commas, too. */
static const char *second_of(const char *word)
{
    for (const char *comma = word; (comma = strchr(comma, ',')); comma++)
        if (is_s3(comma + 1) || store_url_is(comma + 1))
            return comma;
    return word + strlen(word);
}

static int end_parse(struct copy_end *end, const char *word, struct err *e)
{
    const char *cut = second_of(word);
    char path[STATE_PATH_MAX];
    struct settings s = {.state = (char *)word};
    int rc;

    if (!is_s3(word) && !store_url_is(word)) {
        rc = *word ? state_find(&s, path, e) : err_set(e, ERR_CALLER, "a place has a name");
        if (rc == 0)
            end->dir = mem_strdup(path);
    } else {
        rc = take_url(end, (struct str){word, (size_t)(cut - word)}, e);
        if (rc == 0 && *cut)
            rc = take_url(end, str_of(cut + 1), e);
    }
    end->place =
        (struct store_place){.shown = end->dir ? end->dir : word, .dir = end->dir, .url = end->url};
    return rc < 0 ? err_wrap(e, "%s", word) : 0;
}

/* --- progress --- */

struct copy_desk {
    struct copy_end from, to;
    struct blob_set blobs;
    char *password; /* owned, or NULL */
    int lock;       /* owned: of the directory, or -1 */
    bool tty;
    bool mid_line;
    int64_t told_us;
};

static void on_progress(void *arg, const char *what, uint64_t done, uint64_t total)
{
    struct copy_desk *d = arg;
    int64_t now = time_mono_us();

    if (now - d->told_us < (d->tty ? TTY_US : PLAIN_US) && done != total)
        return;
    if (done == 0)
        return;
    d->told_us = now;
    fprintf(stderr, "%s%s: %llu", d->tty ? "\r\033[K" : "", what, (unsigned long long)done);
    if (total)
        fprintf(stderr, " of %llu", (unsigned long long)total);
    if (!d->tty)
        fputc('\n', stderr);
    d->mid_line = d->tty;
}

static void end_line(struct copy_desk *d)
{
    if (d->mid_line)
        fputc('\n', stderr);
    d->mid_line = false;
}

static void on_damaged(void *arg, const char *hash)
{
    end_line(arg);
    fprintf(stderr, "retort: damaged: file %s\n", hash);
}

/* --- copy --- */

/* A bucket is named in an argument here, and not in a setting. */
static int read_secrets(struct copy_desk *d, const struct settings *s, struct err *e)
{
    struct settings mine = *s;
    struct store_config config;
    const char *bucket = d->from.s3 ? d->from.s3 : d->to.s3;

    mine.serve.blobs = (char *)bucket;
    mine.store = d->from.url ? d->from.url : d->to.url;
    if (s->store_password_file && !mine.store)
        return err_set(e, ERR_CALLER, "--store-password-file needs a database");
    if (blobs_settings_check(&mine, e) < 0 || blob_set_open(&d->blobs, &mine, e) < 0 ||
        state_store(&mine, &config, &d->password, e) < 0)
        return -1;
    if (d->from.s3)
        d->from.place.s3 = &d->blobs.s3;
    if (d->to.s3)
        d->to.place.s3 = &d->blobs.s3;
    d->from.place.password = d->to.place.password = d->password;
    return 0;
}

/* As the owner of the directory; nobody else uses it from here on. */
static int take_dir(struct copy_desk *d, const struct settings *s, struct err *e)
{
    const char *dir = d->from.dir ? d->from.dir : d->to.dir;

    if (!d->from.dir == !d->to.dir)
        return err_set(e, ERR_CALLER,
                       "one of the two must be a state directory, and the other a database, a "
                       "bucket or both. A directory is copied with cp -a, a database with pg_dump, "
                       "a bucket with a tool for S3");
    if (d->from.dir && access(dir, F_OK) < 0)
        return err_set(e, ERR_CALLER, "there is no directory %s", dir);
    if (state_become(dir, s, e) < 0 || state_reach(dir, e) < 0)
        return -1;
    d->lock = state_lock(dir, e);
    return d->lock < 0 ? -1 : 0;
}

static int copy(struct copy_desk *d, const struct settings *s, struct err *e)
{
    const struct store_copy_watch watch = {on_progress, on_damaged, d};
    struct store_copied done;
    char size[SIZE_SHOWN];
    int rc;

    if (end_parse(&d->from, s->words.item[1], e) < 0 ||
        end_parse(&d->to, s->words.item[2], e) < 0 || read_secrets(d, s, e) < 0 ||
        take_dir(d, s, e) < 0)
        return -1;
    rc = store_copy(&d->from.place, &d->to.place, &watch, &done, e);
    end_line(d);
    if (rc == 0)
        printf("copied and compared: %llu rows, %llu files of %s\n", (unsigned long long)done.rows,
               (unsigned long long)done.blobs, size_show(size, done.bytes));
    return rc;
}

int store_main(const struct settings *s)
{
    struct copy_desk d = {.lock = -1, .blobs.ca = -1, .tty = isatty(STDERR_FILENO)};
    struct err e = {0};
    int rc = -1;

    if (s->words.count != 3 || strcmp(s->words.item[0], "copy") != 0)
        err_set(&e, ERR_CALLER, "write it like this: retort store copy FROM TO");
    else
        rc = copy(&d, s, &e);
    if (d.password)
        explicit_bzero(d.password, strlen(d.password));
    free(d.password);
    blob_set_done(&d.blobs);
    end_done(&d.from);
    end_done(&d.to);
    fd_closep(&d.lock);
    if (rc == 0 && fflush(stdout) == 0)
        return EXIT_OK;
    if (rc == 0)
        err_sys(&e, "cannot write to standard output");
    return e.kind == ERR_CALLER ? command_failed(&e) : (command_failed(&e), EXIT_OURS);
}
