/*
 * operator: what those who run the server look at. /health, /ready, /metrics.
 *
 * Touches: counters of the service and of HTTP, /proc of this process. Never touches:
 * sessions, files, anything of a tenant's.
 *
 * operator_door() fills a door for http_add(). /health and /ready need no key.
 * /metrics needs none over a local listener, where the collector usually sits; a proxy
 * in front of that listener should not pass it on.
 */
#pragma once

#include "doors/http/http.h"

/* ret outlives h, as every door. */
void operator_door(struct door *ret, struct http *h);
