/* retort keys: the keys of a state directory, also while a server uses it. */
#include "cli/cli_int.h"
#include "cli/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define TENANT_MAX 63 /* of struct caller */
#define NAME_MAX_  200
#define SCOPE_TEXT 512

/* One call of the command line. */
struct desk {
    const struct settings *s; /* borrowed */
    struct store *store;      /* owned */
    struct key_row key;       /* create */
    const char *id;           /* revoke */
    struct key_row *keys;     /* owned: list */
    size_t count;
};

static int open_store(struct desk *d, struct err *e)
{
    const char *path = d->s->state;
    AUTO_FREE char *password = NULL;
    struct store_config config;

    if (state_store(d->s, &config, &password, e) < 0 || state_become(path, d->s, e) < 0 ||
        state_reach(path, e) < 0)
        return -1;
    d->store = store_open(NULL, &config, e);
    return d->store ? 0 : -1;
}

/* --- create --- */

static int check_text(const char *flag, const char *text, size_t max, struct err *e)
{
    for (const char *p = text; *p; p++)
        if ((unsigned char)*p < ' ' || *p == 0x7f)
            return err_set(e, ERR_CALLER, "%s: there is a control character in it", flag);
    if (strlen(text) > max || str_utf8_len(str_of(text)) != strlen(text))
        return err_set(e, ERR_CALLER, "%s: at most %zu bytes of UTF-8", flag, max);
    return 0;
}

static int put_key(struct db *db, void *arg, struct err *e)
{
    struct desk *d = arg;

    return db_key_put(db, &d->key, e);
}

static const char *rights_of(const struct key_row *k)
{
    if (k->admin)
        return ", for an administrator";
    return k->approver ? ", for an approver" : "";
}

static const char *show_time(int64_t ms, char ret[32])
{
    time_t t = (time_t)(ms / 1000);
    struct tm tm;

    snprintf(ret, 32, "-");
    if (ms > 0 && gmtime_r(&t, &tm))
        strftime(ret, 32, "%Y-%m-%dT%H:%M:%SZ", &tm);
    return ret;
}

/* "pools data,web; read-only", or "". */
static const char *scope_of(const struct key_row *r, char ret[SCOPE_TEXT])
{
    char until[32];
    int n = 0;

    ret[0] = '\0';
    if (r->pools)
        n += snprintf(ret + n, SCOPE_TEXT - (size_t)n, "; pools %.200s", r->pools);
    if (r->doors)
        n += snprintf(ret + n, SCOPE_TEXT - (size_t)n, "; doors %.200s", r->doors);
    if (r->read_only)
        n += snprintf(ret + n, SCOPE_TEXT - (size_t)n, "; read-only");
    if (r->expires_ms)
        n += snprintf(ret + n, SCOPE_TEXT - (size_t)n, "; until %s",
                      show_time(r->expires_ms, until));
    return n ? memmove(ret, ret + 2, (size_t)n - 1) : ret;
}

/* A key that ends at once opens nothing, and 0 means "never" where the option is not given. */
static int check_expiry(const struct desk *d, struct err *e)
{
    const struct option *o = option_by_name(STR("expires"), IN(COMMAND_KEYS));

    if (d->s->keys.expires_ms > 0 || d->s->from[option_index(o)] == SOURCE_DEFAULT)
        return 0;
    return err_set(e, ERR_CALLER,
                   "--expires 0 would end the key at once; leave --expires out for a key that "
                   "never ends");
}

static int create(struct desk *d, struct err *e)
{
    const struct keys_settings *k = &d->s->keys;
    const struct key_limits limits = {.pools = str_of(k->pools),
                                      .doors = str_of(k->doors),
                                      .read_only = k->read_only,
                                      .expires_ms = k->expires_ms};
    char secret[KEY_SECRET_MAX], scope[SCOPE_TEXT];

    if (!k->tenant)
        return err_set(e, ERR_CALLER, "whose key is it? say --tenant NAME");
    if (check_expiry(d, e) < 0 || check_text("--tenant", k->tenant, TENANT_MAX, e) < 0 ||
        check_text("--name", k->name ? k->name : "", NAME_MAX_, e) < 0 || open_store(d, e) < 0)
        return -1;
    key_make(&d->key, secret, k->tenant, k->name ? k->name : "", k->admin);
    d->key.approver = k->approver;
    if (key_limit(&d->key, &limits, e) < 0)
        return -1;
    if (store_call(d->store, put_key, d, e) < 0)
        return -1;
    if (k->quiet)
        printf("%s\n", secret);
    else
        printf("%s is a new key of tenant %s%s%s%s. Its secret is shown this once:\n\n  %s\n\n"
               "Send it as \"Authorization: Bearer SECRET\". From now on every request needs a "
               "key.\n",
               d->key.id, k->tenant, rights_of(&d->key), *scope_of(&d->key, scope) ? ", for " : "",
               scope, secret);
    explicit_bzero(secret, sizeof(secret));
    return 0;
}

/* --- list --- */

static int list_keys(struct db *db, void *arg, struct err *e)
{
    struct desk *d = arg;

    return db_key_list(db, &d->keys, &d->count, e);
}

static json_t *time_value(int64_t ms)
{
    char text[32];

    return ms > 0 ? json_string(show_time(ms, text)) : json_null();
}

static void print_json(const struct desk *d)
{
    json_t *all = json_array();

    for (size_t i = 0; i < d->count; i++) {
        const struct key_row *r = &d->keys[i];
        json_array_append_new(
            all,
            json_pack("{s:s, s:s, s:s, s:s, s:b, s:b, s:s?, s:s?, s:b, s:o, s:o, s:o, s:o}", "id",
                      r->id, "tenant", r->tenant, "name", r->name ? r->name : "", "hint", r->hint,
                      "admin", r->admin, "approver", r->approver, "pools", r->pools, "doors",
                      r->doors, "read_only", r->read_only, "expires_at", time_value(r->expires_ms),
                      "created_at", time_value(r->created_ms), "last_used_at",
                      time_value(r->used_ms), "revoked_at", time_value(r->revoked_ms)));
    }
    json_dumpf(all, stdout, JSON_INDENT(2) | JSON_ENSURE_ASCII);
    putchar('\n');
    json_decref(all);
}

static void print_table(const struct desk *d)
{
    static const char line[] = "%-32s  %-12s  %-16s  %-8s  %-20s  %-20s  %-20s  %-16s  %s\n";
    char scope[SCOPE_TEXT], t1[32], t2[32], t3[32], tenant[NAME_SHOWN], name[NAME_SHOWN];

    printf(line, "ID", "SECRET", "TENANT", "MAY", "CREATED", "LAST USED", "REVOKED", "NAME",
           "ONLY FOR");
    for (size_t i = 0; i < d->count; i++) {
        const struct key_row *r = &d->keys[i];
        char hint[sizeof(r->hint) + 4];
        snprintf(hint, sizeof(hint), "%s...", r->hint);
        printf(line, r->id, hint, name_show(tenant, str_of(r->tenant)),
               r->admin      ? "admin"
               : r->approver ? "approve"
                             : "-",
               show_time(r->created_ms, t1), show_time(r->used_ms, t2),
               show_time(r->revoked_ms, t3), name_show(name, str_of(r->name)),
               *scope_of(r, scope) ? scope : "-");
    }
}

/* A wrong --state must not look like a server without keys. */
static int check_state(const struct desk *d, struct err *e)
{
    char shown[NAME_SHOWN];

    if (d->s->store || access(d->s->state, F_OK) == 0 || errno != ENOENT)
        return 0;
    return err_set(e, ERR_CALLER,
                   "there is no state directory %s, so there are no keys; name the server's with "
                   "--state, or make a key with retort keys create",
                   name_show(shown, str_of(d->s->state)));
}

static int list(struct desk *d, struct err *e)
{
    if (check_state(d, e) < 0 || open_store(d, e) < 0 || store_call(d->store, list_keys, d, e) < 0)
        return -1;
    if (d->s->json)
        print_json(d);
    else
        print_table(d);
    return 0;
}

/* --- revoke --- */

static int revoke_key(struct db *db, void *arg, struct err *e)
{
    struct desk *d = arg;
    int rc = db_key_revoke(db, d->id, time_now_ms(), e);

    if (rc == 0)
        return err_set(e, ERR_MISSING, "there is no key %s; see retort keys list", d->id);
    return rc;
}

static int revoke_one(struct desk *d, struct err *e)
{
    char shown[NAME_SHOWN];
    int rc;

    d->id = d->s->words.item[1];
    name_show(shown, str_of(d->id));
    if (!id_is(str_of(d->id), "key_"))
        return err_set(e, ERR_CALLER, "'%s' is not the id of a key; see retort keys list", shown);
    if (check_state(d, e) < 0 || open_store(d, e) < 0)
        return -1;
    rc = store_call(d->store, revoke_key, d, e);
    if (rc == 0 && !d->s->keys.quiet)
        printf("%s is revoked\n", shown);
    return rc;
}

/* --- which --- */

static const struct keys_verb {
    const char *name;
    size_t args;
    const char *usage;
    int (*run)(struct desk *d, struct err *e);
} verbs[] = {
    {"create", 0,
     "retort keys create --tenant NAME [--name TEXT] [--admin | --approver] [--pool NAMES] "
     "[--door NAMES] [--read-only] [--expires S]", create    },
    {"list",   0, "retort keys list [--json]",     list      },
    {"revoke", 1, "retort keys revoke ID",         revoke_one},
};

static int run(struct desk *d, struct err *e)
{
    const struct list *words = &d->s->words;
    char shown[NAME_SHOWN];

    if (words->count == 0)
        return err_set(e, ERR_CALLER, "keys: create, list or revoke?");
    for (size_t i = 0; i < COUNT(verbs); i++) {
        if (strcmp(words->item[0], verbs[i].name) != 0)
            continue;
        if (words->count != verbs[i].args + 1)
            return err_set(e, ERR_CALLER, "write it like this: %s", verbs[i].usage);
        return verbs[i].run(d, e);
    }
    return err_set(e, ERR_CALLER, "keys has no '%s'; it has create, list and revoke",
                   name_show(shown, str_of(words->item[0])));
}

static void done(struct desk *d)
{
    for (size_t i = 0; i < d->count; i++)
        key_row_done(&d->keys[i]);
    free(d->keys);
    key_row_done(&d->key);
    if (d->store)
        store_close(d->store);
}

int keys_main(const struct settings *s)
{
    struct desk d = {.s = s};
    struct err e = {0};
    int rc = run(&d, &e);

    done(&d);
    if (rc == 0 && fflush(stdout) == 0)
        return EXIT_OK;
    if (rc == 0)
        err_sys(&e, "cannot write to standard output");
    return command_failed(&e);
}
