/*
 * The end user of a request, and the tokens of end users. The account's server, which has
 * the key, names the end user in a header; an end user with a token needs no key.
 *
 * An end user sees their own executions, sandboxes and sessions, and documents that are
 * theirs or nobody's. A request without an end user sees the whole account, so a server
 * that forgets the header shows its user everything: docs/ubik.md says so.
 */
#include "doors/ubik/ubik_int.h"

#include <stdio.h>
#include <stdlib.h>

#define LIFE_S ((int64_t)24 * 3600)

/* --- tokens --- */

static json_t *claims_of(const struct ubik *u, struct str token)
{
    const struct str key = {(const char *)u->token_key, sizeof(u->token_key)};
    json_t *claims = token_open(token, key, time_now_ms() / 1000, LIFE_S);

    if (claims && !str_is(json_view(json_object_get(claims, "aud")), "ubik"))
        json_decref(take_ptr(&claims));
    return claims;
}

int ubik_identify(struct request *r, void *ubik, struct caller *ret)
{
    struct str token = request_secret(r);
    json_t *claims;
    bool good;

    if (!token_is(token))
        return 0;
    claims = claims_of(ubik, token);
    good = claims &&
           str_to_cstr(json_view(json_object_get(claims, "key")), ret->key, sizeof(ret->key)) &&
           service_key_tenant(request_service(r), ret->key, ret->tenant) &&
           service_key_stands(request_service(r), ret->tenant, ret->key);
    ret->until_ms = json_integer_value(json_object_get(claims, "exp")) * 1000;
    json_decref(claims);
    if (good)
        return 1;
    answer_header(r, "www-authenticate", "Bearer");
    detail(r, 401, "Could not validate credentials");
    return -1;
}

static bool user_is_good(struct str user)
{
    for (size_t i = 0; i < user.n; i++)
        if ((unsigned char)user.p[i] < ' ' || user.p[i] == 0x7f)
            return false;
    return user.n <= USER_MAX && str_utf8_len(user) == user.n;
}

/* The guides of Ubik have two names for the header. */
static struct str user_header(struct request *r)
{
    struct str user = request_header(r, "x-end-user-id");

    return user.p ? user : request_header(r, "external_user_id");
}

bool end_user_read(struct request *r, struct end_user *ret)
{
    struct str user = user_header(r), token = request_secret(r);

    *ret = (struct end_user){
        .u = request_ctx(r), .sv = request_service(r), .caller = *request_caller(r)};
    if (token_is(token)) {
        json_t *claims = claims_of(request_ctx(r), token);
        bool named =
            str_to_cstr(json_view(json_object_get(claims, "sub")), ret->id, sizeof(ret->id));
        json_decref(claims);
        if (!named || (user.n && !str_is(user, ret->id))) {
            detail(r, 403, "This token is another end user's");
            return false;
        }
        return true;
    }
    if (!user_is_good(user) || !str_to_cstr(user, ret->id, sizeof(ret->id))) {
        invalid(r, "header", "X-End-User-ID", false, "an id is at most 128 bytes of plain text");
        return false;
    }
    return true;
}

bool end_user_take(struct request *r, struct end_user *user, struct str id)
{
    if (!id.n || str_is(id, user->id))
        return true;
    if (*user->id) {
        detail(r, 403, "The body names another end user than the request comes from");
        return false;
    }
    if (user_is_good(id) && str_to_cstr(id, user->id, sizeof(user->id)))
        return true;
    invalid(r, "body", "external_user_id", false, "an id is at most 128 bytes of plain text");
    return false;
}

bool end_user_owns(const struct end_user *user, const char *owner)
{
    return !*user->id || strcmp(user->id, owner) == 0;
}

bool end_user_sees(const struct end_user *user, const char *owner)
{
    return end_user_owns(user, owner) || !*owner;
}

// clang-format off
static const struct field token_fields[] = {
    {"external_user_id", FIELD_TEXT, REQUIRED, 1, USER_MAX, NULL, "The end user.", "\"alice\""},
    {"expires_in_minutes", FIELD_INT, OPTIONAL, 5, 1440, NULL, "Minutes until the token expires.", "60"},
    {0},
};
// clang-format on

void handle_token(struct request *r)
{
    const struct ubik *u = request_ctx(r);
    const struct caller *c = request_caller(r);
    const struct str key = {(const char *)u->token_key, sizeof(u->token_key)};
    json_t *body = body_object(r, token_fields);
    const json_t *minutes = json_object_get(body, "expires_in_minutes");
    struct str user = json_view(json_object_get(body, "external_user_id"));
    json_int_t now = time_now_ms() / 1000;
    json_int_t life = 60 * (minutes ? json_integer_value(minutes) : TOKEN_MINUTES);
    AUTO_FREE char *token = NULL;

    if (!body)
        return;
    if (token_is(request_secret(r))) {
        detail(r, 403, "A token is made with the key of the account");
    } else if (!user_is_good(user)) {
        invalid(r, "body", "external_user_id", false, "an id is at most 128 bytes of plain text");
    } else {
        token = token_sign(json_pack("{s:s, s:s, s:s, s:o, s:I, s:I}", "iss", "retort", "aud",
                                     "ubik", "key", c->key, "sub", record_text(user), "iat", now,
                                     "exp", now + life),
                           key);
        assert(token);
        answer_json(r, 200,
                    json_pack("{s:s, s:s, s:I}", "access_token", token, "token_type", "bearer",
                              "expires_in", life));
    }
    json_decref(body);
}

void handle_health(struct request *r)
{
    struct end_user user;

    if (end_user_read(r, &user))
        answer_json(r, 200,
                    json_pack("{s:s, s:{s:s, s:s?}}", "status", "ok", "user", "id",
                              request_caller(r)->tenant, "external_user_id",
                              *user.id ? user.id : NULL));
}
