/* Private to the MCP room: running code, and what a model reads of an execution. */
#pragma once

#include "doors/mcp/mcp_int.h"

/* --- call.c: the session a tool works in --- */

/* Sets c->session and c->how. session "": a new one is to be made. */
void call_session_choose(struct call *c);
/* The same for a tool that makes no session. False: there is none, and the call is answered. */
bool call_session_exists(struct call *c);
/* The call works in this session; a new one is the conversation's from now on. */
void call_session_take(struct call *c, const char *session);
/* " | new session ..." where the reader must be told, for the first line of an answer. */
const char *call_session_note(const struct call *c);
/* Ends the call: why something could not be done in c->session, and what to do now. */
void tool_refuse_session(struct call *c, const struct err *failed);

/* --- report.c: an execution as a model reads it --- */

/* What a report shows: all that matters, a page of the output, or one image. */
struct report_of {
    bool looks; /* the execution was begun by another call: its failure is not this call's */
    bool has_offset;
    uint64_t offset; /* bytes of stdout and stderr */
    size_t image;    /* from 1; 0: all that matters */
};
/* Ends the call. A long report is written on a worker. */
void report_answer(struct call *c, struct service *sv, const struct exec_info *info,
                   const struct report_of *of);

/* --- figures.c: the images of a result --- */

struct figures {
    const char *execution; /* borrowed */
    json_t *items;         /* owned: array, content */
    size_t seen, shown, sum;
    size_t only;    /* this one, from 1; 0: the first few */
    uint64_t whole; /* bit n: image n is in items as it is */
};
/* Adds the next image of the execution to items, if a model can be shown it, and a line to text. */
void figures_add(struct figures *f, const struct event_reader *at, struct buf *text);

/* --- picture.c: the format and size of images --- */

#define PICTURE_SIDE 1568 /* pixels; larger ones cost a model more and show it no more */
#define PICTURES_SUM                                                                               \
    850000 /* of one result, as base64: a client takes a megabyte of result in all */

struct picture {
    const char *mime; /* static */
    uint32_t width, height;
    bool whole; /* from its first block to its last; pixels are not decoded */
};
/* False: the bytes are no PNG, JPEG, GIF or WebP. */
bool picture_look(struct str bytes, struct picture *ret);
/* Why the image cannot be shown to a model, or NULL. bytes: before base64. */
const char *picture_why_not(const struct picture *p, size_t bytes);

/* --- clip.c: text cut between characters --- */

/* As text_head(), up to the end of a line where one is near. */
size_t text_head_lines(struct str s, size_t most);
size_t text_tail(struct str s, size_t most); /* where the last bytes begin */
/* Without the parts of characters at the ends of a page, where these are not the text's own. */
struct str text_whole(struct str s, bool is_begin, bool is_end);
size_t text_lines(struct str s); /* newlines in it */
/* Divides sum among wants: none gets more than it wants, and all that get less get the same. */
void text_share(const size_t *wants, size_t *ret, size_t count, size_t sum);
