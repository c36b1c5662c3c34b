/* Private to the room: one fetch, and which thread may touch which part of it. */
#pragma once

#include "fetch/fetch.h"

#include <curl/curl.h>
#include <stdatomic.h>

#define MIME_MAX 127

/* What a transfer needs to know of its fetcher. */
struct fetch_rules {
    uint64_t max_bytes, max_ms;
    unsigned max_redirects;
    bool allow_private;
    struct host_list *allow; /* owned by the fetcher */
};

struct fetch {
    struct fetch *next;              /* in whichever list of the fetcher it is */
    struct fetcher *fetcher;         /* borrowed: outlives us */
    const struct fetch_rules *rules; /* borrowed: the fetcher's */
    char tenant[64];                 /* whose share it is of */
    char *url;                       /* owned: as asked for */
    size_t url_n;
    fetch_sink_fn *sink;
    fetch_done_fn *done;
    void *arg;
    atomic_bool cancelled;

    /* The thread's until it is finished, then the loop's. */
    CURL *easy;      /* owned */
    CURLU *hop;      /* owned: the URL that is asked now */
    char *shown;     /* owned: the same for people: without its query */
    char *host_text; /* owned: the host of it, as dialled */
    struct host host;
    bool host_known; /* host is set: the name is one that a list can have */
    uint16_t port;
    unsigned redirects;
    int64_t deadline_us;
    bool refused; /* an address was */
    bool judged, wanted;
    size_t head_bytes;
    uint64_t received;
    struct err err; /* ERR_NONE: it went well */
    char name[FILE_NAME_MAX + 1];
    char mime[MIME_MAX + 1];
};

/* Starts the first hop. */
int transfer_begin(struct fetch *f, CURLM *multi, struct err *e) MUST_CHECK;
/* A hop has ended with code. 1: another one is on its way; 0: all is there; -1: see *e. */
int transfer_next(struct fetch *f, CURLM *multi, CURLcode code, struct err *e) MUST_CHECK;
/* Gives back what belongs to curl; may be called again, and on one that never began. */
void transfer_end(struct fetch *f, CURLM *multi);

/* The type/subtype at the start of a Content-Type, in lower case; false when there is none. */
bool mime_take(struct str type, char *ret, size_t size) MUST_CHECK;
