/* Private to the native REST interface. */
#pragma once

#include "doors/rest/rest.h"
#include "doors/values/archive.h"
#include "doors/values/values.h"
#include "loop/loop.h"
#include "record/record.h"

/* --- numbers: each is also in the OpenAPI document --- */

#define CODE_MAX         EXEC_CODE_MAX
#define BODY_EXECUTE_MAX (20 * MiB) /* JSON is read in one piece; more is uploaded */
#define METADATA_MAX     (16 * KiB)
#define NAME_MAX_BYTES   255
#define ARCHIVE_PIECE    (256 * KiB)
#define EXPORT_ROWS      500

/* Bytes that may wait for a slow reader before events are left out: code that is being ended is
 * not held back, and may go on talking. */
#define WAITING_MAX (8 * MiB)

/* --- routes.c: the table; schemas.c: what comes back --- */

#define REST_SCHEMAS 32
extern const struct schema rest_schemas[];

request_fn handle_create_session, handle_list_sessions, handle_get_session, handle_rename_session,
    handle_extend_session, handle_interrupt_session, handle_restart_session, handle_delete_session,
    handle_execute, handle_list_executions, handle_get_execution, handle_get_output,
    handle_interrupt_execution, handle_list_workspace, handle_put_workspace_file,
    handle_upload_workspace_files, handle_get_workspace_file, handle_move_workspace_file,
    handle_delete_workspace_file, handle_get_archive, handle_create_file, handle_list_files,
    handle_get_file, handle_get_file_content, handle_delete_file, handle_list_pools,
    handle_get_pool, handle_list_approvals, handle_get_approval, handle_decide_approval,
    handle_create_key, handle_list_keys, handle_delete_key, handle_list_nodes, handle_get_events,
    handle_get_status, handle_get_openapi;

/* --- events.c: streams of what changes; rest_new() and the like are there, too --- */

struct rest {
    struct http *http; /* borrowed */
    struct change_watch
        *watch; /* owned; NULL: nobody has asked yet, or the service is about to go */
    struct change_stream *streams;
    bool draining;
};

/* --- page.c: answers to callbacks of the service; their arg is the request --- */

/* value, or what failed. Takes value; NULL where it failed. */
void answer_value(struct request *r, int status, json_t *value, const struct err *failed);
/* A page of a list, or what failed. The last one's id is where the next page begins. Takes data. */
void answer_page(struct request *r, json_t *data, bool more, const struct err *failed);
void on_deleted(void *arg, const struct err *failed); /* a done_fn */
/* Defines a handler that asks the service about what the path names. */
#define HANDLE_ID(name, call, id, on)                                                              \
    void name(struct request *r)                                                                   \
    {                                                                                              \
        call(request_service(r), request_caller(r), request_path(r, id), on, r);                   \
    }
/* Defines the callback of a list: rows of a type, each rendered by a function. */
#define ON_LIST(name, row, render)                                                                 \
    static void name(void *arg, const struct row *rows, size_t count, bool more,                   \
                     const struct err *failed)                                                     \
    {                                                                                              \
        json_t *data = json_array();                                                               \
        for (size_t i = 0; !failed && i < count; i++)                                              \
            json_array_append_new(data, render(&rows[i]));                                         \
        answer_page(arg, data, more, failed);                                                      \
    }

/* --- render.c: what the service has, as JSON; all return an owned value --- */

json_t *render_seconds(int64_t ms);                                /* 1500: 1.5 */
json_t *render_text(const char *s);                                /* NULL: null */
json_t *render_list(json_t *data, bool more, const char *last_id); /* takes data */
json_t *render_session(const struct session_info *info);
/* Without code, events and what is made of them. */
json_t *render_exec_brief(const struct exec_info *info);
json_t *render_exec(const struct exec_info *info);
/* The same of its parts; takes brief. Touches nothing else, so a worker may call it. */
json_t *render_exec_parts(json_t *brief, const char *code, json_t *events);
/* The whole record, with who asked for it. */
json_t *render_audit(const struct exec_info *info);
json_t *render_event(const struct event *ev, const char *session);
json_t *render_space_file(struct str session, const struct space_file *f);
json_t *render_file(const struct file_row *row);
json_t *render_pool(const struct pool_info *info);
json_t *render_approval(const struct approval_row *row);
json_t *render_key(const struct key_row *row, const char *secret); /* secret: or NULL */
/* {"type","message","param","request_id"}: what answer_error() says, for a stream. */
json_t *render_error(const struct err *e, const char *request);
/* On one line, ASCII alone, so that no piece of a stream ends within a character. Owned. */
char *json_line(const json_t *v);

/* --- large.c: executions as answers, however long they are --- */

void answer_exec(struct request *r, int status, const struct exec_info *info);
/* kinds: IN(EVENT_STDOUT), IN(EVENT_STDERR) or both. As much of it as the Range header asks for. */
void answer_output(struct request *r, unsigned kinds, const struct exec_info *info);

/* --- pump.c: a long answer, made piece by piece --- */

/*
 * A step makes one piece: it asks the service or a worker, and its callback starts with
 * pump_back(), puts bytes into the request's stream and ends with pump_next(),
 * answer_stream_end() or pump_fail(). Embedded in what request_keep() frees, so nothing is
 * touched after pump_back() returned false or one of the last two was called.
 */
struct pump {
    struct request *r; /* borrowed: until it is answered */
    loop_fn *step;
    void *arg;
    bool busy; /* a step is under way */
    bool gone; /* the client is */
    bool open; /* headers are out */
};
void pump_start(struct pump *p, struct request *r, loop_fn *step, void *arg);
bool pump_back(struct pump *p);
void pump_open(struct pump *p, int status, const char *mime);
void pump_next(struct pump *p); /* the next step, once the stream is not held */
/* Before pump_open() an error answer; after it a transfer cut short, which no client takes for
 * whole. */
void pump_fail(struct pump *p, const struct err *e);
