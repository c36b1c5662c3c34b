/* Private to the room. */
#pragma once

#include "doors/anthropic/anthropic.h"

#define MESSAGES_BODY_MAX (32 * MiB) /* of a question to the model, or of one to be counted */
#define BODY_SMALL        (64 * KiB) /* longer ones are read on another thread */

struct deed;
struct desk;

struct anthropic {
    struct anthropic_config config;
    struct desk *desk;   /* owned: messages under way */
    struct deed *parked; /* calls whose code waits for a client, the newest first */
    struct deed *active; /* those that run, or wait for another in their container */
    size_t parked_count;
    bool draining; /* what is under way pauses as soon as it can */
};

/* --- door.c --- */

/* A time as text, null for 0. */
json_t *stamp_value(int64_t ms);

/* --- names.c: names of files, from clients and to them --- */

#define FILE_NAME_MAX 255
/* The name a file is kept by: the last part of the one given; where there is none, one made from
 * its type. ERR_CALLER: it cannot be used. */
int file_name_take(struct str given, struct str mime, char ret[FILE_NAME_MAX + 1],
                   struct err *e) MUST_CHECK;
/* Without parameters, and empty where it says nothing or is no type: then the name tells. */
struct str file_mime_take(struct str given);
/* attachment; filename*=utf-8''...: RFC 6266 in the one form that these clients have seen. */
#define DISPOSITION_MAX (3 * FILE_NAME_MAX + 64)
void disposition_print(struct str name, char ret[DISPOSITION_MAX]);

/* --- files.c --- */

void handle_file_upload(struct request *r);
void handle_files(struct request *r);
void handle_file(struct request *r);
void handle_file_content(struct request *r);
void handle_file_delete(struct request *r);

/* --- listing.c: lists in both shapes that clients have known --- */

struct listing {
    size_t limit;
    struct str from; /* borrowed: the id to go on from; empty: the newest */
    bool newer;      /* what is newer than it; else what is older */
};
/* prefix: of the ids. False when it has answered. */
bool listing_read(struct request *r, const char *prefix, struct listing *ret);
/* Takes data, an array of objects with an id. more: in the direction of the list. */
json_t *listing_value(json_t *data, bool more, bool newer);

/* --- containers.c: a container is a session under another name --- */

#define CONTAINER_PREFIX "container_"

/* "container_..." of "sess_...", and back; false: it is none of ours. */
void container_of_session(const char *session, char ret[ID_MAX]);
bool container_to_session(struct str container, char ret[ID_MAX]) MUST_CHECK;
/* {"id", "expires_at", "skills": null}, as a message has it. */
json_t *container_value(const struct session_row *row);

void handle_containers(struct request *r);
void handle_container(struct request *r);
void handle_container_delete(struct request *r);

/* --- editor.c: the text editor tool, on the files of a session --- */

/* What stands for these at the start of a path: folders of the workspace, without a slash at either
 * end. NULL: there is no such folder. */
struct editor_dirs {
    const char *input;  /* $INPUT_DIR */
    const char *output; /* $OUTPUT_DIR */
};

/* content: what the tool's result has as its content, an error of the tool too; borrowed: a new
 * reference to keep it. */
typedef void editor_fn(void *arg, json_t *content);
/* input: of the call, as the model gave it: {"command": "view" | "create" | "str_replace", "path",
 * "view_range"?, "file_text"?, "old_str"?, "new_str"?}; borrowed during the call. fn comes from the
 * loop, exactly once. */
void editor_run(struct loop *l, struct service *sv, const struct caller *c, struct str session,
                const struct editor_dirs *dirs, const json_t *input, editor_fn *fn, void *arg);
/* paths.c: the path in the workspace that is meant, "" for the workspace itself. */
int editor_path(struct str given, const struct editor_dirs *dirs, char ret[SPACE_PATH_MAX],
                struct err *e) MUST_CHECK;

/* --- view.c, hunk.c: what it tells; bytes in, JSON out, owned by the caller --- */

bool text_is_binary(struct str bytes);
/* The last one may be without a newline. */
size_t text_count_lines(struct str text);
/* Cuts the next line off a text that is not empty, with its newline. */
struct str text_cut_line(struct str *text);
/* NULL: *e says what is wrong with it, or with the range (or NULL). */
json_t *view_bytes(struct str bytes, const json_t *view_range, struct err *e);
/* folder "": all of it. NULL: there is no such folder. files: by path. */
json_t *view_folder(const char *folder, const struct space_file *files, size_t count);
/* {"old_start", "old_lines", "new_start", "new_lines", "lines"}. */
json_t *hunk_value(struct str before, struct str after);

/* --- errors.c --- */

/*
 * What goes wrong is answered with answer_fail() and answer_error(), as everywhere; the
 * door makes {"type": "error", "error": {"type", "message", "details"?}, "request_id"} of it,
 * with error.type by the status. A type of answer_fail() that is one of these is told in
 * details.error_code, which is how an SDK finds the class of its exception.
 */
#define CODE_NOT_DOWNLOADABLE   "file_not_downloadable"      /* 400 */
#define CODE_STORAGE_QUOTA      "storage_quota_exceeded"     /* 400 */
#define CODE_FILE_EXPIRED       "file_expired"               /* 404 */
#define CODE_CONTAINER_EXPIRED  "container_expired"          /* 404 */
#define CODE_THREAD_UNSUPPORTED "thread_unsupported_request" /* 400 */
#define CODE_INVALID            "invalid_request"            /* none: only the status speaks */
#define CODE_MISSING            "not_found"                  /* likewise */

/* As the door's own, for a stream that has begun, too. Takes message. */
json_t *anthropic_error(struct request *r, int status, const char *type, const char *param,
                        json_t *message);

/* --- routes.c --- */

extern const struct route anthropic_routes[];
extern const size_t anthropic_route_count;

void handle_models(struct request *r);
void handle_model(struct request *r);

/* --- tokens.c --- */

/* About as many as a model makes of all text in it. */
uint64_t tokens_of(const json_t *v);
void handle_count_tokens(struct request *r);
