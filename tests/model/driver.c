/*
 * Asks a model what a JSON document says, for the tests beside it.
 *
 * usage: model-driver < DOCUMENT
 *
 * {"models": [{"label", "api", "url", ...}], "script", "standard", "tenants",  struct models_config
 *  "tenant", "wanted",                                                         models_find()
 *  "ask": {"system", "messages", "tools", "choice", ...},                      struct model_ask
 *  "times": at a time, "rounds": one after the other,
 *  "cancel": "start" | "text" | milliseconds}
 *
 * One line of JSON an answer, in the order they come: the reply, or the failure. The last line
 * tells what was there at the end: fds open before the first question and after the last, whether
 * each socket is closed on exec, and what the tenant may name.
 */
#include "loop/loop.h"
#include "model/model.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define MODELS 8

struct driver {
    struct loop *loop;
    const json_t *doc;
    struct model *model;
    struct timer *timer;
    struct one *ones;
    size_t times, left, rounds, round;
    const char *cancel;
    int64_t cancel_ms;
};

struct one {
    struct driver *driver;
    struct model_call *call;
    json_t *texts;
};

static void begin_round(struct driver *d);

static const char *text_at(const json_t *o, const char *key)
{
    return json_string_value(json_object_get(o, key));
}

static uint64_t number_at(const json_t *o, const char *key)
{
    return (uint64_t)json_integer_value(json_object_get(o, key));
}

static void print(json_t *line)
{
    char *text = json_dumps(line, JSON_COMPACT | JSON_SORT_KEYS);

    puts(text);
    free(text);
    json_decref(line);
}

/* --- answers --- */

static void one_over(struct one *o)
{
    struct driver *d = o->driver;

    o->call = NULL;
    json_decref(o->texts);
    o->texts = NULL;
    if (--d->left > 0)
        return;
    if (++d->round < d->rounds)
        begin_round(d);
    else
        loop_stop(d->loop);
}

static void cancel_all(void *arg)
{
    struct driver *d = arg;

    for (size_t i = 0; i < d->times; i++) {
        struct one *o = &d->ones[i];

        if (!o->call)
            continue;
        model_call_cancel(o->call);
        print(json_pack("{s:b}", "cancelled", 1));
        one_over(o);
    }
}

static void on_piece(void *arg, const struct model_piece *p)
{
    struct one *o = arg;

    assert(o->call);
    if (p->kind != MODEL_PIECE_TEXT)
        return;
    assert(p->text.n > 0);
    json_array_append_new(o->texts,
                          json_pack("[I, s%]", (json_int_t)p->part, p->text.p, p->text.n));
    if (o->driver->cancel && strcmp(o->driver->cancel, "text") == 0)
        cancel_all(o->driver);
}

static json_t *reply_line(const struct model_reply *r, json_t *texts)
{
    static const char *const stops[] = {
        [MODEL_DONE] = "done",     [MODEL_CALLS] = "calls",     [MODEL_LENGTH] = "length",
        [MODEL_WINDOW] = "window", [MODEL_REFUSAL] = "refusal", [MODEL_PAUSE] = "pause"};

    return json_pack("{s:O, s:s, s:I, s:I, s:s?, s:O}", "parts", r->parts, "stop", stops[r->stop],
                     "input_tokens", (json_int_t)r->input_tokens, "output_tokens",
                     (json_int_t)r->output_tokens, "name", r->name, "texts", texts);
}

static json_t *failure_line(const struct model_failure *f)
{
    static const char *const troubles[] = {"busy", "too_long", "no_tools", "denied", "nonsense"};

    assert(f->err.kind != ERR_NONE && *f->err.text && !strchr(f->err.text, '\n'));
    return json_pack("{s:s, s:i, s:I, s:s}", "trouble", troubles[f->trouble], "status", f->status,
                     "retry_ms", (json_int_t)f->retry_ms, "text", f->err.text);
}

static void on_end(void *arg, const struct model_reply *r, const struct model_failure *failed)
{
    struct one *o = arg;

    assert(o->call && !r == !!failed);
    print(failed ? failure_line(failed) : reply_line(r, o->texts));
    one_over(o);
}

/* --- questions --- */

static struct str str_at(const json_t *o, const char *key)
{
    return str_of(text_at(o, key));
}

static struct model_ask ask_of(const json_t *o)
{
    const char *choice = text_at(o, "choice");

    return (struct model_ask){
        .system = str_at(o, "system"),
        .messages = json_object_get(o, "messages"),
        .tools = json_object_get(o, "tools"),
        .choice = !choice                          ? MODEL_AUTO
                  : strcmp(choice, "no_call") == 0 ? MODEL_NO_CALL
                                                   : MODEL_MUST_CALL,
        .tool = str_at(o, "tool"),
        .one_at_a_time = json_is_true(json_object_get(o, "one_at_a_time")),
        .stop = json_object_get(o, "stop"),
        .max_tokens = number_at(o, "max_tokens"),
        .wall_ms = number_at(o, "wall_ms"),
        .name = str_at(o, "name"),
        .turn = number_at(o, "turn"),
    };
}

static void begin_round(struct driver *d)
{
    static const struct model_watcher watcher = {on_piece, on_end};
    struct model_ask ask = ask_of(json_object_get(d->doc, "ask"));

    d->left = d->times;
    for (size_t i = 0; i < d->times; i++) {
        struct one *o = &d->ones[i];

        *o = (struct one){.driver = d, .texts = json_array()};
        o->call = model_ask(d->model, &ask, &watcher, o);
    }
    if (d->cancel && strcmp(d->cancel, "start") == 0)
        cancel_all(d);
    else if (d->cancel_ms > 0)
        timer_set(d->timer, (uint64_t)d->cancel_ms);
}

static struct model_config config_of(const json_t *m)
{
    const char *api = text_at(m, "api");

    return (struct model_config){
        .label = text_at(m, "label") ? text_at(m, "label") : "test",
        .api = api && strcmp(api, "anthropic") == 0 ? MODEL_ANTHROPIC : MODEL_OPENAI,
        .url = text_at(m, "url"),
        .name = text_at(m, "name"),
        .key = text_at(m, "key"),
        .proxy = text_at(m, "proxy"),
        .ca_file = text_at(m, "ca_file"),
        .timeout_ms = number_at(m, "timeout_ms"),
        .max_tokens = number_at(m, "max_tokens"),
        .images = json_is_true(json_object_get(m, "images")),
        .text_only = json_is_true(json_object_get(m, "text_only")),
    };
}

/* --- fds --- */

static size_t count_fds(bool *ret_cloexec)
{
    DIR *dir = opendir("/proc/self/fd");
    struct dirent *entry;
    size_t n = 0;

    while ((entry = readdir(dir))) {
        int fd = (int)strtol(entry->d_name, NULL, 10), domain = 0;
        socklen_t size = sizeof(domain);

        if (entry->d_name[0] == '.' || fd == dirfd(dir))
            continue;
        n++;
        (void)getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size);
        if (domain == AF_INET && !(fcntl(fd, F_GETFD) & FD_CLOEXEC))
            *ret_cloexec = false;
    }
    closedir(dir);
    return n;
}

static void stop(void *arg)
{
    loop_stop(arg);
}

int main(void)
{
    json_t *doc = json_loadf(stdin, 0, NULL);
    struct model_config models[MODELS];
    struct models_config config = {.models = models};
    struct driver d = {.loop = loop_new(&(struct err){0}), .doc = doc};
    json_t *names = json_array();
    struct models *ms;
    struct err e = {0};
    bool cloexec = true, ignored = true;
    size_t before, during;

    signal(SIGPIPE, SIG_IGN);
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (; config.count < json_array_size(json_object_get(doc, "models")); config.count++)
        models[config.count] =
            config_of(json_array_get(json_object_get(doc, "models"), config.count));
    config.loop = d.loop;
    config.script = text_at(doc, "script");
    config.standard = text_at(doc, "standard");
    config.tenants = text_at(doc, "tenants");
    before = count_fds(&ignored);
    ms = models_new(&config, &e);
    if (!ms) {
        print(json_pack("{s:s}", "refused", e.text));
        loop_free(d.loop);
        json_decref(doc);
        json_decref(names);
        return 1;
    }
    for (size_t i = 0; models_at(ms, text_at(doc, "tenant"), i); i++)
        json_array_append_new(names, json_string(models_at(ms, text_at(doc, "tenant"), i)->label));
    d.model = models_find(ms, text_at(doc, "tenant"), str_at(doc, "wanted"));
    d.times = number_at(doc, "times") ? number_at(doc, "times") : 1;
    d.rounds = number_at(doc, "rounds") ? number_at(doc, "rounds") : 1;
    d.cancel = text_at(doc, "cancel");
    d.cancel_ms = json_integer_value(json_object_get(doc, "cancel"));
    d.ones = mem_zalloc(d.times * sizeof(*d.ones));
    d.timer = timer_new(d.loop, cancel_all, &d);
    if (json_object_get(doc, "ask")) {
        begin_round(&d);
        if (d.left > 0)
            loop_run(d.loop);
    }
    during = count_fds(&cloexec);
    timer_free(d.timer);
    print(json_pack("{s:s?, s:b, s:b, s:I, s:b, s:o}", "found", d.model ? d.model->label : NULL,
                    "text_only", d.model && d.model->text_only, "sees_images",
                    d.model && d.model->sees_images, "kept", (json_int_t)(during - before),
                    "cloexec", cloexec, "names", names));
    models_free(ms);
    loop_later(d.loop, stop, d.loop);
    loop_run(d.loop);
    print(json_pack("{s:I}", "leaked", (json_int_t)(count_fds(&ignored) - before)));
    loop_free(d.loop);
    free(d.ones);
    json_decref(doc);
    return 0;
}
