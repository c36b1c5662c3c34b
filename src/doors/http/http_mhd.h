/* Private to the files of this room that call libmicrohttpd. */
#pragma once

#include "doors/http/http_int.h"

#include <microhttpd.h>

/* From this version on the library refuses what two parsers may read differently. */
#define MHD_IS_STRICT (MHD_VERSION >= 0x00097701)
#if MHD_IS_STRICT
#define STRICTNESS MHD_OPTION_CLIENT_DISCIPLINE_LVL, 1
#else
#define STRICTNESS MHD_OPTION_STRICT_FOR_CLIENT, 0 /* guard_head() is stricter, in our shape */
#endif

/* --- http.c: what the library calls, in this order --- */

/* The request line is there; target NULL: and cannot be read. Returns the request, which comes back
 * as *ctx. */
void *http_on_target(void *arg, const char *target, struct MHD_Connection *mhd);
enum MHD_Result http_on_request(void *arg, struct MHD_Connection *mhd, const char *url,
                                const char *method, const char *version, const char *piece,
                                size_t *piece_n, void **ctx);
/* The library refuses a request whose head, or body, is not whole: r is answered past it next. */
void http_refused(struct request *r);
void http_on_over(void *arg, struct MHD_Connection *mhd, void **ctx,
                  enum MHD_RequestTerminationCode how);

/* --- refusal.c --- */

/* MHD_queue_response() of the library; by its own name it is what the library calls for itself. */
enum MHD_Result library_queue(struct MHD_Connection *mhd, unsigned status,
                              struct MHD_Response *resp);
