/* JSON Web Tokens with HS256, and no other: what names the algorithm is the sender's, so it is
 * checked and never followed. */
#include "doors/prisme/prisme_int.h"

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>

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

static bool is_signed(struct str signed_part, struct str signature, struct str key)
{
    char given[TOKEN_BYTES];
    uint8_t made[32];
    size_t n;

    return signature.n <= sizeof(given) && base64url_decode(signature, given, &n) &&
           n == sizeof(made) &&
           gnutls_hmac_fast(GNUTLS_MAC_SHA256, key.p, key.n, signed_part.p, signed_part.n, made) ==
               0 &&
           gnutls_memcmp(given, made, sizeof(made)) == 0;
}

static bool claims_hold(const json_t *head, const json_t *claims, int64_t now_s, char *ret_name,
                        size_t size)
{
    const json_t *exp = json_object_get(claims, "exp"), *nbf = json_object_get(claims, "nbf");
    struct str name = json_view(json_object_get(claims, "iss"));

    if (!name.p)
        name = json_view(json_object_get(claims, "sub"));
    return str_is(json_view(json_object_get(head, "alg")), "HS256") && json_is_integer(exp) &&
           json_integer_value(exp) > now_s && json_integer_value(exp) <= now_s + TOKEN_LIFE_S &&
           (!nbf || (json_is_integer(nbf) && json_integer_value(nbf) <= now_s)) && name.n > 0 &&
           str_to_cstr(name, ret_name, size);
}

bool token_read(struct str token, struct str key, int64_t now_s, char *ret_name, size_t size)
{
    struct str rest = token, head, body, signature, whole;
    json_t *head_value, *claims;
    bool good;

    if (key.n == 0 || token.n == 0 || token.n > TOKEN_BYTES || !take_part(&rest, '.', &head) ||
        !take_part(&rest, '.', &body) || !take_part(&rest, '\0', &signature))
        return false;
    whole = (struct str){token.p, head.n + 1 + body.n};
    if (!is_signed(whole, signature, key))
        return false;
    head_value = part_read(head);
    claims = part_read(body);
    good = claims_hold(head_value, claims, now_s, ret_name, size);
    json_decref(head_value);
    json_decref(claims);
    return good;
}
