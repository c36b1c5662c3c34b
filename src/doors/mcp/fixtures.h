/*
 * fixtures: what the conformance suite of the protocol wants to find at a server, behind
 * --conformance-fixtures. None of it touches the service.
 */
#pragma once

#include "doors/mcp/mcp_int.h"

#define FIXTURE_PNG                                                                                \
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mNImHAAAAMEAbF6XHVQAAAAAElFTkSuQmCC"

/* A tool's row; schema NULL: it takes nothing. */
#define FIXTURE(id, schema_text, fn)                                                               \
    {                                                                                              \
        .name = (id), .title = "Fixture", .text = "A fixture of the conformance suite.",           \
        .schema = (schema_text) ? (schema_text) : "{\"type\":\"object\",\"properties\":{}}",       \
        .hints = TOOL_READS, .run = (fn)                                                           \
    }

/* Each ends with a name of NULL. */
extern const struct tool fixtures_plain[], fixtures_asking[], fixtures_input[], fixtures_tasks[];

/* Ends the call with one text. */
void fixture_say(struct call *c, const char *fmt, ...) PRINTF(2, 3);
/* Runs fn(c) so much later, unless the call has ended by then. */
void fixture_later(struct call *c, uint64_t ms, void (*fn)(struct call *c));
/* Parameters of elicitation/create; properties as JSON. Owned by the caller. */
json_t *fixture_form(const char *message, const char *properties);
json_t *fixture_sampling(const char *prompt);
json_t *fixture_literal(const char *text);

/* fixtures_data.c: resources and prompts, as struct face_more wants them. */
void fixtures_list_resources(json_t *list);
void fixtures_list_templates(json_t *list);
bool fixtures_read_resource(struct call *c, struct str uri);
void fixtures_list_prompts(json_t *list);
bool fixtures_get_prompt(struct call *c, struct str name, const json_t *args);
bool fixtures_complete(struct call *c, const json_t *ref);
