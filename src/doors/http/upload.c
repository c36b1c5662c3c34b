/*
 * Uploads on their way to the disk, with flat memory.
 *
 * Pieces are gathered in one buffer while a worker writes the one before, so that the
 * client and the disk (and the hash) work at the same time. When both are full the
 * connection sleeps until the worker is back. A buffer may hold bytes of several parts
 * of a form: its runs say which bytes are whose.
 */
#include "doors/http/http_int.h"

#include <stdlib.h>

struct upload_run {
    struct blob *blob; /* borrowed: the upload's */
    size_t n;
};

struct piece {
    struct buf bytes;
    struct upload_run runs[FORM_PARTS_MAX];
    size_t run_count;
};

struct uploads {
    struct request *request; /* borrowed: owns us, pinned while a worker is out */
    struct piece a, b;
    struct piece *fill, *out; /* gathered; written */
    struct err failed;
    bool writing;
    void (*done)(struct request *r, const struct err *failed); /* all of it is there */
};

struct uploads *uploads_new(struct request *r)
{
    struct uploads *u = mem_zalloc(sizeof(*u));

    *u = (struct uploads){.request = r, .fill = &u->a, .out = &u->b};
    /* One piece of the library's may come on top of a full one. */
    buf_init(&u->a.bytes, UPLOAD_PIECE + CONNECTION_MEMORY);
    buf_init(&u->b.bytes, UPLOAD_PIECE + CONNECTION_MEMORY);
    return u;
}

void uploads_free(struct uploads *u)
{
    if (!u)
        return;
    assert(!u->writing);
    buf_done(&u->a.bytes);
    buf_done(&u->b.bytes);
    free(u);
}

static struct str keep(struct str s)
{
    return (struct str){mem_strndup(s), s.n};
}

int uploads_begin(struct uploads *u, const struct part *p, struct err *e)
{
    struct request *r = u->request;
    struct upload *up;

    r->uploads = mem_realloc(r->uploads, (r->upload_count + 1) * sizeof(*r->uploads));
    up = &r->uploads[r->upload_count++];
    *up = (struct upload){.field = keep(p->name), .name = keep(p->file), .mime = keep(p->mime)};
    if (!p->file.p)
        return 0;
    up->blob = service_blob_new(request_service(r), &r->caller, e);
    return up->blob ? 0 : -1;
}

static int put_text(struct upload *up, struct str bytes, struct err *e)
{
    char *text = (char *)up->text.p;

    if (up->text.n + bytes.n > FORM_TEXT_MAX)
        return err_set(e, ERR_LIMIT, "a text field of the form has more than %zu bytes",
                       FORM_TEXT_MAX);
    text = mem_realloc(text, up->text.n + bytes.n + 1);
    memcpy(text + up->text.n, bytes.p, bytes.n);
    up->text = (struct str){text, up->text.n + bytes.n};
    text[up->text.n] = '\0';
    return 0;
}

int uploads_put(struct uploads *u, struct str bytes, struct err *e)
{
    struct request *r = u->request;
    struct upload *up = &r->uploads[r->upload_count - 1];
    struct piece *f = u->fill;

    up->size += bytes.n;
    if (!up->blob)
        return put_text(up, bytes, e);
    if (f->run_count == 0 || f->runs[f->run_count - 1].blob != up->blob)
        f->runs[f->run_count++] = (struct upload_run){up->blob, 0};
    f->runs[f->run_count - 1].n += bytes.n;
    buf_put(&f->bytes, bytes);
    return buf_check(&f->bytes, e);
}

/* --- writing --- */

static void write_out(void *arg)
{
    struct uploads *u = arg;
    const char *p = u->out->bytes.p;

    for (size_t i = 0; i < u->out->run_count; i++) {
        struct upload_run *run = &u->out->runs[i];
        if (blob_write(run->blob, (struct str){p, run->n}, &u->failed) < 0)
            return;
        p += run->n;
    }
}

static void on_written(void *arg);

static void swap(struct uploads *u)
{
    struct piece *full = u->fill;

    u->fill = u->out;
    u->out = full;
    u->writing = true;
    u->request->pins++;
    service_work(request_service(u->request), write_out, on_written, u);
}

static void finish(struct uploads *u)
{
    void (*done)(struct request *, const struct err *) = u->done;

    u->done = NULL;
    done(u->request, u->failed.kind ? &u->failed : NULL);
}

static void on_written(void *arg)
{
    struct uploads *u = arg;
    struct request *r = u->request;

    u->writing = false;
    buf_clear(&u->out->bytes);
    u->out->run_count = 0;
    if (!r->mhd) {
        /* the client has gone */
    } else if (u->failed.kind && !u->done) {
        answer_error(r, &u->failed, NULL);
    } else if (u->done && (u->failed.kind || u->fill->bytes.n == 0)) {
        finish(u);
    } else if (u->done || u->fill->bytes.n >= UPLOAD_PIECE) {
        swap(u);
        if (!u->done && r->suspended)
            request_resume(r);
    }
    r->pins--;
    request_settle(r);
}

void uploads_pace(struct uploads *u)
{
    if (u->fill->bytes.n < UPLOAD_PIECE)
        return;
    if (!u->writing)
        swap(u);
    else if (!u->request->suspended)
        request_suspend(u->request);
}

void uploads_end(struct uploads *u, void (*done)(struct request *r, const struct err *failed))
{
    u->done = done;
    if (u->writing)
        return;
    if (u->failed.kind || u->fill->bytes.n == 0)
        finish(u);
    else
        swap(u);
}
