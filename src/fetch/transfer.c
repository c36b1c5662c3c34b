/*
 * One http or https URL, hop by hop.
 *
 * Redirects are followed here and not by libcurl, so that each hop is a transfer
 * of its own with a known host and port, which the operator's list of private hosts
 * (fetch-allow) needs. The address is checked in the open-socket callback, and connect()
 * gets the same address. So a name that resolves to one address for a check and to
 * another for the connection gains nothing: it is resolved once.
 *
 * A connection serves one hop and is closed. A connection that is used again would skip
 * the callback, with an address that was checked for another host.
 */
#include "fetch/fetch_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#define HEAD_MAX     (64 * KiB) /* of one hop, interim answers and trailers included */
#define URL_SHOWN    200
#define CONNECT_MS   15000
#define SLOW_BYTES   16 /* per second ... */
#define SLOW_SECONDS 30 /* ... for so long, and we hang up */
#define BUFFER       (64 * KiB)

/* --- the URL of a hop --- */

/* What people see of a URL: no query, which may hold a secret; printable ASCII; cut. */
static char *show(CURLU *url)
{
    char *scheme = NULL, *host = NULL, *port = NULL, *path = NULL;
    char *shown = mem_zalloc(URL_SHOWN + 1);

    (void)curl_url_get(url, CURLUPART_SCHEME, &scheme, 0);
    (void)curl_url_get(url, CURLUPART_HOST, &host, 0);
    (void)curl_url_get(url, CURLUPART_PORT, &port, 0);
    (void)curl_url_get(url, CURLUPART_PATH, &path, 0);
    snprintf(shown, URL_SHOWN + 1, "%s://%s%s%s%s", scheme ? scheme : "", host ? host : "",
             port ? ":" : "", port ? port : "", path ? path : "");
    for (char *c = shown; *c; c++)
        if (*c < ' ' || *c > '~')
            *c = '?';
    curl_free(scheme);
    curl_free(host);
    curl_free(port);
    curl_free(path);
    return shown;
}

/* libcurl's own parser, the one that later dials, splits the URL. */
static int set_url(struct fetch *f, const char *url, struct err *e)
{
    unsigned flags = CURLU_URLENCODE | CURLU_DISALLOW_USER;
    CURLUcode rc = curl_url_set(f->hop, CURLUPART_URL, url, flags);
    char *scheme = NULL;
    bool web;

    if (rc == CURLUE_USER_NOT_ALLOWED)
        return err_set(e, ERR_CALLER, "a URL with a user name or password in it is not fetched");
    if (rc == CURLUE_UNSUPPORTED_SCHEME)
        return err_set(e, ERR_CALLER, "only http, https and data URLs are fetched");
    if (rc != CURLUE_OK || curl_url_get(f->hop, CURLUPART_SCHEME, &scheme, 0) != CURLUE_OK)
        return err_set(e, ERR_CALLER, "this is not a URL that can be fetched");
    web = strcmp(scheme, "http") == 0 || strcmp(scheme, "https") == 0;
    curl_free(scheme);
    return web ? 0 : err_set(e, ERR_CALLER, "only http, https and data URLs are fetched");
}

static int enter(struct fetch *f, const char *url, struct err *e)
{
    char *host = NULL, *port = NULL;

    if (set_url(f, url, e) < 0)
        return -1;
    (void)curl_url_get(f->hop, CURLUPART_HOST, &host, 0);
    (void)curl_url_get(f->hop, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT);
    free(f->host_text);
    free(f->shown);
    f->host_text = mem_zalloc(NAME_SHOWN);
    name_show(f->host_text, str_of(host));
    f->shown = show(f->hop);
    f->host_known = host && host_parse(str_of(host), &f->host);
    f->port = (uint16_t)(port ? strtoul(port, NULL, 10) : 0);
    curl_free(host);
    curl_free(port);
    return 0;
}

/* --- what curl calls --- */

static bool may_dial(const struct fetch *f, const struct sockaddr *a)
{
    const struct fetch_rules *r = f->rules;

    return address_is_public(a) || r->allow_private || host_list_has_address(r->allow, a) ||
           (f->host_known && host_list_has(r->allow, &f->host, f->port));
}

static curl_socket_t on_open(void *arg, curlsocktype purpose, struct curl_sockaddr *a)
{
    struct fetch *f = arg;

    if (purpose == CURLSOCKTYPE_IPCXN && may_dial(f, &a->addr))
        return socket(a->family, a->socktype | SOCK_CLOEXEC, a->protocol);
    f->refused = true;
    return CURL_SOCKET_BAD;
}

static long status_of(const struct fetch *f)
{
    long status = 0;

    (void)curl_easy_getinfo(f->easy, CURLINFO_RESPONSE_CODE, &status);
    return status;
}

static int too_large(struct fetch *f)
{
    char most[SIZE_SHOWN];

    return err_set(&f->err, ERR_LIMIT, "the file is larger than the %s that may be fetched",
                   size_show(most, f->rules->max_bytes));
}

/* Once a hop, when its head is there: whether what follows is the file. */
static int judge(struct fetch *f)
{
    long status = status_of(f);
    curl_off_t length = -1;

    f->judged = true;
    f->wanted = status == 200 || status == 203;
    (void)curl_easy_getinfo(f->easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
    if (f->wanted && length > 0 && (uint64_t)length > f->rules->max_bytes)
        return too_large(f);
    return 0;
}

/* Returning less than n ends the transfer. */
static size_t on_body(char *bytes, size_t one, size_t n, void *arg)
{
    struct fetch *f = arg;

    (void)one; /* always 1 */
    if (!f->judged && judge(f) < 0)
        return 0;
    if (!f->wanted)
        return 0;
    if (n > f->rules->max_bytes - f->received) {
        too_large(f);
        return 0;
    }
    if (f->sink(f->arg, (struct str){bytes, n}, &f->err) < 0) {
        assert(f->err.kind != ERR_NONE);
        return 0;
    }
    f->received += n;
    return n;
}

static size_t on_head(char *line, size_t one, size_t n, void *arg)
{
    struct fetch *f = arg;

    (void)line;
    (void)one;
    f->head_bytes += n;
    if (f->head_bytes <= HEAD_MAX)
        return n;
    err_set(&f->err, ERR_LIMIT, "%s sent more than %zu bytes of headers", f->host_text, HEAD_MAX);
    return 0;
}

/* --- one hop --- */

/* curl_easy_setopt() is a macro that checks types; it fails here only for options that a libcurl
 * was built without, and each of these must hold. */
#define SET(option, value) ok = ok && curl_easy_setopt(f->easy, option, value) == CURLE_OK

/* No proxy from the environment, no cookies, no .netrc, no compression: the bytes counted are the
 * bytes sent, and a bomb stays folded. */
static bool set_manners(struct fetch *f)
{
    bool ok = true;

    SET(CURLOPT_PROTOCOLS_STR, "http,https");
    SET(CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
    SET(CURLOPT_FOLLOWLOCATION, 0L);
    SET(CURLOPT_PROXY, "");
    SET(CURLOPT_NOPROXY, "*");
    SET(CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
    SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    SET(CURLOPT_HTTP09_ALLOWED, 0L);
    SET(CURLOPT_ACCEPT_ENCODING, NULL);
    SET(CURLOPT_USERAGENT, "retort/" RETORT_VERSION);
    SET(CURLOPT_FRESH_CONNECT, 1L);
    SET(CURLOPT_FORBID_REUSE, 1L);
    SET(CURLOPT_NOSIGNAL, 1L);
    /* Else giving up on a name waits for its resolver thread, and every other fetch with it. */
    SET(CURLOPT_QUICK_EXIT, 1L);
    return ok;
}

static bool set_limits(struct fetch *f, long left_ms)
{
    bool ok = true;

    SET(CURLOPT_TIMEOUT_MS, left_ms);
    SET(CURLOPT_CONNECTTIMEOUT_MS, left_ms < CONNECT_MS ? left_ms : CONNECT_MS);
    SET(CURLOPT_LOW_SPEED_LIMIT, (long)SLOW_BYTES);
    SET(CURLOPT_LOW_SPEED_TIME, (long)SLOW_SECONDS);
    SET(CURLOPT_BUFFERSIZE, (long)BUFFER);
    SET(CURLOPT_CURLU, f->hop);
    SET(CURLOPT_PRIVATE, f);
    SET(CURLOPT_OPENSOCKETFUNCTION, on_open);
    SET(CURLOPT_OPENSOCKETDATA, f);
    SET(CURLOPT_WRITEFUNCTION, on_body);
    SET(CURLOPT_WRITEDATA, f);
    SET(CURLOPT_HEADERFUNCTION, on_head);
    SET(CURLOPT_HEADERDATA, f);
    return ok;
}

static int too_slow(const struct fetch *f, struct err *e)
{
    return err_set(e, ERR_CALLER, "%s was too slow: a file must arrive within %.3g s", f->host_text,
                   (double)f->rules->max_ms / 1000);
}

static int go(struct fetch *f, CURLM *multi, struct err *e)
{
    int64_t left_us = f->deadline_us - time_mono_us();

    if (left_us < 1000)
        return too_slow(f, e);
    f->refused = f->judged = f->wanted = false;
    f->head_bytes = 0;
    curl_easy_reset(f->easy);
    if (!set_manners(f) || !set_limits(f, (long)(left_us / 1000)))
        return err_set(e, ERR_HOST, "libcurl lacks what a fetch needs");
    if (curl_multi_add_handle(multi, f->easy) != CURLM_OK)
        return err_set(e, ERR_HOST, "libcurl does not take a transfer");
    return 0;
}

int transfer_begin(struct fetch *f, CURLM *multi, struct err *e)
{
    f->deadline_us = time_mono_us() + (int64_t)f->rules->max_ms * 1000;
    f->easy = curl_easy_init();
    f->hop = curl_url();
    if (!f->easy || !f->hop)
        return err_set(e, ERR_HOST, "no memory for a transfer");
    return enter(f, f->url, e) < 0 ? -1 : go(f, multi, e);
}

void transfer_end(struct fetch *f, CURLM *multi)
{
    if (f->easy) {
        (void)curl_multi_remove_handle(multi, f->easy);
        curl_easy_cleanup(f->easy);
    }
    curl_url_cleanup(f->hop);
    f->easy = NULL;
    f->hop = NULL;
    mem_freep(&f->shown);
    mem_freep(&f->host_text);
}

/* --- how a hop ends --- */

static int say_failure(const struct fetch *f, CURLcode code, struct err *e)
{
    static const struct {
        CURLcode code;
        const char *text;
    } rows[] = {
        {CURLE_COULDNT_RESOLVE_HOST,     "is a name without an address"          },
        {CURLE_COULDNT_CONNECT,          "could not be reached"                  },
        {CURLE_OPERATION_TIMEDOUT,       "does not answer, or only drips"        },
        {CURLE_PARTIAL_FILE,             "hung up before the end of the file"    },
        {CURLE_GOT_NOTHING,              "hung up without an answer"             },
        {CURLE_RECV_ERROR,               "hung up before the end of the file"    },
        {CURLE_SEND_ERROR,               "hung up before it was asked"           },
        {CURLE_SSL_CONNECT_ERROR,        "does not speak TLS that can be used"   },
        {CURLE_PEER_FAILED_VERIFICATION, "has no certificate that can be trusted"},
        {CURLE_WEIRD_SERVER_REPLY,       "did not answer as an HTTP server does" },
        {CURLE_UNSUPPORTED_PROTOCOL,     "did not answer as an HTTP server does" },
        {CURLE_OUT_OF_MEMORY,            "sent a header that is too long"        },
        {CURLE_URL_MALFORMAT,            "is not the name of a host"             },
    };

    if (f->refused && code == CURLE_COULDNT_CONNECT)
        return err_set(e, ERR_CALLER,
                       "the address of %s is private, and this server does not fetch from private "
                       "addresses",
                       f->host_text);
    if (code == CURLE_OPERATION_TIMEDOUT && time_mono_us() >= f->deadline_us - 10000)
        return too_slow(f, e);
    for (size_t i = 0; i < COUNT(rows); i++)
        if (rows[i].code == code)
            return err_set(e, ERR_CALLER, "%s %s", f->host_text, rows[i].text);
    return err_set(e, ERR_CALLER, "%s could not be fetched: %s", f->shown,
                   curl_easy_strerror(code));
}

static bool is_redirect(long status)
{
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

/* Relative to the hop that sent it; curl_url_set() resolves that. */
static int follow(struct fetch *f, CURLM *multi, struct err *e)
{
    struct curl_header *location = NULL;

    if (curl_easy_header(f->easy, "Location", 0, CURLH_HEADER, -1, &location) != CURLHE_OK)
        return err_set(e, ERR_CALLER, "%s answered %ld without saying where to go", f->shown,
                       status_of(f));
    if (f->redirects++ == f->rules->max_redirects)
        return err_set(e, ERR_CALLER, "more than %u redirects, the last from %s",
                       f->rules->max_redirects, f->shown);
    (void)curl_multi_remove_handle(multi, f->easy);
    if (enter(f, location->value, e) < 0)
        return err_wrap(e, "%s redirects", f->shown);
    return go(f, multi, e) < 0 ? -1 : 1;
}

/* The name and the type, while the last hop's headers are still there. */
static void describe(struct fetch *f)
{
    struct curl_header *disposition = NULL;
    char *type = NULL, *url = NULL;

    (void)curl_easy_getinfo(f->easy, CURLINFO_CONTENT_TYPE, &type);
    if (!mime_take(str_of(type), f->mime, sizeof(f->mime)))
        f->mime[0] = '\0';
    if (curl_easy_header(f->easy, "Content-Disposition", 0, CURLH_HEADER, -1, &disposition) ==
            CURLHE_OK &&
        disposition_file_name(str_of(disposition->value), f->name, sizeof(f->name)))
        return;
    (void)curl_url_get(f->hop, CURLUPART_URL, &url, 0);
    url_file_name(str_of(url), f->name, sizeof(f->name));
    curl_free(url);
}

int transfer_next(struct fetch *f, CURLM *multi, CURLcode code, struct err *e)
{
    long status = status_of(f);
    /* The body of an answer that is not the file is not read to its end. */
    bool cut = code == CURLE_WRITE_ERROR && f->judged && !f->wanted;

    if (f->err.kind == ERR_NONE && code == CURLE_OK && !f->judged)
        (void)judge(f);
    if (f->err.kind != ERR_NONE) {
        *e = f->err;
        return -1;
    }
    if (code != CURLE_OK && !cut)
        return say_failure(f, code, e);
    if (is_redirect(status))
        return follow(f, multi, e);
    if (!f->wanted)
        return err_set(e, ERR_CALLER, "%s answered %ld", f->shown, status);
    describe(f);
    return 0;
}
