/* Private to the Anthropic room. */
#pragma once

#include "doors/anthropic/anthropic.h"
#include "doors/values/values.h"

#define MESSAGES_BODY_MAX (32 * MiB) /* of POST /v1/messages and of count_tokens */
#define BATCH_BODY_MAX    (64 * MiB)
#define BODY_SMALL        (64 * KiB) /* a longer body is parsed on another thread */

struct tool_call;
struct turn_registry;

struct anthropic {
    struct anthropic_config config;
    struct turn_registry *registry; /* owned: messages under way */
    struct tool_call *parked;       /* calls whose code waits for a client, the newest first */
    size_t parked_count;
    json_t *promised; /* owned: {session: tenant}, ids that clients know and that are no session */
    bool draining;    /* messages pause at their next step */
    struct batches *batches; /* owned */
};

/* A string member of an object; NULL, and an empty view, when there is none. */
static inline const char *text_of(const json_t *v, const char *name)
{
    return json_string_value(json_object_get(v, name));
}
static inline struct str view_of(const json_t *v, const char *name)
{
    return json_view(json_object_get(v, name));
}

/* --- names.c: names and types of uploaded files --- */

#define FILE_NAME_MAX 255
/* The last part of the given name; when it is empty, a name made from the type. ERR_CALLER: the
 * name cannot be used. */
int file_name_take(struct str given, struct str mime, char ret[FILE_NAME_MAX + 1],
                   struct err *e) MUST_CHECK;
/* The type without its parameters; empty, so that the name decides, when it is none or says
 * nothing.
 */
struct str file_mime_take(struct str given);
/* "attachment; filename*=utf-8''...": the form of RFC 6266 that Anthropic's clients expect. */
#define DISPOSITION_MAX (3 * FILE_NAME_MAX + 64)
void disposition_print(struct str name, char ret[DISPOSITION_MAX]);

/* --- files.c --- */

void handle_file_upload(struct request *r);
void handle_files(struct request *r);
void handle_file(struct request *r);
void handle_file_content(struct request *r);
void handle_file_delete(struct request *r);

/* --- listing.c: lists, with the paging of old and of new clients --- */

struct list_query {
    size_t limit;
    struct str from; /* borrowed: the id that the list begins after; empty: with the newest */
    bool newer;      /* the list goes to newer ones; else to older ones */
};
/* prefix: of the ids. False: the request is refused and answered. */
bool list_query_read(struct request *r, const char *prefix, struct list_query *ret);
/* Takes data, an array of objects with an id. more: the list goes on. */
json_t *list_value(json_t *data, bool more, bool newer);

/* --- container.c: a container is a session under another name --- */

#define CONTAINER_PREFIX "container_"
#define SESSION_PREFIX   "sess_"

/* "container_..." of "sess_...". */
void container_of_session(const char *session, char ret[ID_MAX]);
/* {"id", "expires_at", "skills"}: the container of a message. skills: borrowed, or NULL. */
json_t *container_value(const char *session, int64_t expires_ms, json_t *skills);

void handle_containers(struct request *r);
void handle_container(struct request *r);
void handle_container_delete(struct request *r);

/* --- errors.c --- */

/*
 * Handlers call answer_fail() and answer_error(), as in every door; anthropic_error() makes
 * {"type": "error", "error": {"type", "message", "details"?}, "request_id"} of that. The status
 * decides error.type. One of these codes, given to answer_fail() as its type, becomes
 * details.error_code, by which an SDK finds the class of its exception.
 */
#define CODE_NOT_DOWNLOADABLE   "file_not_downloadable"      /* 400 */
#define CODE_STORAGE_QUOTA      "storage_quota_exceeded"     /* 400 */
#define CODE_FILE_EXPIRED       "file_expired"               /* 404 */
#define CODE_CONTAINER_EXPIRED  "container_expired"          /* 404 */
#define CODE_THREAD_UNSUPPORTED "thread_unsupported_request" /* 400 */
#define CODE_INVALID            "invalid_request"            /* not in the answer */
#define CODE_MISSING            "not_found"                  /* likewise */

/* Also for a stream that has begun. Takes message. */
json_t *anthropic_error(struct request *r, int status, const char *type, const char *param,
                        json_t *message);
/* Answers with what the service says went wrong. */
void anthropic_fail(struct request *r, const struct err *failed);
/* As anthropic_error(), for the request of this id. */
json_t *anthropic_error_of(const char *request, int status, const char *type, json_t *message);

/* --- batches.c, batch_run.c: messages that a client does not wait for --- */

struct batches;
/* Goes on with the batches that were not over when the last server ended. */
struct batches *batches_new(struct anthropic *a);
void batches_close(struct batches *bs); /* runs no more; what runs is asked for again later */
void batches_free(struct batches *bs);

void handle_batch_create(struct request *r);
void handle_batches(struct request *r);
void handle_message_batch(struct request *r);
void handle_batch_cancel(struct request *r);
void handle_batch_delete(struct request *r);
void handle_batch_results(struct request *r);

/* --- skills.c --- */

void handle_skill_create(struct request *r);
void handle_skills(struct request *r);
void handle_skill(struct request *r);
void handle_skill_delete(struct request *r);
void handle_skill_version_create(struct request *r);
void handle_skill_versions(struct request *r);
void handle_skill_version(struct request *r);
void handle_skill_content(struct request *r);
void handle_skill_version_delete(struct request *r);

/* --- models.c --- */

void handle_models(struct request *r);
void handle_model(struct request *r);
