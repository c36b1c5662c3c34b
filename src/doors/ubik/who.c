/*
 * Who asks: an account by its key, or one of its end users, whom the account's own server
 * names in a header, or lets speak for themselves with a token.
 *
 * An end user sees their own executions, sandboxes and sessions, and documents that are
 * theirs or nobody's. Without an end user it is the whole account, so a server that
 * forgets the header shows its user everything: docs/ubik.md says so.
 */
#include "doors/ubik/ubik_int.h"

#include <stdio.h>
#include <stdlib.h>

#define LIFE_S ((int64_t)24 * 3600)

/* --- tokens --- */

static json_t *claims_of(const struct ubik *u, struct str token)
{
    const struct str key = {(const char *)u->token_key, sizeof(u->token_key)};
    json_t *claims = token_open(token, key, clock_ms() / 1000, LIFE_S);

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
           str_to_cstr(json_view(json_object_get(claims, "tenant")), ret->tenant,
                       sizeof(ret->tenant)) &&
           str_to_cstr(json_view(json_object_get(claims, "key")), ret->key, sizeof(ret->key)) &&
           service_key_stands(request_service(r), ret->tenant, ret->key);
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

/* Both names that its guides have for the header. */
static struct str user_header(struct request *r)
{
    struct str user = request_header(r, "x-end-user-id");

    return user.p ? user : request_header(r, "external_user_id");
}

bool who_read(struct request *r, struct who *ret)
{
    struct str user = user_header(r), token = request_secret(r);

    *ret = (struct who){0};
    if (token_is(token)) {
        json_t *claims = claims_of(request_ctx(r), token);
        ret->by_token =
            str_to_cstr(json_view(json_object_get(claims, "sub")), ret->user, sizeof(ret->user));
        json_decref(claims);
        if (!ret->by_token || (user.n && !str_is(user, ret->user))) {
            detail(r, 403, "This token is another end user's");
            return false;
        }
        return true;
    }
    if (!user_is_good(user) || !str_to_cstr(user, ret->user, sizeof(ret->user))) {
        invalid(r, "header", "X-End-User-ID", false, "an id is at most 128 bytes of plain text");
        return false;
    }
    return true;
}

bool who_take(struct request *r, struct who *w, struct str user)
{
    if (!user.n || str_is(user, w->user))
        return true;
    if (*w->user) {
        detail(r, 403, "The body names another end user than the request comes from");
        return false;
    }
    if (user_is_good(user) && str_to_cstr(user, w->user, sizeof(w->user)))
        return true;
    invalid(r, "body", "external_user_id", false, "an id is at most 128 bytes of plain text");
    return false;
}

bool who_owns(const struct who *w, const char *owner)
{
    return !*w->user || strcmp(w->user, owner) == 0;
}

bool who_sees(const struct who *w, const char *owner)
{
    return who_owns(w, owner) || !*owner;
}

// clang-format off
static const struct field token_fields[] = {
    {"external_user_id", FIELD_TEXT, REQUIRED, 1, USER_MAX, NULL, "Whose token it is.", "\"alice\""},
    {"expires_in_minutes", FIELD_INT, OPTIONAL, 5, 1440, NULL, "Until then.", "60"},
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
    json_int_t now = clock_ms() / 1000;
    json_int_t life = 60 * (minutes ? json_integer_value(minutes) : TOKEN_MINUTES);
    AUTO_FREE char *token = NULL;

    if (!body)
        return;
    if (token_is(request_secret(r))) {
        detail(r, 403, "A token is made with the key of the account");
    } else if (!user_is_good(user)) {
        invalid(r, "body", "external_user_id", false, "an id is at most 128 bytes of plain text");
    } else {
        token = token_sign(json_pack("{s:s, s:s, s:s, s:s, s:o, s:I, s:I}", "iss", "retort", "aud",
                                     "ubik", "tenant", c->tenant, "key", c->key, "sub",
                                     record_text(user), "iat", now, "exp", now + life),
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
    struct who w;

    if (who_read(r, &w))
        answer_json(r, 200,
                    json_pack("{s:s, s:{s:s, s:s?}}", "status", "ok", "user", "id",
                              request_caller(r)->tenant, "external_user_id",
                              *w.user ? w.user : NULL));
}

/* --- which model writes the code: a preference of the end user, or of the account --- */

// clang-format off
static const struct field preference_fields[] = {
    {"code_generation_model", FIELD_TEXT, REQUIRED, 0, NAME_BYTES, NULL,
     "One of the models of this server; empty: its own choice.", "\"local\""},
    {0},
};
// clang-format on

const char *preference_kind(const struct who *w)
{
    return *w->user ? "preference" : "account preference";
}

static void on_preferences(void *arg, const struct item_row *item, const struct err *failed)
{
    struct request *r = arg;
    json_t *body = item ? json_loads(item->body, 0, NULL) : NULL;

    if (failed && failed->kind != ERR_MISSING)
        detail_err(r, failed, NULL);
    else
        answer_json(r, 200, body ? body : json_pack("{s:s}", "code_generation_model", ""));
}

void handle_preferences_get(struct request *r)
{
    struct who w;

    if (who_read(r, &w))
        service_item_get(request_service(r), request_caller(r), preference_kind(&w),
                         *w.user ? user_of(&w) : STR("-"), on_preferences, r);
}

static void on_preferred(void *arg, const struct err *failed)
{
    struct request *r = arg;

    if (failed)
        detail_err(r, failed, NULL);
    else
        handle_preferences_get(r);
}

void handle_preferences_put(struct request *r)
{
    struct who w;
    char nobody[] = "-";
    json_t *body = who_read(r, &w) ? body_object(r, preference_fields) : NULL;
    AUTO_FREE char *text = body ? record_dump(body, false, NULL) : NULL;
    struct item_row row = {.id = *w.user ? w.user : nobody, .owner = w.user, .body = text};

    json_decref(body);
    row.kind = (char *)(uintptr_t)preference_kind(&w);
    if (text)
        service_item_put(request_service(r), request_caller(r), &row, on_preferred, r);
}
