/*
 * JSON Web Tokens with HS256 and no other algorithm. The sender names the algorithm, so the name is
 * checked and never followed.
 */
#include "doors/http/http.h"
#include "doors/values/values.h"
#include "record/record.h"

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <stdlib.h>

#define MAC_BYTES 32

/* Without padding, with '-' and '_'. */
static bool base64url_decode(struct str s, char *ret, size_t *ret_n)
{
    AUTO_FREE char *text = mem_zalloc(s.n + 4);
    size_t n = s.n;

    memcpy(text, s.p, s.n);
    for (char *p = text; p < text + s.n; p++)
        if (*p == '-')
            *p = '+';
        else if (*p == '_')
            *p = '/';
    while (n % 4 != 0)
        text[n++] = '=';
    return base64_decode((struct str){text, n}, ret, ret_n);
}

static char *base64url_encode(struct str s)
{
    json_t *coded = record_base64(s);
    char *text = mem_strdup(json_string_value(coded));

    json_decref(coded);
    text[strcspn(text, "=")] = '\0';
    for (char *p = text; *p; p++)
        if (*p == '+')
            *p = '-';
        else if (*p == '/')
            *p = '_';
    return text;
}

static void sign(struct str text, struct str key, uint8_t ret[MAC_BYTES])
{
    int rc = gnutls_hmac_fast(GNUTLS_MAC_SHA256, key.p, key.n, text.p, text.n, ret);

    assert(rc == 0);
}

/* --- out --- */

char *token_sign(json_t *claims, struct str key)
{
    AUTO_FREE char *head = base64url_encode(STR("{\"alg\":\"HS256\",\"typ\":\"JWT\"}"));
    AUTO_FREE char *json = record_dump(claims, false, NULL);
    AUTO_FREE char *body = base64url_encode(str_of(json)), *signature = NULL;
    uint8_t mac[MAC_BYTES];
    struct buf b;
    int rc;

    json_decref(claims);
    buf_init(&b, TOKEN_BYTES);
    rc = buf_printf(&b, "%s.%s", head, body);
    if (rc == 0) {
        sign(buf_str(&b), key, mac);
        signature = base64url_encode((struct str){(const char *)mac, sizeof(mac)});
        rc = buf_printf(&b, ".%s", signature);
    }
    if (rc < 0 || buf_put(&b, (struct str){"", 1}) < 0) {
        buf_done(&b);
        return NULL;
    }
    return b.p;
}

/* --- back --- */

static bool take_part(struct str *rest, char end, struct str *ret)
{
    const char *dot = end ? memchr(rest->p, end, rest->n) : rest->p + rest->n;

    if (!dot)
        return false;
    *ret = (struct str){rest->p, (size_t)(dot - rest->p)};
    rest->n -= ret->n + (end != 0);
    rest->p = dot + (end != 0);
    return true;
}

static json_t *part_read(struct str part)
{
    char bytes[TOKEN_BYTES];
    json_t *v = NULL;
    size_t n;
    struct err e;

    if (part.n > sizeof(bytes) || !base64url_decode(part, bytes, &n) ||
        json_read_any((struct str){bytes, n}, &v, &e) < 0)
        return NULL;
    return v;
}

static bool is_signed(struct str text, struct str signature, struct str key)
{
    char given[TOKEN_BYTES];
    uint8_t made[MAC_BYTES];
    size_t n;

    if (signature.n > sizeof(given) || !base64url_decode(signature, given, &n) || n != sizeof(made))
        return false;
    sign(text, key, made);
    return gnutls_memcmp(given, made, sizeof(made)) == 0;
}

static bool holds(const json_t *head, const json_t *claims, int64_t now_s, int64_t life_s)
{
    const json_t *exp = json_object_get(claims, "exp"), *nbf = json_object_get(claims, "nbf");

    return str_is(json_view(json_object_get(head, "alg")), "HS256") && json_is_integer(exp) &&
           json_integer_value(exp) > now_s && json_integer_value(exp) <= now_s + life_s &&
           (!nbf || (json_is_integer(nbf) && json_integer_value(nbf) <= now_s));
}

bool token_is(struct str text)
{
    const char *dot = text.n ? memchr(text.p, '.', text.n) : NULL;

    return dot && memchr(dot + 1, '.', text.n - (size_t)(dot - text.p) - 1);
}

json_t *token_open(struct str token, struct str key, int64_t now_s, int64_t life_s)
{
    struct str rest = token, head, body, signature, whole;
    json_t *head_value, *claims;

    if (key.n == 0 || token.n == 0 || token.n > TOKEN_BYTES || !take_part(&rest, '.', &head) ||
        !take_part(&rest, '.', &body) || !take_part(&rest, '\0', &signature))
        return NULL;
    whole = (struct str){token.p, head.n + 1 + body.n};
    if (!is_signed(whole, signature, key))
        return NULL;
    head_value = part_read(head);
    claims = part_read(body);
    if (!holds(head_value, claims, now_s, life_s))
        json_decref(take_ptr(&claims));
    json_decref(head_value);
    return claims;
}
