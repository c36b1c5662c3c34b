/*
 * Trusted sources: callers who need no key, because something else proves who they are.
 *
 *   unix:1000=agent-factory    a process of this user, over a Unix socket
 *   token:agent-factory        whoever signs with the key of prisme-source-key: a JSON Web
 *                              Token (HS256), in x-prisme-token, that names it as iss or sub
 *                              and lives for TOKEN_LIFE_S seconds at most
 *
 * Once there is such a list, everybody who is not on it needs a key, on loopback, too.
 */
#include "doors/prisme/prisme_int.h"

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum proof { PROOF_UNIX, PROOF_TOKEN };

struct source_list {
    struct {
        enum proof proof;
        uid_t uid;
        char name[64]; /* also its tenant */
    } item[SOURCES_MAX_];
    size_t count;
};

/* --- the setting --- */

static bool is_source_name(const char *s)
{
    size_t n = strlen(s);

    return n > 0 && n < 64 && strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-_.") == n;
}

static int add(struct source_list *l, const char *word, struct err *e)
{
    unsigned uid;
    char name[64] = "";
    int end = 0;

    if (l->count == SOURCES_MAX_)
        return err_set(e, ERR_CALLER, "more than %d sources", SOURCES_MAX_);
    if (sscanf(word, "unix:%u=%63s%n", &uid, name, &end) == 2 && word[end] == '\0')
        l->item[l->count].proof = PROOF_UNIX, l->item[l->count].uid = uid;
    else if (sscanf(word, "token:%63s%n", name, &end) == 1 && word[end] == '\0')
        l->item[l->count].proof = PROOF_TOKEN;
    if (!is_source_name(name))
        return err_set(e, ERR_CALLER, "%s is no source: write unix:UID=NAME or token:NAME", word);
    memcpy(l->item[l->count].name, name, sizeof(name));
    l->count++;
    return 0;
}

struct source_list *source_list_new(const char *text, struct err *e)
{
    struct source_list *l = mem_zalloc(sizeof(*l));
    AUTO_FREE char *copy = mem_strdup(text);
    char *rest = NULL;

    for (char *word = strtok_r(copy, ", \t\n", &rest); word; word = strtok_r(NULL, ", \t\n", &rest))
        if (add(l, word, e) < 0) {
            source_list_free(l);
            return NULL;
        }
    return l;
}

void source_list_free(struct source_list *l)
{
    free(l);
}

/* --- tokens --- */

/* Without padding, with '-' and '_'. */
static bool base64url_decode(struct str s, char *ret, size_t *ret_n)
{
    AUTO_FREE char *text = mem_zalloc(s.n + 4);
    size_t n = s.n;

    for (size_t i = 0; i < s.n; i++)
        text[i] = s.p[i] == '-' ? '+' : s.p[i] == '_' ? '/' : s.p[i];
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

/* --- who comes --- */

static bool is_listed(const struct source_list *l, enum proof proof, uid_t uid, const char *name,
                      struct caller *ret)
{
    for (size_t i = 0; i < l->count; i++)
        if (l->item[i].proof == proof &&
            (proof == PROOF_UNIX ? l->item[i].uid == uid : strcmp(l->item[i].name, name) == 0)) {
            snprintf(ret->tenant, sizeof(ret->tenant), "%s", l->item[i].name);
            return true;
        }
    return false;
}

int prisme_identify(struct request *r, void *prisme, struct caller *ret)
{
    struct prisme *p = prisme;
    struct str token = request_header(r, "x-prisme-token");
    char name[64];
    uid_t uid;

    if (!p->sources || request_header(r, "authorization").p || request_header(r, "x-api-key").p)
        return 0; /* a key has the say */
    if (token.p ? token_read(token, p->config.source_key, time(NULL), name, sizeof(name)) &&
                      is_listed(p->sources, PROOF_TOKEN, 0, name, ret)
                : request_peer(r, &uid) && is_listed(p->sources, PROOF_UNIX, uid, "", ret))
        return 1;
    answer_fail(r, 403, "UNTRUSTED_SOURCE", NULL,
                "this caller is not one of the trusted sources, and has no key");
    return -1;
}
