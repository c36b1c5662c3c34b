/*
 * The whole workspace as one archive, made while it is sent.
 *
 * The list of files comes first and is copied. Then file by file: the service opens
 * it, a worker reads a piece, the loop hands it on; one piece is in memory, and the
 * next is read when the client has taken what there is. A file that has gone since
 * the list was made is left out.
 */
#include "doors/rest/rest_int.h"

#include <stdlib.h>
#include <unistd.h>

struct packing {
    struct pump pump;
    struct archive archive;
    struct buf out;
    char **path; /* owned, each */
    size_t count, at;
    int fd; /* owned: of path[at], or -1 */
    uint64_t left;
    char *piece; /* owned */
    ssize_t got; /* the worker's: bytes in piece, -1: failed */
    int sys;     /* its errno */
};

static void packing_free(void *p)
{
    struct packing *k = p;

    for (size_t i = 0; i < k->count; i++)
        free(k->path[i]);
    free(k->path);
    free(k->piece);
    fd_closep(&k->fd);
    buf_done(&k->out);
    archive_done(&k->archive);
    free(k);
}

static void flush(struct packing *k)
{
    answer_stream_put(k->pump.r, buf_str(&k->out));
    k->out.n = 0;
}

/* The file at hand is written; its name and size were promised in the header. */
static void finish_file(struct packing *k)
{
    struct err e;

    fd_closep(&k->fd);
    k->fd = -1;
    k->at++;
    if (archive_finish(&k->archive, &k->out, &e) < 0) {
        pump_fail(&k->pump, &e);
        return;
    }
    flush(k);
    pump_next(&k->pump);
}

static void read_piece(void *arg) /* on a worker */
{
    struct packing *k = arg;
    size_t want = k->left < ARCHIVE_PIECE ? (size_t)k->left : ARCHIVE_PIECE;

    do
        k->got = read(k->fd, k->piece, want);
    while (k->got < 0 && errno == EINTR);
    k->sys = k->got < 0 ? errno : 0;
    if (k->got > 0)
        archive_bytes(&k->archive, (struct str){k->piece, (size_t)k->got});
}

static void on_piece(void *arg)
{
    struct packing *k = arg;
    struct err e;

    if (!pump_back(&k->pump))
        return;
    if (k->got <= 0) {
        errno = k->got < 0 ? k->sys : EIO; /* a blob does not shrink */
        err_sys(&e, "read a file of the workspace");
        pump_fail(&k->pump, &e);
        return;
    }
    answer_stream_put(k->pump.r, (struct str){k->piece, (size_t)k->got});
    k->left -= (uint64_t)k->got;
    if (k->left == 0)
        finish_file(k);
    else
        pump_next(&k->pump);
}

static void on_open(void *arg, int *fd, const struct space_file *file, const struct err *failed)
{
    struct packing *k = arg;
    struct err e;

    if (!pump_back(&k->pump))
        return;
    if (failed && failed->kind == ERR_MISSING) {
        k->at++;
        pump_next(&k->pump);
        return;
    }
    if (failed) {
        pump_fail(&k->pump, failed);
        return;
    }
    k->fd = take_fd(fd);
    k->left = file->size;
    if (archive_begin(&k->archive, str_of(k->path[k->at]), file->size, file->mtime_ms, &k->out,
                      &e) < 0) {
        pump_fail(&k->pump, &e);
        return;
    }
    flush(k);
    if (k->left == 0)
        finish_file(k);
    else
        pump_next(&k->pump);
}

static void finish_all(struct packing *k)
{
    struct err e;

    if (archive_end(&k->archive, &k->out, &e) < 0) {
        pump_fail(&k->pump, &e);
        return;
    }
    flush(k);
    answer_stream_end(k->pump.r);
}

static void on_list(void *arg, const struct space_file *files, size_t count,
                    const struct err *failed)
{
    struct packing *k = arg;

    if (!pump_back(&k->pump))
        return;
    if (failed) {
        pump_fail(&k->pump, failed);
        return;
    }
    k->path = mem_zalloc((count + 1) * sizeof(k->path[0]));
    for (k->count = 0; k->count < count; k->count++)
        k->path[k->count] = mem_strndup(files[k->count].path);
    answer_header(k->pump.r, "content-disposition", k->archive.format->disposition);
    pump_open(&k->pump, 200, k->archive.format->mime);
    pump_next(&k->pump);
}

static void pack(void *arg)
{
    struct packing *k = arg;
    struct request *r = k->pump.r;
    struct service *sv = request_service(r);
    struct str session = request_path(r, "session");

    if (!k->pump.open)
        service_space_list(sv, request_caller(r), session, on_list, k);
    else if (k->fd >= 0)
        service_work(sv, read_piece, on_piece, k);
    else if (k->at < k->count)
        service_space_open(sv, request_caller(r), session, str_of(k->path[k->at]), on_open, k);
    else
        finish_all(k);
}

void handle_get_archive(struct request *r)
{
    struct packing *k = mem_zalloc(sizeof(*k));
    bool zip = str_is(request_query(r, "format"), "zip");

    k->fd = -1;
    k->piece = mem_zalloc(ARCHIVE_PIECE);
    buf_init(&k->out, ARCHIVE_DIRECTORY_MAX + MiB);
    archive_init(&k->archive, zip ? &zip_format : &tar_format);
    request_keep(r, packing_free, k);
    pump_start(&k->pump, r, pack, k);
}
