/*
 * Refusals by the library itself: one answer, in our format, and the end of the connection.
 *
 * Theory of operation: a head that the library cannot read, or has no memory for, never becomes a
 * request of ours. The library answers it with a page of its own, and 0.9.75 sends the head of that
 * answer twice when the length of a body is malformed. The library queues this answer with its own
 * public function. The dynamic linker takes the first function of that name, which is the one here.
 * So all calls that arrive here are the library's; our own code calls library_queue().
 *
 * Our answer is written past the library, and the stream is ended behind it. The library then
 * queues its page, cannot send it, and ends the connection. To tell the library that nothing was
 * queued would be shorter, but then it frees the head while it still reads it. A library that does
 * not call its function through the linker answers as before.
 */
#include "doors/http/http_mhd.h"

#include <dlfcn.h>
#include <gnutls/gnutls.h>
#include <sys/socket.h>

typedef enum MHD_Result queue_fn(struct MHD_Connection *mhd, unsigned status,
                                 struct MHD_Response *resp);

enum MHD_Result library_queue(struct MHD_Connection *mhd, unsigned status,
                              struct MHD_Response *resp)
{
    static queue_fn *next;

    if (!next)
        next = (queue_fn *)dlsym(RTLD_NEXT, "MHD_queue_response");
    assert(next);
    return next(mhd, status, resp);
}

static const struct {
    unsigned status;
    const char *type, *text;
} reasons[] = {
    {413, "too_large",       "the length of the body is too large"                             },
    {414, "too_large",       "the path and query are too long"                                 },
    {431, "too_large",       "the headers are too long together"                               },
    {505, "invalid_request", "the versions of HTTP that are spoken here are 1.0 and 1.1"       },
    {0,   "invalid_request",
     "the request cannot be read: its first line, a header, its length or a chunk is malformed"},
};

static void refuse(struct request *r, unsigned status)
{
    size_t i = 0;

    while (reasons[i].status && reasons[i].status != status)
        i++;
    answer_fail(r, (int)status, reasons[i].type, NULL, "%s", reasons[i].text);
}

/* The library has no request yet, so there is no http_on_over() for this one. */
static void refuse_nobody(struct http_conn *c, struct MHD_Connection *mhd, unsigned status)
{
    void *ctx = http_on_target(c->listener, NULL, mhd);

    http_refused(ctx);
    refuse(ctx, status);
    http_on_over(c->listener, mhd, &ctx, MHD_REQUEST_TERMINATED_WITH_ERROR);
}

static void end_stream(struct http_conn *c, struct MHD_Connection *mhd)
{
    const union MHD_ConnectionInfo *tls =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_GNUTLS_SESSION);

    if (tls)
        (void)!gnutls_bye(tls->tls_session, GNUTLS_SHUT_WR);
    (void)!shutdown(c->fd, SHUT_WR);
}

/* In place of the library's function of this name: see above. */
enum MHD_Result MHD_queue_response(struct MHD_Connection *mhd, unsigned status,
                                   struct MHD_Response *resp)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct http_conn *c = info ? info->socket_context : NULL;

    if (c && !c->request) {
        refuse_nobody(c, mhd, status);
    } else if (c && !c->request->refused && c->request->stage <= STAGE_BODY) {
        http_refused(c->request);
        refuse(c->request, status);
    }
    if (c)
        end_stream(c, mhd);
    return library_queue(mhd, status, resp);
}
