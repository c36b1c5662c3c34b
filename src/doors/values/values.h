/*
 * values: parses what clients write and makes what the service takes. Times, seconds, tokens,
 * variables and files of an execution: every door reads them the same way.
 *
 * Touches: memory, and one execution for the text of a document. Never touches: wire formats.
 *
 * exec_inputs_env() and exec_inputs_files() read JSON into a struct exec_inputs, which exec_spec
 * borrows.
 */
#pragma once

#include "base/json.h"
#include "service/service.h"

/* --- numbers: each is also in the OpenAPI document --- */

#define INPUT_COUNT_MAX 64
#define ENV_COUNT_MAX   64
#define ENV_NAME_MAX    128
#define ENV_VALUE_MAX   (8 * KiB)
#define URL_MAX         (64 * KiB)
#define SECONDS_MAX     31536000 /* a year; the pool's own limits are lower */

/* --- values.c: what clients write as text --- */

/* RFC 3339 with any offset, rounded down to milliseconds. */
bool time_parse(struct str text, int64_t *ret_ms);
/* "2026-01-31T12:00:00.000Z" */
#define TIME_TEXT 32
void time_print(int64_t ms, char ret[TIME_TEXT]);
json_t *time_json(int64_t ms); /* the same, or null for 0; owned */

/* Seconds to milliseconds, at least 1; 0 when it is no number above 0. */
uint64_t json_ms(const json_t *v);

/* --- uuid.c --- */

#define UUID_MAX 37
void uuid_make(char ret[UUID_MAX]);                  /* at random */
void uuid_from(char ret[UUID_MAX], struct str name); /* always the same for this name */

/* --- token.c: JSON Web Tokens, signed with HS256 --- */

#define TOKEN_BYTES (4 * KiB)
/* Owned; NULL: the claims are too long. Takes claims. */
char *token_sign(json_t *claims, struct str key);
/* Its claims, owned. NULL: it is not signed with this key, is over, or lives on for more than
 * life_s. */
json_t *token_open(struct str token, struct str key, int64_t now_s, int64_t life_s);
bool token_is(struct str text); /* it has the shape of one */

/* --- exec_inputs.c: env and files of a request --- */

#define PARAM_MAX 200

/* What an execution is given beside its code. Views are borrowed from the JSON. */
struct exec_inputs {
    struct env_var *env; /* owned */
    size_t env_count;
    struct file_input *file; /* owned */
    char **decoded;          /* owned, each: the bytes of file[i], or NULL */
    size_t file_count;
};
void exec_inputs_done(struct exec_inputs *g);
/* NULL is none. -1: *e says what is wrong, ret_param where: "env.HOME", "files[2].path". */
int exec_inputs_env(struct exec_inputs *g, const json_t *map, char ret_param[PARAM_MAX],
                    struct err *e) MUST_CHECK;
int exec_inputs_files(struct exec_inputs *g, const json_t *list, char ret_param[PARAM_MAX],
                      struct err *e) MUST_CHECK;

/* --- document_text.c: the text of PDF and Excel, taken out in a sandbox --- */

#define DOCUMENT_TEXT_MAX (256 * KiB)

bool document_text_can(struct str mime);
/* Borrowed: the text, which may be empty, or why there is none (ERR_CALLER: because of the file).
 * cut: there is more of it. */
typedef void document_text_fn(void *arg, struct str text, bool cut, const struct err *none);
struct document_text;
/* fn from the loop, unless it is left before. The path of the file does not matter. pool: NULL is
 * the first. */
struct document_text *document_text_start(struct service *sv, const struct caller *c,
                                          const char *pool, struct file_input file,
                                          document_text_fn *fn, void *arg);
void document_text_leave(struct document_text *d);
