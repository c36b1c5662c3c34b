/*
 * Fetches URLs and says what came of each, for test_fetch.py.
 *
 * usage: fetch-driver [--NAME VALUE]... URL...
 *
 * One line a URL, in the order they end: "ok SIZE MIME NAME" or "fail KIND TEXT". --cancel and
 * --free say when to do that: at "start", when bytes "flow", or (--cancel) when one is "done".
 * --tenants aab: whose each URL is, a letter for each. --sink fail: nothing is accepted.
 *
 * Names that end in .test are looked up in names.c.
 */
#include "fetch/fetch.h"
#include "loop/loop.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

struct driver {
    struct loop *loop;
    struct fetcher *fetcher;
    struct one *ones;
    int left;
    const char *cancel, *end, *sink, *tenants;
    FILE *out;
    atomic_bool flowed;
};

struct one {
    struct driver *driver;
    struct fetch *fetch; /* NULL after done */
    uint64_t got;
};

static void cancel_all(void *arg)
{
    struct driver *d = arg;

    for (struct one *o = d->ones; o->driver; o++)
        if (o->fetch)
            fetch_cancel(o->fetch);
}

static void free_fetcher(void *arg)
{
    struct driver *d = arg;

    fetcher_free(d->fetcher);
    d->fetcher = NULL;
}

static bool is(const char *setting, const char *value)
{
    return setting && strcmp(setting, value) == 0;
}

static int on_bytes(void *arg, struct str bytes, struct err *e)
{
    struct one *o = arg;
    struct driver *d = o->driver;

    if (is(d->sink, "fail"))
        return err_set(e, ERR_HOST, "the disk is full");
    if (!atomic_exchange(&d->flowed, true)) {
        if (is(d->cancel, "flow"))
            loop_post(d->loop, cancel_all, d);
        if (is(d->end, "flow"))
            loop_post(d->loop, free_fetcher, d);
    }
    o->got += bytes.n;
    if (d->out && fwrite(bytes.p, 1, bytes.n, d->out) != bytes.n)
        return err_sys(e, "write");
    return 0;
}

static void on_done(void *arg, const struct fetch_result *r, const struct err *failed)
{
    static const char *const kinds[] = {
        [ERR_NONE] = "none",       [ERR_CALLER] = "caller",     [ERR_LIMIT] = "limit",
        [ERR_MISSING] = "missing", [ERR_CONFLICT] = "conflict", [ERR_BUSY] = "busy",
        [ERR_DENIED] = "denied",   [ERR_FULL] = "full",         [ERR_DAMAGED] = "damaged",
        [ERR_SETUP] = "setup",     [ERR_HOST] = "host"};
    struct one *o = arg;
    struct driver *d = o->driver;

    assert(o->fetch && !r == !!failed);
    o->fetch = NULL;
    if (failed)
        printf("fail %s %s\n", kinds[failed->kind], failed->text);
    else
        printf("ok %llu %s %s\n", (unsigned long long)r->size, r->mime, r->name);
    assert(failed || r->size == o->got);
    if (!failed && is(d->cancel, "done"))
        cancel_all(d);
    if (--d->left == 0)
        loop_stop(d->loop);
}

static int read_options(int argc, char **argv, struct driver *d, struct fetch_config *c)
{
    int at = 1;

    for (; at + 1 < argc && strncmp(argv[at], "--", 2) == 0; at += 2) {
        const char *name = argv[at] + 2, *value = argv[at + 1];
        if (strcmp(name, "allow") == 0)
            c->allow = value;
        else if (strcmp(name, "private") == 0)
            c->allow_private = strcmp(value, "0") != 0;
        else if (strcmp(name, "bytes") == 0)
            c->max_bytes = strtoull(value, NULL, 10);
        else if (strcmp(name, "ms") == 0)
            c->max_ms = strtoull(value, NULL, 10);
        else if (strcmp(name, "redirects") == 0)
            c->max_redirects = (unsigned)strtoul(value, NULL, 10);
        else if (strcmp(name, "parallel") == 0)
            c->max_parallel = (unsigned)strtoul(value, NULL, 10);
        else if (strcmp(name, "cancel") == 0)
            d->cancel = value;
        else if (strcmp(name, "free") == 0)
            d->end = value;
        else if (strcmp(name, "tenants") == 0)
            d->tenants = value;
        else if (strcmp(name, "sink") == 0)
            d->sink = value;
        else if (strcmp(name, "out") == 0)
            d->out = fopen(value, "we");
        else
            exit(2);
    }
    return at;
}

int main(int argc, char **argv)
{
    struct driver d = {0};
    struct fetch_config c = {0};
    struct err e;
    int at = read_options(argc, argv, &d, &c);

    d.left = argc - at;
    d.loop = loop_new(&(struct err){0});
    d.fetcher = fetcher_new(d.loop, &c, &e);
    if (!d.fetcher) {
        printf("refused %s\n", e.text);
        loop_free(d.loop);
        return 1;
    }
    d.ones = mem_zalloc((size_t)(d.left + 1) * sizeof(*d.ones));
    for (int i = 0; at + i < argc; i++) {
        struct one *o = &d.ones[i];
        const char tenant[] = {(char)(d.tenants ? d.tenants[i] : 'a'), '\0'};
        o->driver = &d;
        o->fetch = fetch_start(d.fetcher, tenant, str_of(argv[at + i]), on_bytes, on_done, o);
    }
    if (is(d.cancel, "start"))
        cancel_all(&d);
    if (is(d.end, "start"))
        free_fetcher(&d);
    if (d.left > 0)
        loop_run(d.loop);
    fetcher_free(d.fetcher);
    loop_free(d.loop);
    free(d.ones);
    if (d.out && fclose(d.out) != 0)
        return 1;
    return d.left == 0 ? 0 : 1;
}
