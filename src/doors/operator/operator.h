/*
 * operator: what operators of the server look at. /health, /ready, /metrics.
 *
 * Touches: counters of the service and of HTTP, /proc of this process. Never touches:
 * sessions, files, anything of a tenant's.
 *
 * operator_door is a row of cli/doors.c. /health and /ready need no key.
 * /metrics needs none over a local listener, where the collector usually sits; a proxy
 * in front of that listener should not pass it on.
 */
#pragma once

#include "doors/http/http.h"

extern const struct door operator_door; /* its ctx is the struct http, for its counters */
