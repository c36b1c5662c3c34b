/*
 * A token from a stranger: nothing is let in but what was signed with the key, and what
 * was signed comes back as it was.
 *
 * links: src/doors/values/token.c src/doors/values/values.c src/doors/http/check.c
 * links: src/doors/http/route.c src/record/dump.c src/record/record.c src/engine/event.c
 * links: src/engine/limits.c src/engine/mime.c -lgnutls
 */
#include "doors/values/values.h"

#include "support/fuzz.h"

#include <stdlib.h>

#define KEY STR("0123456789abcdef0123456789abcdef")
#define NOW 1700000000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = {(const char *)data, size};
    json_t *claims, *back;
    char *token;

    (void)token_is(text);
    EXPECT(!token_open(text, KEY, NOW, 60));
    claims =
        json_pack("{s:o, s:i}", "sub", json_stringn(size ? text.p : "", size), "exp", NOW + 60);
    if (!claims)
        return 0;
    token = token_sign(json_incref(claims), KEY);
    back = token ? token_open(str_of(token), KEY, NOW, 60) : NULL;
    EXPECT(!token || memchr(text.p, '\0', size) || (back && json_equal(back, claims)));
    json_decref(back);
    json_decref(claims);
    free(token);
    return 0;
}
