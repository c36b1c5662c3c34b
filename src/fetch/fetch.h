/*
 * fetch: bytes from a URL that a stranger chose.
 *
 * Touches: the network through libcurl, on a thread of its own; fds it is given.
 * Never touches: sessions, the store, policy other than which addresses are ours
 * to dial.
 *
 * fetcher_new(), then fetch_start() per URL: http, https and data. The name is
 * resolved by us and the address that is really dialled is checked, at every
 * redirect; a private, loopback, link-local, multicast or metadata address is
 * refused unless config says otherwise. Size and time are capped. What was
 * received goes to a sink on the fetch thread; a failed fetch tells why in a
 * sentence that does not name inner addresses.
 *
 * fetch.c has the queue and the thread, transfer.c one URL from hop to hop,
 * address.c what may be dialled.
 */
#pragma once

#include "base/base.h"

#include <netinet/in.h>
#include <sys/socket.h>

struct loop;
struct fetcher;
struct fetch;
struct host_list;

struct fetch_config {
    uint64_t max_bytes;     /* 0: 100 MiB */
    uint64_t max_ms;        /* 0: a minute; redirects included, waiting for a turn not */
    unsigned max_redirects; /* 0: 5 */
    unsigned max_parallel;  /* of one tenant; 0: 16; more wait */
    bool allow_private;     /* also settable per host in allow: "10.0.0.0/8,files.example:8080" */
    const char *allow;      /* words of a host_list, or NULL */
};

struct fetcher *fetcher_new(struct loop *l, const struct fetch_config *config, struct err *e);
void fetcher_free(struct fetcher *f); /* those under way end with an error first */

struct fetch_result {
    const char *name; /* from Content-Disposition or the last segment of the last URL, decoded
                         before it is taken; never empty, never with a slash or control character */
    const char *mime; /* "application/octet-stream" when nobody said */
    uint64_t size;
};

/* sink runs on the fetch thread, -1 and *e stops; done from the loop, always, last. The url is
 * copied. tenant: fetches are shared out among tenants. */
typedef int fetch_sink_fn(void *arg, struct str bytes, struct err *e);
typedef void fetch_done_fn(void *arg, const struct fetch_result *r, const struct err *failed);
struct fetch *fetch_start(struct fetcher *f, const char *tenant, struct str url,
                          fetch_sink_fn *sink, fetch_done_fn *done, void *arg);
void fetch_cancel(struct fetch *f); /* done comes, with an error */

/* Whether an address may be dialled on behalf of a stranger: global unicast only. Shared with the
 * egress proxy. IPv4-mapped, NAT64 and 6to4 forms are judged by what is inside; Teredo is refused.
 */
bool address_is_public(const struct sockaddr *a);

/* --- hosts, as URLs and config write them; shared with the egress proxy --- */

#define HOST_NAME_MAX_BYTES 253

struct host {
    bool is_address;
    struct in6_addr address;            /* IPv4 as ::ffff:a.b.c.d */
    char name[HOST_NAME_MAX_BYTES + 1]; /* lower case, no dot at the end; empty for an address */
};

/* A name or an address literal, with or without brackets. False for what could be read in two ways:
 * 127.1, 0x7f000001, 2130706433 are neither names nor addresses here. */
bool host_parse(struct str text, struct host *ret) MUST_CHECK;
/* "host", "host:80", "[::1]", "[::1]:80", "::1"; *ret_port is 0 when none is named. */
bool host_port_split(struct str text, struct str *ret_host, uint16_t *ret_port) MUST_CHECK;

/* "example.com, *.example.com, example.com:8443, 10.0.0.0/8, [::1]:80, *": divided by commas or
 * blanks. "*.example.com" is every name below example.com; "*" every host. ERR_CALLER names the
 * word that is wrong. */
struct host_list *host_list_new(const char *words, struct err *e);
void host_list_free(struct host_list *l);
/* A word without a port stands for port 80 and 443, not for every one. */
void host_list_set_web_only(struct host_list *l);
bool host_list_has(const struct host_list *l, const struct host *h, uint16_t port);
/* The same for an address by itself: only words that are addresses count. */
bool host_list_has_address(const struct host_list *l, const struct sockaddr *a);

#define FILE_NAME_MAX 255

/* The parts of a URL's path that are a file name; for fetch.c and its fuzzer. Never empty, valid
 * UTF-8, no slash or control character, cut to what fits; size is at least 16. */
void url_file_name(struct str url, char *ret, size_t size);
/* The same from the value of a Content-Disposition header; false when it names no file. */
bool disposition_file_name(struct str value, char *ret, size_t size) MUST_CHECK;
/* data:[<mime>][;base64],<data>. Base64 is strict; ret's ceiling is the limit. */
int data_url_parse(struct str url, struct buf *ret, char *ret_mime, size_t mime_size,
                   struct err *e) MUST_CHECK;
