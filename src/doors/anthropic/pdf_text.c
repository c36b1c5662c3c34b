/*
 * PDF documents for a model that does not read PDF: the text of each document, extracted in a
 * sandbox, replaces its bytes. A message is refused when one of its documents has no text.
 */
#include "doors/anthropic/turn_int.h"

#include <stdlib.h>

#define PDFS_MAX 20 /* of a request: each takes a sandbox, one after the other */

struct pdf_reader {
    struct turn *turn;             /* borrowed; NULL: it was left */
    struct document_text *extract; /* owned, or NULL: the text comes */
    struct service *service;
    size_t at;   /* in history.documents */
    json_t *one; /* owned: the document there, while its bytes are decoded */
    char *bytes; /* owned */
    size_t n;
    bool bad;
};

static void take_next(struct pdf_reader *g);

static void reader_free(struct pdf_reader *g)
{
    json_decref(g->one);
    free(g->bytes);
    free(g);
}

void pdf_texts_leave(struct pdf_reader *g)
{
    g->turn = NULL;
    if (!g->extract) /* on_decoded() frees it */
        return;
    document_text_leave(take_ptr(&g->extract));
    reader_free(g);
}

static void fail(struct pdf_reader *g, const struct err *e, const char *code)
{
    struct turn *r = g->turn;

    r->pdfs = NULL;
    reader_free(g);
    turn_fail(r, e, code);
}

static void refuse(struct pdf_reader *g, const char *why)
{
    struct err e;

    err_set(&e, ERR_CALLER,
            "messages.%lld: the model of this server reads no PDF, and there is no text of this "
            "one: %s. As a container_upload, code can read the file",
            json_integer_value(json_object_get(g->one, "at")), why);
    fail(g, &e, CODE_INVALID);
}

/* The title, if it has one, then the text. */
static json_t *text_of_part(const json_t *part, struct str text, bool cut)
{
    AUTO(buf_done) struct buf b = BUF(2 * DOCUMENT_TEXT_MAX);
    struct str title = view_of(part, "title");

    buf_put(&b, title);
    if (title.n > 0)
        buf_put(&b, STR("\n\n"));
    buf_put(&b, text);
    if (cut)
        buf_put(&b, STR("\n[The document goes on: this is the beginning of its text.]"));
    return record_text(buf_str(&b));
}

static void on_text(void *arg, struct str text, bool cut, const struct err *none)
{
    struct pdf_reader *g = arg;
    json_t *part = json_object_get(g->one, "part");

    g->extract = NULL;
    text = str_trim(text);
    if (none && none->kind == ERR_CALLER)
        return refuse(g, none->text);
    if (none)
        return fail(g, none, NULL);
    if (text.n == 0)
        return refuse(g, "its pages are images");
    json_object_set_new(part, "text", text_of_part(part, text, cut));
    json_object_set_new(part, "type", json_string("text"));
    json_object_del(part, "data");
    json_object_del(part, "url");
    g->at++;
    take_next(g);
}

static void extract(struct pdf_reader *g, struct file_input file)
{
    struct turn *r = g->turn;

    g->extract =
        document_text_start(r->service, &r->caller, r->anthropic->config.pool, file, on_text, g);
}

/* On another thread. */
static void decode(void *arg)
{
    struct pdf_reader *g = arg;
    struct str data = view_of(json_object_get(g->one, "part"), "data");

    free(g->bytes);
    g->bytes = mem_zalloc(data.n + 1);
    g->bad = !base64_decode(data, g->bytes, &g->n);
}

static void on_decoded(void *arg)
{
    struct pdf_reader *g = arg;

    if (!g->turn)
        return reader_free(g);
    if (g->bad)
        return refuse(g, "it is no base64");
    extract(g, (struct file_input){
                   .content = {g->bytes, g->n},
                     .has_content = true
    });
}

static void take_next(struct pdf_reader *g)
{
    struct turn *r = g->turn;
    struct str file, url;

    json_decref(take_ptr(&g->one));
    if (g->at == json_array_size(r->history.documents)) {
        r->pdfs = NULL;
        reader_free(g);
        return turn_on_documents(r);
    }
    g->one = json_incref(json_array_get(r->history.documents, g->at));
    file = view_of(g->one, "id");
    url = view_of(json_object_get(g->one, "part"), "url");
    if (g->at >= PDFS_MAX)
        refuse(g, "there are more than 20 in this request");
    else if (file.n > 0)
        extract(g, (struct file_input){.file_id = file});
    else if (url.n > 0)
        extract(g, (struct file_input){.url = url});
    else
        service_work(g->service, decode, on_decoded, g);
}

void pdf_texts_take(struct turn *r)
{
    struct pdf_reader *g = mem_zalloc(sizeof(*g));

    *g = (struct pdf_reader){.turn = r, .service = r->service};
    r->pdfs = g;
    take_next(g);
}
