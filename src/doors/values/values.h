/*
 * values: what clients write, made into what the service takes. Times, ranges, base64,
 * variables and files of an execution: every door reads them the same way.
 *
 * Touches: memory. Never touches: wire formats, the service's state.
 *
 * exec_inputs_env() and exec_inputs_files() read JSON into a struct exec_inputs, which exec_spec
 * borrows.
 */
#pragma once

#include "service/service.h"

#include <jansson.h>

/* --- numbers: each is also in the OpenAPI document --- */

#define INPUT_COUNT_MAX 64
#define ENV_COUNT_MAX   64
#define ENV_NAME_MAX    128
#define ENV_VALUE_MAX   (8 * KiB)
#define URL_MAX         (64 * KiB)
#define SECONDS_MAX     31536000 /* a year; the pool's own limits are lower */

/* --- values.c: what clients write as text --- */

/* Standard alphabet, padded, no blanks, no stray bits. ret has room for text.n / 4 * 3. */
bool base64_decode(struct str text, char *ret, size_t *ret_n);
/* RFC 3339 with any offset, rounded down to milliseconds. */
bool time_parse(struct str text, int64_t *ret_ms);
/* "2026-01-31T12:00:00.000Z" */
#define TIME_TEXT 32
void time_print(int64_t ms, char ret[TIME_TEXT]);
json_t *time_json(int64_t ms); /* the same, or null for 0; owned */

/* Of a JSON string, p NULL when it is none. */
struct str json_view(const json_t *v);
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
