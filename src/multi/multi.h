/*
 * multi: libcurl's multi interface on the loop.
 *
 * Touches: one epoll set that the loop watches, one timer. Never touches: what is transferred; who
 * adds a handle sets it up, and says what its callbacks do.
 *
 * multi_new(), then multi_handle() to add easy handles to. libcurl's callbacks come from inside
 * libcurl, so they only take note of things; after(arg) is called when libcurl has returned, and
 * may start and end transfers.
 */
#pragma once

#include "base/base.h"
#include "loop/loop.h"

#include <curl/curl.h>

struct multi;

/* idle: connections kept for later. total: the most at a time; further transfers wait. */
struct multi *multi_new(struct loop *l, long idle, long total, loop_fn *after, void *arg);
/* Opened by the first call, so that a process that asks nothing has no fds. NULL: it cannot be. */
CURLM *multi_handle(struct multi *m);
/* after() will be called from the loop, as if libcurl had something to say. */
void multi_kick(struct multi *m);
/* For CURLOPT_OPENSOCKETFUNCTION: no child inherits the socket. */
curl_socket_t multi_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *a);
void multi_free(struct multi *m);
