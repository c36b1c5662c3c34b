/*
 * Private to batches.c, the routes, and batch_run.c, which runs what they take in.
 *
 * A batch is an item of the service; its parent is BATCH_OPEN until it has ended, so that a start
 * finds it. Each of its requests is an item, too: {"custom_id", "params"}, and {"custom_id",
 * "result"} from when it is over.
 */
#pragma once

#include "doors/anthropic/turn_int.h"

#define BATCH_PREFIX   "msgbatch_"
#define BATCH_KIND     "message_batch"
#define BATCH_REQUEST  "message_batch_request"
#define BATCH_OPEN     "open"
#define BATCH_REQUESTS 10000                        /* of one batch */
#define BATCHES_KEPT   1000                         /* of a tenant */
#define BATCH_MS       (INT64_C(24) * 3600 * 1000)  /* to run */
#define RESULTS_MS     (INT64_C(29) * 86400 * 1000) /* from its creation, until all of it goes */
#define BATCH_ENTRY_ID (ID_MAX + 8)

enum batch_result { BATCH_SUCCEEDED, BATCH_ERRORED, BATCH_CANCELED, BATCH_EXPIRED, BATCH__RESULTS };
extern const char *const batch_result_names[BATCH__RESULTS];

/* A batch that has not ended. */
struct batch {
    struct batch *next;
    struct batches *all; /* borrowed */
    struct caller caller;
    char id[ID_MAX];
    int64_t created_ms, cancel_ms, ended_ms; /* 0: not yet */
    char *betas;                             /* owned, or NULL: of struct request_params */
    size_t count;
    size_t results[BATCH__RESULTS];
    uint32_t *todo; /* owned: a ring of count numbers of requests */
    size_t todo_at, todo_count;
    unsigned running;
    bool ending;
};

/* --- batches.c --- */

/* The last request of a batch that was read. */
struct batch_place {
    char id[BATCH_ENTRY_ID]; /* "": none yet */
    int64_t created_ms;
};
struct page batch_place_page(const struct batch_place *p, size_t limit); /* of what comes next */
void batch_place_note(struct batch_place *p, const struct item_row *items, size_t count);

void batch_entry_id(char ret[BATCH_ENTRY_ID], const char *batch, size_t i);
/* What is stored of it, owned by the caller. */
json_t *batch_body(const struct batch *b);

/* --- batch_run.c --- */

/* The batch of this tenant, if it has not ended; or NULL. */
struct batch *batch_find(struct batches *bs, const char *tenant, struct str id);
/* Begins with one that is stored. Takes b, with all requests to be done. */
void batch_add(struct batches *bs, struct batch *b);
struct batch *batch_new(size_t count);
void batch_free(struct batch *b);
/* Requests that have not begun are canceled. */
void batch_cancel(struct batch *b);
