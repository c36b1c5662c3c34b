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

/* {"mime", "data"}, owned; NULL: the block is no image in base64. */
static json_t *image_of(const json_t *block)
{
    const json_t *source = json_object_get(block, "source");
    const char *type = text_of(source, "type"), *mime = text_of(source, "media_type");
    json_t *data = json_object_get(source, "data");

    if (!type || strcmp(type, "base64") != 0 || !mime || !json_is_string(data))
        return NULL;
    return json_pack("{s:s, s:O}", "mime", mime, "data", data);
}

static void add_image(json_t *parts, const json_t *block)
{
    json_t *image = image_of(block);

    if (!image) {
        history_add_text(parts, STR("[an image that is not shown here: only base64 is]"));
        return;
    }
    json_object_set_new(image, "type", json_string("image"));
    json_array_append_new(parts, image);
}

static void add_document(json_t *parts, const json_t *block)
{
    const json_t *source = json_object_get(block, "source");
    const char *type = text_of(source, "type");
    const json_t *one;
    size_t i;

    history_add_text(parts, view_of(block, "title"));
    if (type && strcmp(type, "text") == 0)
        history_add_text(parts, view_of(source, "data"));
    else if (type && strcmp(type, "content") == 0)
        json_array_foreach(json_object_get(source, "content"), i, one)
            history_add_text(parts, view_of(one, "text"));
    else
        history_add_text(parts, STR("[a document that is not shown here: only text is. As a "
                                    "container_upload, code can read it]"));
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

/* The text of a result, owned; its images are added to the array. */
static json_t *result_text(const json_t *content, json_t *images)
{
    AUTO(buf_done) struct buf b = BUF(MESSAGES_BODY_MAX);
    const json_t *one;
    json_t *v;
    size_t i;

    if (json_is_string(content))
        return json_incref((json_t *)content);
    json_array_foreach((json_t *)content, i, one) {
        struct str text = view_of(one, "text");
        json_t *image = image_of(one);

        if (text.n > 0 && b.n > 0)
            buf_put(&b, STR("\n"));
        buf_put(&b, text);
        if (image)
            json_array_append_new(images, image);
    }
    v = record_text(buf_str(&b));
    return v;
}

static int take_client_result(struct history_reader *g, json_t *block)
{
    const char *id = text_of(block, "tool_use_id");
    struct known_call *k = history_find(g, id);
    bool error = json_is_true(json_object_get(block, "is_error"));
    json_t *images;

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
    images = json_array();
    json_t *text = result_text(json_object_get(block, "content"), images);
    history_put_result(g, k, text, images, error);
    json_decref(images);
    return 0;
}

int history_take_user_block(struct history_reader *g, json_t *block)
{
    const char *type = text_of(block, "type");
    json_t *rest = history_last(g)->rest;

    if (!type)
        return err_set(g->e, ERR_CALLER, "messages.%zu: a block has no type", g->at);
    if (strcmp(type, "text") == 0)
        history_add_text(rest, view_of(block, "text"));
    else if (strcmp(type, "image") == 0)
        add_image(rest, block);
    else if (strcmp(type, "document") == 0)
        add_document(rest, block);
    else if (strcmp(type, "container_upload") == 0)
        return add_upload(g, rest, block);
    else if (strcmp(type, "tool_result") == 0)
        return take_client_result(g, block);
    return 0; /* unknown blocks are ignored */
}
