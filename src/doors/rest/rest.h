/*
 * rest: the native interface under /v1. Everything the service can do, as JSON,
 * event streams and bytes.
 *
 * Touches: requests through http, the service. Never touches: sockets, the store,
 * the engine, rules; what may be done is the service's business.
 *
 * rest_door is a row of cli/doors.c; rest_new() makes what its handlers share. routes.c has the
 * table that serves, validates and documents; each handler turns one request into one call of the
 * service, and what comes back into an answer (render.c). Answers made piece by piece go through a
 * pump (pump.c), which goes no faster than the client reads.
 */
#pragma once

#include "doors/http/http.h"

struct rest;

struct rest *rest_new(struct http *http); /* borrowed: for the OpenAPI document */
void rest_drain(void *rest);              /* ends streams that have no end of their own */
void rest_stop(void *rest);               /* before the service goes */
void rest_free(void *rest);               /* after the last request */

extern const struct door rest_door; /* its ctx is the struct rest */
