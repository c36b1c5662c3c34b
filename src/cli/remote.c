/*
 * A named session of a server that runs: `retort run --session NAME` and `retort repl --session
 * NAME`. The session outlives the command; the next one finds its variables and files.
 *
 * One connection, one request at a time, and nothing else to do meanwhile: so this blocks, unlike
 * the rest of the program. Ctrl-C asks the server to interrupt the code; a second one ends us.
 */
#include "cli/remote.h"

#include "record/record.h"

#include <curl/curl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define ANSWER_MAX (64 * MiB) /* of one line of a stream, which may hold a picture */
#define URL_MAX    2048

struct remote {
    const struct settings *s; /* borrowed */
    CURL *curl;
    struct curl_slist *headers;
    char url[URL_MAX]; /* of the server, without a slash at the end */
    char session[128]; /* its id */
    struct show show;
    struct buf answer; /* what has come of the line or body at hand */
    bool streams;      /* lines are events */
    json_t *outcome;   /* of the execution at hand, or NULL */
    struct err failed; /* what the server has said in place of one */
    bool asked_to_stop;
};

static volatile sig_atomic_t interrupts;

static void on_interrupt(int signum)
{
    (void)signum;
    if (++interrupts > 1)
        _exit(EXIT_INTERRUPTED);
}

/* --- one request --- */

static void take_line(struct remote *r, struct str line);

static size_t on_bytes(char *p, size_t one, size_t n, void *arg)
{
    struct remote *r = arg;
    size_t bytes = one * n, from = 0;

    if (buf_put(&r->answer, (struct str){p, bytes}) < 0)
        return 0;
    for (char *newline;
         r->streams && (newline = memchr(r->answer.p + from, '\n', r->answer.n - from));) {
        struct str line = {r->answer.p + from, (size_t)(newline - r->answer.p) - from};
        from += line.n + 1;
        take_line(r, line);
    }
    if (from > 0) {
        memmove(r->answer.p, r->answer.p + from, r->answer.n - from);
        r->answer.n -= from;
    }
    outbox_push(&r->show.box);
    return bytes;
}

static int ask(struct remote *r, const char *method, const char *path, struct str body,
               struct err *e);

/* On a connection of its own, as this one waits for the code to end. */
static void interrupt(struct remote *r)
{
    struct remote other = {.s = r->s, .headers = r->headers};
    char path[256];
    struct err e;

    snprintf(other.url, sizeof(other.url), "%s", r->url);
    snprintf(path, sizeof(path), "/v1/sessions/%s/interrupt", r->session);
    other.curl = curl_easy_init();
    buf_init(&other.answer, ANSWER_MAX);
    if (other.curl && ask(&other, "POST", path, STR("{}"), &e) < 0)
        term_line(&r->show.err, "retort: %s", e.text);
    curl_easy_cleanup(other.curl);
    buf_done(&other.answer);
}

static int on_progress(void *arg, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    struct remote *r = arg;

    (void)a, (void)b, (void)c, (void)d;
    if (interrupts > 0 && !r->asked_to_stop) {
        r->asked_to_stop = true;
        interrupt(r);
    }
    return 0;
}

/* {"error": {"message"}} of a status that is none of success. */
static int refused(const struct remote *r, long status, struct err *e)
{
    json_t *v = json_loadb(r->answer.p ? r->answer.p : "", r->answer.n, 0, NULL);
    struct str text = event_text(json_object_get(v, "error"), "message");

    if (text.n > 0)
        err_set(e, status < 500 ? ERR_CALLER : ERR_HOST, "%s: %.*s", r->url, (int)text.n, text.p);
    else
        err_set(e, ERR_HOST, "%s answered with status %ld: is it a retort server?", r->url, status);
    if (status == 401)
        err_wrap(e, "set RETORT_KEY to a key of the server (retort keys create)");
    json_decref(v);
    return -1;
}

/* The body of the answer is in r->answer, unless its lines have been taken one by one. */
static int ask(struct remote *r, const char *method, const char *path, struct str body,
               struct err *e)
{
    char url[2 * URL_MAX], why[CURL_ERROR_SIZE] = "";
    CURLcode rc = CURLE_OK;
    long status = 0;

    snprintf(url, sizeof(url), "%s%s", r->url, path);
    buf_clear(&r->answer);
#define SET(option, value) rc = rc ? rc : curl_easy_setopt(r->curl, option, value)
    SET(CURLOPT_URL, url);
    SET(CURLOPT_CUSTOMREQUEST, method);
    SET(CURLOPT_HTTPHEADER, r->headers);
    SET(CURLOPT_POSTFIELDS, body.p);
    SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body.n);
    SET(CURLOPT_WRITEFUNCTION, on_bytes);
    SET(CURLOPT_WRITEDATA, r);
    SET(CURLOPT_XFERINFOFUNCTION, on_progress);
    SET(CURLOPT_XFERINFODATA, r);
    SET(CURLOPT_NOPROGRESS, r->streams ? 0L : 1L);
    SET(CURLOPT_ERRORBUFFER, why);
    SET(CURLOPT_NOPROXY, "localhost,127.0.0.1,::1");
#undef SET
    rc = rc ? rc : curl_easy_perform(r->curl);
    (void)curl_easy_setopt(r->curl, CURLOPT_ERRORBUFFER, NULL);
    if (rc != CURLE_OK)
        return err_set(e, ERR_HOST, "cannot reach %s: %s. Start a server with: retort serve",
                       r->url, *why ? why : curl_easy_strerror(rc));
    (void)curl_easy_getinfo(r->curl, CURLINFO_RESPONSE_CODE, &status);
    return status >= 200 && status < 300 ? 0 : refused(r, status, e);
}

/* --- events --- */

/* A display shows its text and one line about a picture: so much of the bundle is enough. */
static void show_bundle(struct remote *r, struct event *ev, const json_t *data)
{
    AUTO_FREE char *bytes = NULL;
    const char *mime;
    json_t *part;

    json_object_foreach((json_t *)data, mime, part) {
        struct mime_part *to = &ev->bundle.part[ev->bundle.count];
        if (!json_is_string(part) || ev->bundle.count == EVENT_PARTS_MAX)
            continue;
        *to = (struct mime_part){str_of(mime), json_view(part)};
        if (!mime_is_text(to->mime)) {
            if (bytes)
                continue;
            bytes = mem_zalloc(to->data.n);
            if (!base64_decode(to->data, bytes, &to->data.n))
                continue;
            to->data.p = bytes;
        }
        ev->bundle.count++;
    }
    show_event(&r->show, ev, "");
}

static void show_line(struct remote *r, const json_t *v)
{
    static struct event ev; /* large */
    struct str type = event_text(v, "type");

    ev = (struct event){.text = event_text(v, "text")};
    ev.error.traceback = event_text(v, "traceback");
    for (ev.kind = EVENT_STDOUT; ev.kind <= EVENT_STATUS; ev.kind++)
        if (str_is(type, event_kind_name(ev.kind)))
            break;
    if (ev.kind > EVENT_STATUS)
        return;
    if (ev.kind == EVENT_DISPLAY || ev.kind == EVENT_RESULT)
        show_bundle(r, &ev, json_object_get(v, "data"));
    else
        show_event(&r->show, &ev, "");
}

static void take_line(struct remote *r, struct str line)
{
    json_t *v = json_loadb(line.p, line.n, 0, NULL);
    const json_t *error = json_object_get(v, "error");

    if (error) {
        struct str text = event_text(error, "message");
        err_set(&r->failed, ERR_CALLER, "%.*s", (int)text.n, text.p);
    } else if (event_is(v, "done")) {
        json_decref(r->outcome);
        r->outcome = json_incref(json_object_get(v, "outcome"));
    } else {
        show_line(r, v);
    }
    json_decref(v);
}

/* --- from outside --- */

static int find_session(struct remote *r, struct err *e)
{
    json_t *body = json_pack("{s:s}", "name", r->s->session), *v;
    AUTO_FREE char *text = json_dumps(body, JSON_COMPACT);
    struct str id;
    int rc;

    json_decref(body);
    if (!text)
        return err_set(e, ERR_CALLER, "--session: the name is not UTF-8 text");
    rc = ask(r, "POST", "/v1/sessions", str_of(text), e);
    if (rc < 0)
        return -1;
    v = json_loadb(r->answer.p, r->answer.n, 0, NULL);
    id = event_text(v, "id");
    if (id.n == 0 || !str_to_cstr(id, r->session, sizeof(r->session)))
        rc = err_set(e, ERR_HOST, "%s has given no session: is it a retort server?", r->url);
    json_decref(v);
    return rc;
}

static int put_file(struct remote *r, const struct input *in, struct err *e)
{
    AUTO(buf_done) struct buf bytes = BUF(ANSWER_MAX);
    char path[URL_MAX], *at = path + snprintf(path, 256, "/v1/sessions/%s/files/", r->session);
    char shown[NAME_SHOWN];
    ssize_t n;

    name_show(shown, str_of(in->name));
    if (strlen(in->name) > 255)
        return err_set(e, ERR_CALLER, "the name %s is too long", shown);
    url_encode(at, str_of(in->name));
    do {
        char *room = buf_room(&bytes, 64 * KiB);
        if (!room)
            return err_set(e, ERR_CALLER, "%s is larger than %zu MiB: send it with curl -T", shown,
                           ANSWER_MAX / MiB);
        n = read(in->fd, room, 64 * KiB);
        bytes.n += n > 0 ? (size_t)n : 0;
    } while (n > 0 || (n < 0 && errno == EINTR));
    if (n < 0)
        return err_sys(e, "cannot read %s", shown);
    return ask(r, "PUT", path, (struct str){bytes.p ? bytes.p : "", bytes.n}, e);
}

static bool add_header(struct remote *r, const char *text)
{
    struct curl_slist *more = curl_slist_append(r->headers, text);

    r->headers = more ? more : r->headers;
    return more != NULL;
}

/* Options of a sandbox that is made here say nothing about one that a server has made. */
static int check_options(const struct settings *s, struct err *e)
{
    static const char *const good[] = {"session", "server",     "key",     "code",
                                       "shell",   "file",       "timeout", "help",
                                       "verbose", "keep-going", NULL};

    for (size_t i = 0; i < options_count; i++) {
        bool ok = s->from[i] != SOURCE_FLAG;
        for (const char *const *name = good; *name && !ok; name++)
            ok = strcmp(options[i].name, *name) == 0;
        if (!ok)
            return err_set(
                e, ERR_CALLER,
                "--%s is for a session that is made here; with --session the server decides",
                options[i].name);
    }
    return 0;
}

static int check_server(const char *server, struct err *e)
{
    char shown[NAME_SHOWN];

    if (strncasecmp(server, "http://", 7) == 0 || strncasecmp(server, "https://", 8) == 0)
        return 0;
    return err_set(e, ERR_CALLER, "--server: '%s' is not an address such as http://127.0.0.1:8000",
                   name_show(shown, str_of(server)));
}

struct remote *remote_open(const struct settings *s, const struct inputs *inputs, struct err *e)
{
    struct remote *r = mem_zalloc(sizeof(*r));
    const char *named = getenv("RETORT_SERVER"), *secret = getenv("RETORT_KEY");
    const char *server = s->server ? s->server : named && *named ? named : "http://127.0.0.1:8000";
    size_t n = strlen(server);
    char key[512];
    int rc = check_options(s, e) < 0 || check_server(server, e) < 0 ? -1 : 0;

    r->s = s;
    show_init(&r->show);
    buf_init(&r->answer, ANSWER_MAX);
    while (n > 0 && server[n - 1] == '/')
        n--;
    snprintf(r->url, sizeof(r->url), "%.*s", (int)n, server);
    (void)curl_global_init(CURL_GLOBAL_DEFAULT);
    r->curl = curl_easy_init();
    if (rc == 0 &&
        (!r->curl || !add_header(r, "content-type: application/json") || !add_header(r, "expect:")))
        rc = err_set(e, ERR_HOST, "out of memory");
    if (rc == 0 && secret && *secret) {
        snprintf(key, sizeof(key), "x-api-key: %s", secret);
        add_header(r, key);
    }
    rc = rc < 0 ? rc : find_session(r, e);
    for (size_t i = 0; rc == 0 && i < inputs->count; i++)
        rc = put_file(r, &inputs->item[i], e);
    if (rc == 0) {
        signal(SIGINT, on_interrupt);
        signal(SIGPIPE, SIG_IGN);
        return r;
    }
    remote_close(r);
    return NULL;
}

void remote_close(struct remote *r)
{
    if (!r)
        return;
    outbox_wait(&r->show.box);
    show_done(&r->show);
    json_decref(r->outcome);
    curl_slist_free_all(r->headers);
    curl_easy_cleanup(r->curl);
    buf_done(&r->answer);
    free(r);
}

static int status_of(const json_t *outcome)
{
    static const struct {
        const char *status;
        int exit;
    } rows[] = {
        {"ok",           EXIT_OK         },
        {"raised",       EXIT_RAISED     },
        {"timeout",      EXIT_TIMEOUT    },
        {"memory",       EXIT_MEMORY     },
        {"interrupted",  EXIT_INTERRUPTED},
        {"died",         EXIT_RAISED     },
        {"session_lost", EXIT_OURS       },
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        if (str_is(event_text(outcome, "status"), rows[i].status))
            return rows[i].exit;
    return EXIT_OURS;
}

static bool has_flag(const struct settings *s, const char *name)
{
    const struct option *o = option_by_name(str_of(name), ~0u);

    return o && s->from[option_index(o)] == SOURCE_FLAG;
}

int remote_run(struct remote *r, const struct source *src, int *ret_status, struct err *e)
{
    json_t *body = json_pack("{s:s%, s:s, s:s}", "code", src->code, src->n, "language",
                             src->kind == EXEC_COMMAND ? "shell" : "python", "stream", "ndjson");
    AUTO_FREE char *text = NULL;
    char path[256];
    int rc;

    if (has_flag(r->s, "timeout"))
        json_object_set_new(body, "timeout", json_real((double)r->s->pool.limits.wall_ms / 1000));
    text = json_dumps(body, JSON_COMPACT);
    json_decref(body);
    snprintf(path, sizeof(path), "/v1/sessions/%s/execute", r->session);
    json_decref(r->outcome);
    r->outcome = NULL;
    r->failed = (struct err){0};
    interrupts = 0;
    r->asked_to_stop = false;
    r->streams = true;
    rc = ask(r, "POST", path, str_of(text ? text : "{}"), e);
    r->streams = false;
    interrupts = 0;
    if (rc < 0)
        return -1;
    if (!r->outcome) {
        *e = r->failed;
        return e->kind ? -1 : err_set(e, ERR_HOST, "%s ended the answer too soon", r->url);
    }
    struct str message = event_text(r->outcome, "message");
    struct outcome o = {0};
    snprintf(o.line, sizeof(o.line), "%.*s", (int)message.n, message.p);
    show_outcome(&r->show, &o);
    outbox_wait(&r->show.box);
    *ret_status = status_of(r->outcome);
    return 0;
}

int remote_main(const struct settings *s)
{
    struct sources sources = {0};
    struct inputs inputs = {0};
    struct remote *r = NULL;
    struct err e;
    int status = EXIT_OK, rc = -1;

    if (sources_load(&sources, s, &e) == 0 && inputs_open(&inputs, s, &e) == 0)
        r = remote_open(s, &inputs, &e);
    if (r)
        rc = 0;
    for (size_t i = 0; rc == 0 && i < sources.count; i++) {
        int one;
        rc = remote_run(r, &sources.item[i], &one, &e);
        if (rc == 0 && status == EXIT_OK)
            status = one;
        if (rc == 0 && one != EXIT_OK && !s->keep_going)
            break;
    }
    if (rc < 0)
        status = command_failed(&e);
    remote_close(r);
    inputs_done(&inputs);
    sources_done(&sources);
    return status;
}
