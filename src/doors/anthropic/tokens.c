/*
 * How long a question is, about. Each model counts in its own way, which nobody outside
 * of it knows; so this is an estimate, and says as much in the documentation: four bytes
 * of text are a token, and so is each value that frames it.
 */
#include "doors/anthropic/anthropic_int.h"

#include "doors/values/values.h"

#include <stdlib.h>

#define BYTES_A_TOKEN 4
#define IMAGE_TOKENS  1600 /* the most that one of their images takes */

static uint64_t text_tokens(size_t bytes)
{
    return (bytes + BYTES_A_TOKEN - 1) / BYTES_A_TOKEN;
}

/* Its bytes say nothing of what a picture costs. */
static bool is_picture(const json_t *v)
{
    struct str type = json_view(json_object_get(v, "type"));

    return str_is(type, "base64") && json_is_string(json_object_get(v, "data"));
}

uint64_t tokens_of(const json_t *v)
{
    uint64_t sum = 0;
    const char *name;
    size_t i;
    json_t *one;

    if (json_is_string(v))
        return text_tokens(json_string_length(v));
    if (is_picture(v))
        return IMAGE_TOKENS;
    json_array_foreach((json_t *)v, i, one) sum += 1 + tokens_of(one);
    json_object_foreach((json_t *)v, name, one) sum += text_tokens(strlen(name)) + tokens_of(one);
    return sum + (json_is_number(v) || json_is_boolean(v));
}

/* What a model is shown of a request. */
static const char *const parts[] = {"system", "messages", "tools"};

struct count {
    struct request *request; /* borrowed: until it is answered */
    uint64_t sum;
    struct err failed;
};

/* On any thread: touches nothing but this and the bytes of the request. */
static void count(void *arg)
{
    struct count *c = arg;
    json_t *body = NULL;

    if (json_read_any(request_body(c->request), &body, &c->failed) < 0)
        return;
    if (json_array_size(json_object_get(body, "messages")) == 0)
        err_set(&c->failed, ERR_CALLER, "messages: at least one message is required");
    for (size_t i = 0; i < COUNT(parts); i++)
        c->sum += tokens_of(json_object_get(body, parts[i]));
    json_decref(body);
}

static void tell(void *arg)
{
    struct count *c = arg;

    if (c->failed.kind)
        answer_fail(c->request, 400, CODE_INVALID, NULL, "%s", c->failed.text);
    else
        answer_json(
            c->request, 200,
            json_pack("{s:I, s:n}", "input_tokens", (json_int_t)c->sum, "context_management"));
    free(c);
}

void handle_count_tokens(struct request *r)
{
    struct count *c = mem_zalloc(sizeof(*c));

    c->request = r;
    if (request_body(r).n > BODY_SMALL) {
        service_work(request_service(r), count, tell, c);
        return;
    }
    count(c);
    tell(c);
}
