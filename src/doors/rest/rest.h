/*
 * rest: the native interface under /v1. Everything the service can do, as JSON,
 * event streams and bytes.
 *
 * Touches: requests through http, the service. Never touches: sockets, the store,
 * the engine, rules; what may be done is the service's business.
 *
 * rest_door is a row of cli/doors.c. routes.c has the table that serves, validates
 * and documents; each handler turns one request into one call of the service, and
 * what comes back into an answer (render.c). Answers made piece by piece go through
 * a pump (pump.c), which goes no faster than the client reads.
 */
#pragma once

#include "doors/http/http.h"

extern const struct door rest_door; /* its ctx is the struct http, for the OpenAPI document */
