/*
 * requestState of the modern era: what a client carries from one call to the next.
 *
 * The client could change it, keep it or pass it on. So the state is signed, together with what it
 * was made for: the tenant, the key, the method and the parameters that the client repeats. It is
 * accepted for ten minutes, and once. Used states are remembered in limited memory: when that is
 * full, the oldest is forgotten, and no state of that age or older is accepted any more.
 */
#include "base/json.h"
#include "doors/mcp/mcp_int.h"

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <stdio.h>
#include <stdlib.h>

#define MAC_BYTES 32
#define USED_MAX  16384
#define TEXT_MAX  ((MAC_BYTES + STATE_MAX) / 3 * 4 + 8) /* as base64 */

struct states {
    json_t *used;       /* owned: object, nonce to its end; the first used comes first */
    char floor[ID_MAX]; /* nonces begin with their time: none up to this one is taken */
};

/* --- the signature --- */

static void add(gnutls_hmac_hd_t h, const void *p, size_t n)
{
    int rc = gnutls_hmac(h, p, n);

    assert(rc == 0);
}

static int add_json(const char *p, size_t n, void *arg)
{
    add(arg, p, n);
    return 0;
}

/* All of the request that is the same when it comes again, however it is written. */
static void add_params(gnutls_hmac_hd_t h, const json_t *params)
{
    json_t *same = json_copy((json_t *)params);

    json_object_del(same, "_meta");
    json_object_del(same, "inputResponses");
    json_object_del(same, "requestState");
    json_dump_callback(same, add_json, h, JSON_COMPACT | JSON_SORT_KEYS);
    json_decref(same);
}

/* No part has a NUL of its own, so none can run into the next. */
static void sign(const struct call *c, struct str payload, uint8_t ret[MAC_BYTES])
{
    gnutls_hmac_hd_t h;
    int rc = gnutls_hmac_init(&h, GNUTLS_MAC_SHA256, c->mcp->config.secret, MCP_SECRET_BYTES);

    assert(rc == 0);
    add(h, "requestState", sizeof("requestState"));
    add(h, c->caller.tenant, strlen(c->caller.tenant) + 1);
    add(h, c->caller.key, strlen(c->caller.key) + 1);
    add(h, c->method, strlen(c->method) + 1);
    add_params(h, c->params);
    add(h, "", 1);
    add(h, payload.p, payload.n);
    gnutls_hmac_deinit(h, ret);
}

/* --- out --- */

char *state_sign(const struct call *c, const json_t *state)
{
    AUTO_FREE char *payload = NULL, *bytes = NULL;
    char nonce[ID_MAX], *text;
    json_t *whole, *coded;
    size_t n;

    id_make(nonce, "once_");
    whole = json_pack("{s:s, s:I, s:O}", "nonce", nonce, "ends",
                      (json_int_t)time_now_ms() + STATE_MS, "state", state);
    payload = record_dump(whole, false, &n);
    json_decref(whole);
    if (!payload || n > STATE_MAX)
        return NULL;
    bytes = mem_zalloc(MAC_BYTES + n);
    sign(c, (struct str){payload, n}, (uint8_t *)bytes);
    memcpy(bytes + MAC_BYTES, payload, n);
    coded = record_base64((struct str){bytes, MAC_BYTES + n});
    text = mem_strdup(json_string_value(coded));
    json_decref(coded);
    return text;
}

/* --- back --- */

static struct states *states_of(struct mcp *m)
{
    if (!m->states) {
        m->states = mem_zalloc(sizeof(*m->states));
        m->states->used = json_object();
    }
    return m->states;
}

void states_free(struct mcp *m)
{
    struct states *s = take_ptr(&m->states);

    if (s)
        json_decref(s->used);
    free(s);
}

/* Makes room: what is too old by itself, and then the oldest. */
static void forget_old(struct states *s)
{
    int64_t now = time_now_ms();
    void *first;

    while ((first = json_object_iter(s->used))) {
        char nonce[ID_MAX];
        bool over = json_integer_value(json_object_iter_value(first)) <= now;

        if (!over && json_object_size(s->used) < USED_MAX)
            return;
        snprintf(nonce, sizeof(nonce), "%s", json_object_iter_key(first));
        if (!over && strcmp(nonce, s->floor) > 0)
            memcpy(s->floor, nonce, sizeof(nonce));
        json_object_del(s->used, nonce);
    }
}

/* False: it was used before, or may have been. */
static bool use(struct states *s, const char *nonce, int64_t ends)
{
    if (strcmp(nonce, s->floor) <= 0 || json_object_get(s->used, nonce))
        return false;
    forget_old(s);
    json_object_set_new(s->used, nonce, json_integer(ends));
    return true;
}

/* What is signed by us has the shape we gave it. */
static int take(struct call *c, struct str payload, json_t **ret, struct err *e)
{
    json_t *whole = json_load_limited(payload, JSON_ALLOW_NUL);
    const char *nonce = json_string_value(json_object_get(whole, "nonce"));
    int64_t ends = json_integer_value(json_object_get(whole, "ends"));
    int rc = 0;

    assert(nonce);
    if (ends <= time_now_ms())
        rc = err_set(e, ERR_CALLER,
                     "requestState is older than %d minutes: make the call again without it and "
                     "without inputResponses",
                     STATE_MS / 60000);
    else if (!json_is_true(json_object_get(json_object_get(whole, "state"), "repeats")) &&
             !use(states_of(c->mcp), nonce, ends))
        rc = err_set(e, ERR_CALLER,
                     "requestState was used before: make the call again without it and without "
                     "inputResponses");
    else
        *ret = json_incref(json_object_get(whole, "state"));
    json_decref(whole);
    return rc;
}

int state_open(struct call *c, struct str text, json_t **ret, struct err *e)
{
    AUTO_FREE char *bytes = NULL;
    uint8_t mac[MAC_BYTES];
    struct str payload;
    size_t n = 0;

    if (text.p && text.n <= TEXT_MAX) {
        bytes = mem_zalloc(text.n / 4 * 3 + 1);
        if (!base64_decode(text, bytes, &n))
            n = 0;
    }
    if (n > MAC_BYTES) {
        payload = (struct str){bytes + MAC_BYTES, n - MAC_BYTES};
        sign(c, payload, mac);
        if (gnutls_memcmp(mac, bytes, MAC_BYTES) == 0)
            return take(c, payload, ret, e);
    }
    return err_set(e, ERR_CALLER,
                   "requestState is not what this server gave for this request: repeat the request "
                   "as it was, or make it again without requestState and inputResponses");
}
