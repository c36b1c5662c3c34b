/*
 * POST /v1/messages and /v1/messages/count_tokens: a long body is parsed on another thread.
 *
 * Each model counts tokens in a way that nobody outside of it knows. So the count is an estimate,
 * and the documentation says so: four bytes of text are a token, and so is each value around them.
 */
#include "doors/anthropic/messages_int.h"

#include <gnutls/crypto.h>
#include <stdlib.h>

#define BYTES_A_TOKEN 4
#define IMAGE_TOKENS  1600 /* the most that one of Anthropic's images takes */

/* On any thread: touches nothing but the messages_request and the bytes of its body. */
static void parse(void *arg)
{
    struct messages_request *m = arg;
    struct str bytes = request_body(m->request);
    json_t *body = NULL;

    if (request_value(m->request, &body, &m->failed) < 0 ||
        request_params_read(&m->params, body, &m->failed) < 0)
        return;
    m->thread = json_object_get(body, "thread") && !json_is_null(json_object_get(body, "thread"));
    if (m->thread || history_read(&m->history, json_object_get(body, "messages"), &m->failed) < 0)
        return;
    if (gnutls_hash_fast(GNUTLS_DIG_SHA256, bytes.p, bytes.n, m->hash) < 0)
        err_set(&m->failed, ERR_HOST, "the body cannot be hashed");
}

static void answer(void *arg)
{
    struct messages_request *m = arg;
    struct request *r = m->request;
    const struct anthropic *a = request_ctx(r);

    if (m->failed.kind == ERR_HOST)
        answer_error(r, &m->failed, NULL);
    else if (m->failed.kind)
        answer_fail(r, 400, CODE_INVALID, NULL, "%s", m->failed.text);
    else if (m->thread) /* a client that believes in threads would send only new messages from now
                           on */
        answer_fail(r, 400, CODE_THREAD_UNSUPPORTED, "thread",
                    "Threads are not supported by this server.");
    else
        turn_registry_answer(a->registry, m);
    request_params_done(&m->params);
    history_done(&m->history);
    free(m);
}

/* --- tokens --- */

static uint64_t text_tokens(size_t bytes)
{
    return (bytes + BYTES_A_TOKEN - 1) / BYTES_A_TOKEN;
}

/* The bytes of an image say nothing of what it costs. */
static bool is_image(const json_t *v)
{
    return str_is(view_of(v, "type"), "base64") && json_is_string(json_object_get(v, "data"));
}

uint64_t tokens_of(const json_t *v)
{
    uint64_t sum = 0;
    const char *name;
    size_t i;
    json_t *one;

    if (json_is_string(v))
        return text_tokens(json_string_length(v));
    if (is_image(v))
        return IMAGE_TOKENS;
    json_array_foreach((json_t *)v, i, one)
        sum += 1 + tokens_of(one);
    json_object_foreach((json_t *)v, name, one)
        sum += text_tokens(strlen(name)) + tokens_of(one);
    return sum + (json_is_number(v) || json_is_boolean(v));
}

/* As parse(). */
static void count(void *arg)
{
    static const char *const parts[] = {"system", "messages", "tools"}; /* that a model is shown */
    struct messages_request *m = arg;
    json_t *body = NULL;

    if (request_value(m->request, &body, &m->failed) < 0)
        return;
    if (json_array_size(json_object_get(body, "messages")) == 0)
        err_set(&m->failed, ERR_CALLER, "messages: at least one message is required");
    for (size_t i = 0; i < COUNT(parts); i++)
        m->tokens += tokens_of(json_object_get(body, parts[i]));
    json_decref(body);
}

static void answer_count(void *arg)
{
    struct messages_request *m = arg;

    if (m->failed.kind)
        answer_fail(m->request, 400, CODE_INVALID, NULL, "%s", m->failed.text);
    else
        answer_json(
            m->request, 200,
            json_pack("{s:I, s:n}", "input_tokens", (json_int_t)m->tokens, "context_management"));
    free(m);
}

/* --- routes --- */

static void read_body(struct request *r, loop_fn *work, loop_fn *done)
{
    struct messages_request *m = mem_zalloc(sizeof(*m));

    m->request = r;
    m->service = request_service(r);
    m->caller = *request_caller(r);
    if (request_body(r).n > BODY_SMALL)
        return service_work(request_service(r), work, done, m);
    work(m);
    done(m);
}

void handle_messages(struct request *r)
{
    read_body(r, parse, answer);
}

void handle_count_tokens(struct request *r)
{
    read_body(r, count, answer_count);
}
