/* POST /v1/messages: read here, or on another thread when it is long; then the desk has it. */
#include "doors/anthropic/messages_int.h"

#include <gnutls/crypto.h>
#include <stdlib.h>

struct letter {
    struct request *request; /* borrowed: until it is answered */
    uint8_t hash[32];
    struct ask ask;
    struct history history;
    bool thread; /* it wants what we have not */
    struct err failed;
};

static void letter_free(struct letter *t)
{
    ask_done(&t->ask);
    history_done(&t->history);
    free(t);
}

/* On any thread: touches nothing but the letter and the bytes of its request. */
static void read_letter(void *arg)
{
    struct letter *t = arg;
    struct str bytes = request_body(t->request);
    json_t *body = NULL;

    if (json_read_any(bytes, &body, &t->failed) < 0)
        return;
    if (ask_read(&t->ask, body, &t->failed) < 0)
        return;
    t->thread = json_object_get(body, "thread") && !json_is_null(json_object_get(body, "thread"));
    if (t->thread)
        return;
    if (history_read(&t->history, json_object_get(body, "messages"), &t->failed) < 0)
        return;
    if (gnutls_hash_fast(GNUTLS_DIG_SHA256, bytes.p, bytes.n, t->hash) < 0)
        err_set(&t->failed, ERR_HOST, "the body cannot be hashed");
}

/* Not to be left alone: a client that believes in threads sends nothing but news from then on. */
static void refuse_thread(struct request *r)
{
    answer_fail(r, 400, CODE_THREAD_UNSUPPORTED, "thread",
                "Threads are not supported by this server.");
}

static void take_letter(void *arg)
{
    struct letter *t = arg;
    struct request *r = t->request;
    const struct anthropic *a = request_ctx(r);

    if (t->failed.kind == ERR_HOST)
        answer_error(r, &t->failed, NULL);
    else if (t->failed.kind)
        answer_fail(r, 400, CODE_INVALID, NULL, "%s", t->failed.text);
    else if (t->thread)
        refuse_thread(r);
    else
        desk_read(a->desk, r, t->hash, &t->ask, &t->history);
    letter_free(t);
}

void handle_messages(struct request *r)
{
    struct letter *t = mem_zalloc(sizeof(*t));

    t->request = r;
    if (request_body(r).n > BODY_SMALL) {
        service_work(request_service(r), read_letter, take_letter, t);
        return;
    }
    read_letter(t);
    take_letter(t);
}
