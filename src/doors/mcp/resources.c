/*
 * Resources: what a client can read by its URI. Files of workspaces and outputs of executions are
 * the caller's own; the skill and the page for results are part of the program. The list begins
 * with the latest files of the newest sessions; templates reach every other file.
 */
#include "doors/mcp/resource.h"

#include <stdio.h>
#include <stdlib.h>

#define LIST_ENOUGH  100 /* no further session on a page that has as many */
#define LIST_TTL_MS  0   /* code may write a file at any moment */
#define FIXED_TTL_MS 3600000
#define CURSOR_MAX   256

/* --- what the methods share --- */

void call_result_cached(struct call *c, json_t *result, int ttl_ms, const char *scope)
{
    if (call_is_modern(c)) {
        json_object_set_new(result, "ttlMs", json_integer(ttl_ms));
        json_object_set_new(result, "cacheScope", json_string(scope));
    }
    call_result(c, result);
}

bool call_has_one_page(struct call *c)
{
    bool cursor = json_object_get(c->params, "cursor");

    if (cursor)
        call_error(c, RPC_PARAMS, NULL, "there is one page only: leave the cursor out");
    return !cursor;
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

struct resource_listing {
    struct call *c;  /* borrowed: answered at the end */
    json_t *entries; /* owned: array */
};

static void listing_free(void *p)
{
    struct resource_listing *g = p;

    json_decref(g->entries);
    free(g);
}

/* NULL: it cannot be read by name. */
static json_t *file_show(const struct call *c, const struct session_files *files,
                         const struct space_file *f)
{
    char uri[URI_MAX], text[256], time[TIME_TEXT];
    json_t *v;

    if (!uri_of_file(uri, str_of(files->session), f->path))
        return NULL;
    snprintf(text, sizeof(text), "A file in the workspace of session %s%s%.100s%s", files->session,
             files->name ? " (" : "", files->name ? files->name : "", files->name ? ")" : "");
    v = json_pack("{s:s, s:o, s:o, s:s, s:I}", "uri", uri, "name", record_text(f->path),
                  "description", record_text(str_of(text)), "mimeType", f->mime, "size",
                  (json_int_t)f->size);
    if (c->client.version->has & HAS_STRUCTURED) {
        time_print(f->mtime_ms, time);
        json_object_set_new(v, "annotations", json_pack("{s:s}", "lastModified", time));
    }
    return v;
}

static bool on_session_files(void *arg, const struct session_files *files)
{
    struct resource_listing *g = arg;

    for (size_t i = 0; i < files->count; i++) {
        json_t *shown = file_show(g->c, files, &files->list[i]);
        if (shown)
            json_array_append_new(g->entries, shown);
    }
    return json_array_size(g->entries) < LIST_ENOUGH;
}

/* Opaque to clients. Forged it leads nowhere but among the caller's own sessions. */
static json_t *cursor_make(const struct session_files_cursor *end)
{
    char text[CURSOR_MAX];

    snprintf(text, sizeof(text), "%s %lld", end->session, (long long)end->created_ms);
    return record_base64(str_of(text));
}

static bool cursor_read(const json_t *cursor, struct session_files_cursor *ret)
{
    struct str text = json_view(cursor);
    char plain[CURSOR_MAX], again[CURSOR_MAX], *space;
    size_t n;

    *ret = (struct session_files_cursor){0};
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

static void on_files_end(void *arg, const struct session_files_cursor *end,
                         const struct err *failed)
{
    struct resource_listing *g = arg;
    struct call *c = g->c;
    json_t *result;

    if (failed) {
        call_fail(c, failed);
        return;
    }
    result = json_pack("{s:O}", "resources", g->entries);
    if (*end->session)
        json_object_set_new(result, "nextCursor", cursor_make(end));
    call_result_cached(c, result, LIST_TTL_MS, "private");
}

static void list_fixed(struct resource_listing *g)
{
    const struct tool_set_more *more = g->c->tool_set->more;

    for (const struct embedded *f = embedded; f->uri; f++)
        if (embedded_is_shown(f, g->c->tool_set))
            json_array_append_new(g->entries, embedded_show(f, g->c->client.version));
    if (more)
        more->list_resources(g->entries);
}

/* A program that has run nothing yet has no files to show, and is not started for a list. */
void handle_resources_list(struct call *c)
{
    const json_t *cursor = json_object_get(c->params, "cursor");
    struct service *sv = c->mcp->followed;
    struct session_files_cursor after;
    struct resource_listing *g;

    if (cursor && !cursor_read(cursor, &after)) {
        call_error(c, RPC_PARAMS, NULL, "this cursor is not one of ours: begin without a cursor");
        return;
    }
    g = mem_zalloc(sizeof(*g));
    *g = (struct resource_listing){.c = c, .entries = json_array()};
    call_keep(c, listing_free, g);
    if (!cursor)
        list_fixed(g);
    if (sv)
        session_files_each(c, sv, cursor ? &after : NULL, on_session_files, on_files_end, g);
    else
        on_files_end(g, &(struct session_files_cursor){0}, NULL);
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
    json_t *list;

    if (!call_has_one_page(c))
        return;
    list = json_array();
    for (size_t i = 0; i < COUNT(templates); i++) {
        json_t *v = json_pack("{s:s, s:s, s:s}", "uriTemplate", templates[i].uri, "name",
                              templates[i].name, "description", templates[i].text);
        if (templates[i].mime)
            json_object_set_new(v, "mimeType", json_string(templates[i].mime));
        if (c->client.version->has & HAS_STRUCTURED)
            json_object_set_new(v, "title", json_string(templates[i].title));
        json_array_append_new(list, v);
    }
    if (c->tool_set->more)
        c->tool_set->more->list_templates(list);
    call_result_cached(c, json_pack("{s:o}", "resourceTemplates", list), FIXED_TTL_MS, "public");
}

/* --- reading --- */

static void read_embedded(struct call *c, const struct embedded *f)
{
    json_t *contents = json_pack("{s:s, s:s, s:o}", "uri", f->uri, "mimeType", f->mime, "text",
                                 record_text(f->bytes));

    if (strncmp(f->uri, "ui:", 3) == 0)
        json_object_set_new(contents, "_meta", json_pack("{s:{s:b}}", "ui", "prefersBorder", true));
    call_result_cached(c, json_pack("{s:[o]}", "contents", contents), FIXED_TTL_MS, "public");
}

/* False: there is no such thing. Else the call is answered, or will be. */
static bool read_named(struct call *c, struct str text, const struct uri *u)
{
    const struct embedded *f = embedded_find(text);

    if (u->kind != URI_OTHER && !*u->id)
        return false;
    if (u->kind != URI_OTHER)
        read_resource(c, u);
    else if (f && embedded_is_shown(f, c->tool_set))
        read_embedded(c, f);
    else
        return c->tool_set->more && c->tool_set->more->read_resource(c, text);
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
