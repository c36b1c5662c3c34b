/* Blocks of the user: text, images, documents, uploads, results of client tools. */
#include "doors/anthropic/history_int.h"

static json_t *text_part(json_t *text)
{
    return json_pack("{s:s, s:o}", "type", "text", "text", text);
}

void history_add_text(json_t *parts, struct str text)
{
    if (text.n > 0)
        json_array_append_new(parts, text_part(record_text(text)));
}

void history_cache(json_t *part, const json_t *block)
{
    json_t *cache = json_object_get(block, "cache_control");

    if (json_is_object(cache))
        json_object_set(part, "cache", cache);
}

/* {"mime", "data"} or {"url"}, owned; NULL: the source is neither base64 nor a URL. */
static json_t *source_value(const json_t *block)
{
    const json_t *source = json_object_get(block, "source");
    const char *mime = text_of(source, "media_type");
    json_t *data = json_object_get(source, "data"), *url = json_object_get(source, "url");

    if (str_is(view_of(source, "type"), "base64") && mime && json_is_string(data))
        return json_pack("{s:s, s:O}", "mime", mime, "data", data);
    if (str_is(view_of(source, "type"), "url") && json_is_string(url))
        return json_pack("{s:O}", "url", url);
    return NULL;
}

/* The text of a source, in pieces. */
static void add_source_text(json_t *parts, const json_t *source)
{
    const json_t *content = json_object_get(source, "content"), *one;
    size_t i;

    if (str_is(view_of(source, "type"), "text"))
        history_add_text(parts, view_of(source, "data"));
    else
        history_add_text(parts, json_view(content));
    json_array_foreach((json_t *)content, i, one)
        history_add_text(parts, view_of(one, "text"));
}

/* An image or a document: as bytes, by its URL, or as a file, whose bytes attachments.c reads. An
 * image in a result is a note for a model that sees none: only the user's own are refused. */
static int add_attachment(struct history_reader *g, json_t *parts, const json_t *block,
                          const char *type, bool of_result)
{
    json_t *source = json_object_get(block, "source"), *id = json_object_get(source, "file_id");
    json_t *part = source_value(block);
    bool file = str_is(view_of(source, "type"), "file") && json_is_string(id);
    bool image = strcmp(type, "image") == 0;

    if (!part && !file)
        return err_set(g->e, ERR_CALLER,
                       "messages.%zu: the source of %s: base64 with its media_type, a url or a "
                       "file_id is expected",
                       g->at, type);
    if (file && json_array_size(g->h->attached) >= UPLOADS_SHOWN)
        return err_set(g->e, ERR_CALLER, "messages: more than %d files", UPLOADS_SHOWN);
    if (!part)
        part = json_object();
    json_object_set_new(part, "type", json_string(type));
    if (view_of(block, "title").n > 0)
        json_object_set(part, "title", json_object_get(block, "title"));
    if (image && !file && !of_result && !g->h->first_image.is)
        g->h->first_image = (struct attachment){true, g->at};
    if (!image && !file)
        json_array_append_new(g->h->documents,
                              json_pack("{s:O, s:I}", "part", part, "at", (json_int_t)g->at));
    if (file)
        json_array_append_new(g->h->attached,
                              json_pack("{s:O, s:O, s:I, s:b}", "id", id, "part", part, "at",
                                        (json_int_t)g->at, "of_result", (int)of_result));
    json_array_append_new(parts, part);
    return 0;
}

static int add_document(struct history_reader *g, json_t *parts, const json_t *block,
                        bool of_result)
{
    const json_t *source = json_object_get(block, "source");
    bool text =
        str_is(view_of(source, "type"), "text") || str_is(view_of(source, "type"), "content");

    if (text)
        history_add_text(parts, view_of(block, "title"));
    history_add_text(parts, view_of(block, "context"));
    if (!text)
        return add_attachment(g, parts, block, "document", of_result);
    add_source_text(parts, source);
    return 0;
}

static int add_image(struct history_reader *g, json_t *parts, const json_t *block, bool of_result)
{
    return add_attachment(g, parts, block, "image", of_result);
}

/* What the client's own search has found: models get it as text. */
static int add_search_result(struct history_reader *g, json_t *parts, const json_t *block,
                             bool of_result)
{
    (void)g, (void)of_result;
    history_add_text(parts, view_of(block, "title"));
    history_add_text(parts, json_view(json_object_get(block, "source")));
    add_source_text(parts, block);
    return 0;
}

static int add_text_block(struct history_reader *g, json_t *parts, const json_t *block,
                          bool of_result)
{
    (void)g, (void)of_result;
    history_add_text(parts, view_of(block, "text"));
    return 0;
}

/* The parts of a block that stands in a message of the user or in a result. What a model would not
 * see is refused: an answer without it would look like one with it. */
static int add_block(struct history_reader *g, json_t *parts, const json_t *block, bool of_result)
{
    static const struct {
        const char *type;
        int (*add)(struct history_reader *g, json_t *parts, const json_t *block, bool of_result);
    } types[] = {
        {"text",          add_text_block   },
        {"image",         add_image        },
        {"document",      add_document     },
        {"search_result", add_search_result},
    };
    struct str type = view_of(block, "type");
    char shown[NAME_SHOWN];

    for (size_t i = 0; i < COUNT(types); i++)
        if (str_is(type, types[i].type))
            return types[i].add(g, parts, block, of_result);
    return err_set(g->e, ERR_CALLER, "messages.%zu: this server takes no `%s` from the user", g->at,
                   name_show(shown, type));
}

/* Adds each file once, with a text part that container.c fills in: where the file is. */
static int add_upload(struct history_reader *g, json_t *parts, const json_t *block)
{
    json_t *id = json_object_get(block, "file_id");
    json_t *part;

    if (!json_is_string(id))
        return err_set(g->e, ERR_CALLER, "messages.%zu: container_upload: file_id is required",
                       g->at);
    if (json_object_get(g->files, json_string_value(id)))
        return 0;
    if (json_object_size(g->files) >= UPLOADS_SHOWN)
        return err_set(g->e, ERR_CALLER, "messages: more than %d files", UPLOADS_SHOWN);
    json_object_set_new(g->files, json_string_value(id), json_true());
    part = text_part(json_string(""));
    json_array_append(parts, part);
    json_array_append_new(g->h->uploads, json_pack("{s:O, s:o}", "id", id, "part", part));
    return 0;
}

/* The text of a result, owned by the caller; its images and documents, and the text behind them,
 * are added to the array. NULL: *g->e says what is wrong. */
static json_t *result_text(struct history_reader *g, const json_t *content, json_t *attached)
{
    AUTO(buf_done) struct buf b = BUF(MESSAGES_BODY_MAX);
    const json_t *one;
    size_t i;

    if (json_is_string(content))
        return json_incref((json_t *)content);
    json_array_foreach((json_t *)content, i, one) {
        struct str text = view_of(one, "text");

        if (!str_is(view_of(one, "type"), "text") || json_array_size(attached) > 0) {
            if (add_block(g, attached, one, true) < 0)
                return NULL;
            continue;
        }
        if (text.n > 0 && b.n > 0)
            buf_put(&b, STR("\n"));
        buf_put(&b, text);
    }
    return record_text(buf_str(&b));
}

static int take_client_result(struct history_reader *g, json_t *block)
{
    const char *id = text_of(block, "tool_use_id");
    struct known_call *k = history_find(g, id);
    bool error = json_is_true(json_object_get(block, "is_error"));
    json_t *attached, *text, *results;

    if (!k || k->tool >= 0)
        return err_set(g->e, ERR_CALLER,
                       "messages.%zu: unexpected `tool_use_id` found in `tool_result` blocks: "
                       "%.100s",
                       g->at, id ? id : "none");
    if (k->answered)
        return 0;
    k->answered = true;
    if (k->code_of) {
        struct known_call *code = &g->known[k->code_of - 1];
        if (!code->answers)
            code->answers = json_object();
        json_object_set(code->answers, id, block);
        return 0;
    }
    attached = json_array();
    text = result_text(g, json_object_get(block, "content"), attached);
    if (text) {
        history_put_result(g, k, text, attached, error);
        results = g->reply[k->reply].results;
        history_cache(json_array_get(results, json_array_size(results) - 1), block);
    }
    json_decref(attached);
    return text ? 0 : -1;
}

int history_take_user_block(struct history_reader *g, json_t *block)
{
    const char *type = text_of(block, "type");
    json_t *rest = history_last(g)->rest;
    size_t before = json_array_size(rest);
    int rc = 0;

    if (!type)
        return err_set(g->e, ERR_CALLER, "messages.%zu: a block has no type", g->at);
    if (strcmp(type, "tool_result") == 0)
        return take_client_result(g, block);
    if (strcmp(type, "container_upload") == 0)
        rc = add_upload(g, rest, block);
    else
        rc = add_block(g, rest, block, false);
    if (rc == 0 && json_array_size(rest) > before)
        history_cache(json_array_get(rest, json_array_size(rest) - 1), block);
    return rc;
}
