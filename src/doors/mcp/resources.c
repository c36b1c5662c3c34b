/*
 * Resources: what a client can read by name. Files of workspaces and outputs of
 * executions are the caller's own; the skill and the page for results are part of the
 * program. The list depends on who asks, never on the connection, and has the latest
 * files of the newest sessions first; every other file is reached by the template.
 */
#include "doors/mcp/mcp_int.h"

#include <stdio.h>
#include <stdlib.h>

#define LIST_ENOUGH  100 /* no further session on a page that has as many */
#define LIST_TTL_MS  0   /* code may write a file at any moment */
#define FIXED_TTL_MS 3600000
#define CURSOR_MAX   256

/* --- what the methods share --- */

void call_cacheable(const struct call *c, json_t *result, int ttl_ms, const char *scope)
{
    if (!call_is_modern(c))
        return;
    json_object_set_new(result, "ttlMs", json_integer(ttl_ms));
    json_object_set_new(result, "cacheScope", json_string(scope));
}

void call_no_resource(struct call *c, struct str uri)
{
    char shown[NAME_SHOWN];

    call_error(c, call_is_modern(c) ? RPC_PARAMS : RPC_NO_RESOURCE,
               json_pack("{s:o}", "uri", record_text(uri)),
               "there is no resource %s: resources/list shows what there is",
               name_show(shown, uri));
}

/* --- the list --- */

struct listing {
    struct call *c;  /* borrowed: answered at the end */
    json_t *entries; /* owned: array */
};

static void listing_free(void *p)
{
    struct listing *g = p;

    json_decref(g->entries);
    free(g);
}

/* NULL: it cannot be read by name. */
static json_t *file_show(const struct call *c, const struct walk_place *place,
                         const struct space_file *f)
{
    char uri[URI_MAX], text[256], time[TIME_TEXT];
    json_t *v;

    if (!uri_of_file(uri, str_of(place->session), f->path))
        return NULL;
    snprintf(text, sizeof(text), "A file in the workspace of session %s%s%.100s%s", place->session,
             place->name ? " (" : "", place->name ? place->name : "", place->name ? ")" : "");
    v = json_pack("{s:s, s:o, s:o, s:s, s:I}", "uri", uri, "name", record_text(f->path),
                  "description", record_text(str_of(text)), "mimeType", f->mime, "size",
                  (json_int_t)f->size);
    if (c->client.version->has & HAS_STRUCTURED) {
        time_print(f->mtime_ms, time);
        json_object_set_new(v, "annotations", json_pack("{s:s}", "lastModified", time));
    }
    return v;
}

static bool on_place(void *arg, const struct walk_place *place)
{
    struct listing *g = arg;

    for (size_t i = 0; i < place->count; i++) {
        json_t *shown = file_show(g->c, place, &place->files[i]);
        if (shown)
            json_array_append_new(g->entries, shown);
    }
    return json_array_size(g->entries) < LIST_ENOUGH;
}

/* Opaque to clients. Forged it leads nowhere but among the caller's own sessions. */
static json_t *cursor_make(const struct walk_end *end)
{
    char text[CURSOR_MAX];

    snprintf(text, sizeof(text), "%s %lld", end->session, (long long)end->created_ms);
    return record_base64(str_of(text));
}

static bool cursor_read(const json_t *cursor, struct walk_end *ret)
{
    struct str text = json_view(cursor);
    char plain[CURSOR_MAX], again[CURSOR_MAX], *space;
    size_t n;

    *ret = (struct walk_end){0};
    if (!text.p || text.n >= CURSOR_MAX || !base64_decode(text, plain, &n))
        return false;
    plain[n] = '\0';
    space = strchr(plain, ' ');
    if (!space || space - plain >= ID_MAX)
        return false;
    memcpy(ret->session, plain, (size_t)(space - plain));
    ret->created_ms = strtoll(space + 1, NULL, 10);
    snprintf(again, sizeof(again), "%s %lld", ret->session, (long long)ret->created_ms);
    return n == strlen(plain) && id_is(str_of(ret->session), "sess_") && strcmp(plain, again) == 0;
}

static void on_walked(void *arg, const struct walk_end *end, const struct err *failed)
{
    struct listing *g = arg;
    struct call *c = g->c;
    json_t *result;

    if (failed) {
        call_fail(c, failed);
        return;
    }
    result = json_pack("{s:O}", "resources", g->entries);
    if (*end->session)
        json_object_set_new(result, "nextCursor", cursor_make(end));
    call_cacheable(c, result, LIST_TTL_MS, "private");
    call_result(c, result);
}

static void list_fixed(struct listing *g)
{
    const struct face_more *more = g->c->face->more;

    for (const struct embedded *f = embedded; f->uri; f++)
        json_array_append_new(g->entries, embedded_show(f, g->c->client.version));
    if (more)
        more->list_resources(g->entries);
}

/* A program that has run nothing yet has no files to show, and is not started for a list. */
void handle_resources_list(struct call *c)
{
    const json_t *cursor = json_object_get(c->params, "cursor");
    struct service *sv = c->mcp->followed;
    struct walk_end after;
    struct listing *g;

    if (cursor && !cursor_read(cursor, &after)) {
        call_error(c, RPC_PARAMS, NULL, "this cursor is not one of ours: begin without a cursor");
        return;
    }
    g = mem_zalloc(sizeof(*g));
    *g = (struct listing){.c = c, .entries = json_array()};
    call_keep(c, listing_free, g);
    if (!cursor)
        list_fixed(g);
    if (sv)
        walk_files(c, sv, cursor ? &after : NULL, on_place, on_walked, g);
    else
        on_walked(g, &(struct walk_end){0}, NULL);
}

/* --- templates --- */

static const struct {
    const char *uri, *name, *title, *text, *mime;
} templates[] = {
    {
     .uri = "retort://sessions/{session_id}/files/{+path}",
     .name = "workspace_file",
     .title = "File of a workspace",
     .text = "A file that code has made or was given, by its path in /workspace. Large ones are "
                "read in parts: put ?offset=BYTES&limit=BYTES behind the URI.", },
    {
     .uri = "retort://executions/{execution_id}/output",
     .name = "execution_output",
     .title = "Output of an execution",
     .text = "All that code has printed, shown and raised, also while it runs. Long ones are "
                "read in parts: put ?offset=BYTES&limit=BYTES behind the URI.", .mime = "text/plain",
     },
    {
     .uri = "retort://executions/{execution_id}/images/{number}",
     .name = "execution_image",
     .title = "Image of an execution",
     .text = "An image that code has shown, in its original size. The first is number 1.",
     },
};

void handle_resources_templates(struct call *c)
{
    json_t *list = json_array(), *result;

    if (json_object_get(c->params, "cursor")) {
        json_decref(list);
        call_error(c, RPC_PARAMS, NULL, "there is one page only: leave the cursor out");
        return;
    }
    for (size_t i = 0; i < COUNT(templates); i++) {
        json_t *v = json_pack("{s:s, s:s, s:s}", "uriTemplate", templates[i].uri, "name",
                              templates[i].name, "description", templates[i].text);
        if (templates[i].mime)
            json_object_set_new(v, "mimeType", json_string(templates[i].mime));
        if (c->client.version->has & HAS_STRUCTURED)
            json_object_set_new(v, "title", json_string(templates[i].title));
        json_array_append_new(list, v);
    }
    if (c->face->more)
        c->face->more->list_templates(list);
    result = json_pack("{s:o}", "resourceTemplates", list);
    call_cacheable(c, result, FIXED_TTL_MS, "public");
    call_result(c, result);
}

/* --- reading --- */

static void read_embedded(struct call *c, const struct embedded *f)
{
    json_t *contents = json_pack("{s:s, s:s, s:o}", "uri", f->uri, "mimeType", f->mime, "text",
                                 record_text(f->bytes));
    json_t *result;

    if (strncmp(f->uri, "ui:", 3) == 0)
        json_object_set_new(contents, "_meta", json_pack("{s:{s:b}}", "ui", "prefersBorder", true));
    result = json_pack("{s:[o]}", "contents", contents);
    call_cacheable(c, result, FIXED_TTL_MS, "public");
    call_result(c, result);
}

/* False: there is no such thing. Else the call is answered, or will be. */
static bool read_named(struct call *c, struct str text, const struct uri *u)
{
    const struct embedded *f = embedded_find(text);

    if (u->kind != URI_OTHER && !*u->id)
        return false;
    if (u->kind == URI_FILE)
        read_file_resource(c, u);
    else if (u->kind != URI_OTHER)
        read_execution_resource(c, u);
    else if (f)
        read_embedded(c, f);
    else
        return c->face->more && c->face->more->read_resource(c, text);
    return true;
}

void handle_resources_read(struct call *c)
{
    struct str text = json_view(json_object_get(c->params, "uri"));
    struct uri u;
    struct err e;

    if (!text.p || text.n == 0)
        call_error(c, RPC_PARAMS, NULL, "uri is missing: the resource to be read");
    else if (uri_read(text, &u, &e) < 0)
        call_error(c, RPC_PARAMS, json_pack("{s:o}", "uri", record_text(text)), "%s", e.text);
    else if (!read_named(c, text, &u))
        call_no_resource(c, text);
}
