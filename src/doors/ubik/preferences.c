/* Which model writes the code: a preference of the end user, or of the account. */
#include "doors/ubik/ubik_int.h"

// clang-format off
static const struct field preference_fields[] = {
    {"code_generation_model", FIELD_TEXT, REQUIRED, 0, NAME_BYTES, NULL,
     "One of the models of this server; empty: its own choice.", "\"local\""},
    {0},
};
// clang-format on

static const char *kind_of(const struct end_user *user)
{
    return *user->id ? "preference" : "account preference";
}

void preference_get(const struct end_user *user, item_fn *fn, void *arg)
{
    service_item_get(user->sv, &user->caller, kind_of(user),
                     *user->id ? str_of(user->id) : STR("-"), fn, arg);
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
    struct end_user user;

    if (end_user_read(r, &user))
        preference_get(&user, on_preferences, r);
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
    struct end_user user;
    char nobody[] = "-";
    json_t *body = end_user_read(r, &user) ? body_object(r, preference_fields) : NULL;
    const struct item_row row = {.id = *user.id ? user.id : nobody, .owner = user.id};

    if (body)
        item_put(&user, kind_of(&user), row, KEPT_MAX, body, on_preferred, r);
    json_decref(body);
}
