/*
 * anthropic: the code execution tool, containers and the Files API of Anthropic, as
 * their clients know them. An SDK of theirs, pointed at /anthropic, is served here.
 *
 * Touches: requests through http, the service, models. Never touches: sockets, the
 * store, rules; a container of theirs is a session of ours.
 *
 * anthropic_new(), anthropic_door_init(), http_add(). routes.c has the table, errors.c
 * says what is wrong in their way, and each of the other files answers some routes.
 */
#pragma once

#include "doors/http/http.h"

struct anthropic;
struct models;

struct anthropic_config {
    struct loop *loop;     /* borrowed, as are the rest */
    struct models *models; /* who answers messages */
    bool download_uploads; /* what a client has uploaded can be downloaded again */
};

struct anthropic *anthropic_new(const struct anthropic_config *config);
void anthropic_free(struct anthropic *a); /* after the last request; NULL is none */
void anthropic_door_init(struct door *ret, struct anthropic *a);
