/* The same for both adapters: a request of theirs, a reply of ours. */
#pragma once

#include "golden.h"
#include "model/model_int.h"

/* A question about these messages; system may be NULL. */
static inline json_t *request_of(const struct adapter *ad, struct model_ask ask,
                                 const char *messages, const char *tools, bool sees)
{
    json_t *m = json_of(messages), *t = tools ? json_of(tools) : NULL, *request;

    ask.messages = m;
    ask.tools = t;
    request = ad->request(&(struct question){
        .ask = &ask, .name = "m", .max_tokens = ask.max_tokens, .sees_images = sees});
    json_decref(m);
    json_decref(t);
    return request;
}

/* One member of it, owned. */
static inline json_t *member_of(const struct adapter *ad, struct model_ask ask,
                                const char *messages, const char *tools, bool sees, const char *key)
{
    json_t *request = request_of(ad, ask, messages, tools, sees);
    json_t *v = json_object_get(request, key);

    v = v ? json_incref(v) : json_null();
    json_decref(request);
    return v;
}

/* {"parts", "stop", "in", "out"} of these events, or null where one is none. */
static inline json_t *reply_of(const struct adapter *ad, const char *events, bool whole)
{
    json_t *list = json_of(events), *event, *parts = NULL;
    enum model_stop stop = MODEL_DONE;
    struct draft d;
    size_t i;
    int rc = 0;

    draft_init(&d);
    if (whole)
        rc = ad->whole(&d, list);
    else
        json_array_foreach(list, i, event) {
            rc = rc < 0 ? rc : ad->event(&d, event);
        }
    json_decref(list);
    if (rc == 0)
        parts = draft_parts(&d, &stop);
    parts = rc < 0 ? json_null()
                   : json_pack("{s:o, s:i, s:b, s:I, s:I}", "parts", parts, "stop", (int)stop,
                               "ended", d.ended || d.has_stop, "in", (json_int_t)d.input_tokens,
                               "out", (json_int_t)d.output_tokens);
    draft_done(&d);
    return parts;
}
