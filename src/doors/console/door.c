/*
 * Serves the console. Two policies keep its parts apart. The page runs its own scripts alone,
 * talks to this server alone and cannot be framed by another page. What code has shown is put
 * into frames of FRAME, which have no origin: their scripts see neither the page, nor its key,
 * nor the network.
 */
#include "doors/console/console.h"

#include <stdio.h>
#include <strings.h>
#include <zlib.h>

#define PAGE  "index.html"
#define FRAME "console/frame.html"

#define PATH_LEN 128 /* longer than that of any file */

static const char page_policy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; frame-src 'self' blob:; media-src blob:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'";
static const char frame_policy[] =
    "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; "
    "style-src 'unsafe-inline'; img-src data: blob:; font-src data:; media-src data: blob:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'self'";
static const char permissions[] =
    "camera=(), microphone=(), geolocation=(), payment=(), usb=(), display-capture=(), midi=()";

static const char no_page[] =
    "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>retort</title>"
    "<p>retort " RETORT_VERSION " runs here. This build has no console: node was not there when it "
    "was compiled. Run <code>./dev build</code>, which installs node, or use the interface below "
    "<a href=\"v1/openapi.json\">/v1</a>.</p>\n";
static const char for_programs[] = "retort " RETORT_VERSION "\n\n"
                                   "A browser finds the console at this address. Programs use:\n"
                                   "  /v1      the REST interface; /v1/openapi.json describes it\n"
                                   "  /mcp     the Model Context Protocol\n"
                                   "  /health, /ready, /metrics\n\n"
                                   "curl --json '{\"code\": \"6 * 7\"}' "
                                   "ADDRESS/v1/execute runs a cell.\n";

/* --- files --- */

static const struct console_file *file_find(struct str path)
{
    for (const struct console_file *f = console_files; f->path; f++)
        if (str_is(path, f->path))
            return f;
    return NULL;
}

/* Whether the item of a comma-separated header is there, and is not refused with q=0. */
static bool accepts(struct request *r, const char *header, const char *item)
{
    struct str rest = request_header(r, header), one;

    while (rest.p && str_next(&rest, ',', &one)) {
        const char *semicolon = one.n ? memchr(one.p, ';', one.n) : NULL;
        struct str name = {one.p, semicolon ? (size_t)(semicolon - one.p) : one.n};
        struct str more = str_from(one, name.n);
        name = str_trim(name);
        if (name.n == strlen(item) && strncasecmp(name.p, item, name.n) == 0)
            return !memmem(more.p, more.n, "q=0", 3) || memmem(more.p, more.n, "q=0.", 4);
    }
    return false;
}

static void answer_unpacked(struct request *r, const struct console_file *f)
{
    AUTO_FREE char *text = mem_zalloc(f->size + 1);
    z_stream z = {.next_in = (Bytef *)f->gzip.p,
                  .avail_in = (uInt)f->gzip.n,
                  .next_out = (Bytef *)text,
                  .avail_out = (uInt)f->size};
    int rc = inflateInit2(&z, 16 + MAX_WBITS);

    assert(rc == Z_OK);
    rc = inflate(&z, Z_FINISH);
    assert(rc == Z_STREAM_END && z.avail_out == 0);
    inflateEnd(&z);
    answer_text(r, 200, f->mime, (struct str){text, f->size});
}

/* A name with a hash in it never means other bytes; a page is asked for again each time. */
static void put_headers(struct request *r, const struct console_file *f)
{
    bool frame = strcmp(f->path, FRAME) == 0, page = frame || strcmp(f->path, PAGE) == 0;
    char etag[72];

    snprintf(etag, sizeof(etag), "\"%s\"", f->hash);
    answer_header(r, "etag", etag);
    answer_header(r, "vary", "accept-encoding, accept");
    answer_header(r, "cache-control", page ? "no-cache" : "public, max-age=31536000, immutable");
    answer_header(r, "content-security-policy", frame ? frame_policy : page_policy);
    if (page) {
        /* Frames get a process of their own: a script that never ends stops its frame alone. */
        answer_header(r, "origin-agent-cluster", "?1");
        answer_header(r, "referrer-policy", "no-referrer");
        answer_header(r, "x-dns-prefetch-control", "off");
        answer_header(r, "permissions-policy", permissions);
    }
    /* The policy closes every way out but WebRTC, which sends packets to a host of its choice. */
    if (frame)
        answer_header(r, "connection-allowlist", "()");
    else
        answer_header(r, "cross-origin-opener-policy", "same-origin");
}

static void answer_file_of(struct request *r, const struct console_file *f)
{
    struct str known = request_header(r, "if-none-match");

    put_headers(r, f);
    if (known.p && memmem(known.p, known.n, f->hash, strlen(f->hash))) {
        answer_empty(r, 304);
    } else if (accepts(r, "accept-encoding", "gzip")) {
        answer_header(r, "content-encoding", "gzip");
        answer_text(r, 200, f->mime, f->gzip);
    } else {
        answer_unpacked(r, f);
    }
}

/* --- handlers --- */

/* For a program the address of the page says where its own interfaces are. */
static void handle_page(struct request *r)
{
    const struct console_file *page = file_find(STR(PAGE));

    if (!accepts(r, "accept", "text/html"))
        answer_text(r, 200, "text/plain; charset=utf-8", str_of(for_programs));
    else if (!page)
        answer_text(r, 200, "text/html; charset=utf-8", str_of(no_page));
    else
        answer_file_of(r, page);
}

static void handle_file(struct request *r)
{
    struct str name = request_path(r, "file");
    char path[PATH_LEN];
    int n = snprintf(path, sizeof(path), "console/%.*s", (int)name.n, name.p);
    const struct console_file *f =
        n > 0 && (size_t)n < sizeof(path) ? file_find(str_of(path)) : NULL;

    if (f)
        answer_file_of(r, f);
    else
        answer_fail(r, 404, "not_found", "file", "the console has no such file");
}

/* --- the door --- */

static const struct route routes[] = {
    {.method = HTTP_GET,
     .path = "/",
     .id = "console",
     .tag = "Console",
     .text = "The console, for a browser.",
     .flags = ROUTE_OPEN | ROUTE_HIDDEN | ROUTE_QUERY,
     .status = 200,
     .answer = "text/html",
     .answer_text = "The page.",
     .handle = handle_page},
    {.method = HTTP_GET,
     .path = "/console/{file...}",
     .id = "console_file",
     .tag = "Console",
     .text = "What the console is made of.",
     .flags = ROUTE_OPEN | ROUTE_HIDDEN,
     .status = 200,
     .answer = "application/octet-stream",
     .answer_text = "The bytes of the file.",
     .handle = handle_file},
};

const struct door console_door = {
    .name = "console", .routes = routes, .route_count = COUNT(routes)};
