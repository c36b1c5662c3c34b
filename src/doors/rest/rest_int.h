/* Private to the native REST interface. */
#pragma once

#include "doors/rest/archive.h"
#include "doors/rest/rest.h"
#include "doors/values/values.h"
#include "loop/loop.h"
#include "record/record.h"

/* --- numbers: each is also in the OpenAPI document --- */

#define CODE_MAX         EXEC_CODE_MAX
#define BODY_EXECUTE_MAX (20 * MiB) /* JSON is read in one piece on the loop; more is uploaded */
#define METADATA_MAX     (16 * KiB)
#define NAME_MAX_BYTES   255
#define ARCHIVE_PIECE    (256 * KiB)
#define EXPORT_ROWS      500

/* What may wait for a slow reader, and when there is room again. */
#define WAITING_HIGH (1 * MiB)
#define WAITING_LOW  (256 * KiB)
#define WAITING_MAX                                                                                \
    (8 * MiB) /* code that is being ended is not held back, and may go on talking                  \
               */

/* --- routes.c: the table; schemas.c: what comes back --- */

extern const struct schema rest_schemas[];
extern const size_t rest_schema_count;

void handle_create_session(struct request *r);
void handle_list_sessions(struct request *r);
void handle_get_session(struct request *r);
void handle_extend_session(struct request *r);
void handle_interrupt_session(struct request *r);
void handle_restart_session(struct request *r);
void handle_delete_session(struct request *r);
void handle_execute(struct request *r); /* with a session in the path or without */
void handle_list_executions(struct request *r);
void handle_get_execution(struct request *r);
void handle_get_output(struct request *r);
void handle_interrupt_execution(struct request *r);
void handle_list_workspace(struct request *r);
void handle_put_workspace_file(struct request *r);
void handle_upload_workspace_files(struct request *r);
void handle_get_workspace_file(struct request *r);
void handle_delete_workspace_file(struct request *r);
void handle_get_archive(struct request *r);
void handle_create_file(struct request *r);
void handle_list_files(struct request *r);
void handle_get_file(struct request *r);
void handle_get_file_content(struct request *r);
void handle_delete_file(struct request *r);
void handle_list_pools(struct request *r);
void handle_get_pool(struct request *r);
void handle_list_approvals(struct request *r);
void handle_get_approval(struct request *r);
void handle_decide_approval(struct request *r);
void handle_create_key(struct request *r);
void handle_list_keys(struct request *r);
void handle_delete_key(struct request *r);
void handle_get_openapi(struct request *r);

/* For whatever takes away: a done_fn whose arg is the request. */
void on_deleted(void *arg, const struct err *failed);
/* page.c: answers with a page of a list, or with what failed. The last one's id is where the next
 * page begins. Takes data. */
void answer_page(struct request *r, json_t *data, bool more, const struct err *failed);

/* --- render.c: what the service has, as JSON; all return an owned value --- */

json_t *render_time(int64_t ms);                                   /* 0: null */
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
/* The text of the output events joined; which: "stdout", "stderr" or NULL for both. */
void events_text(const json_t *events, const char *which, struct buf *ret);
/* On one line, ASCII alone, so that no piece of a stream ends within a character. Owned. */
char *json_line(const json_t *v);

/* --- large.c: executions as answers, however long they are --- */

void answer_exec(struct request *r, int status, const struct exec_info *info);
/* which: "stdout", "stderr" or NULL for both; static. As much of it as the Range header asks for.
 */
void answer_output(struct request *r, const char *which, const struct exec_info *info);
void answer_range(struct request *r, struct str text); /* executions.c */

/* --- pump.c: a long answer, made piece by piece --- */

/*
 * A step makes one piece: it asks the service or a worker, and its callback starts with
 * pump_back(), hands over bytes with pump_put() and ends with pump_next(), pump_end() or
 * pump_fail(). Embedded in what request_keep() frees, so nothing is touched after pump_back()
 * returned false or one of the last two was called.
 */
struct pump {
    struct request *r; /* borrowed: until it is answered */
    loop_fn *step;
    void *arg;
    size_t waits; /* bytes the client has not taken */
    bool busy;    /* a step is under way */
    bool gone;    /* the client is */
    bool open;    /* headers are out */
};
void pump_start(struct pump *p, struct request *r, loop_fn *step, void *arg);
bool pump_back(struct pump *p);
void pump_open(struct pump *p, int status, const char *mime);
void pump_put(struct pump *p, struct str bytes);
/* Of a long text, from *at on, as much as the client is to have waiting; true when that was the
 * rest. */
bool pump_put_some(struct pump *p, struct str all, size_t *at);
void pump_next(struct pump *p);
void pump_end(struct pump *p);
/* Before pump_open() an error answer; after it a transfer cut short, which no client takes for
 * whole. */
void pump_fail(struct pump *p, const struct err *e);
