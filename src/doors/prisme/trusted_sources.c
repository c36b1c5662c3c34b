/*
 * Trusted sources: callers that need no key, because something else proves who they are.
 *
 *   unix:1000=agent-factory    a process of this user, over a Unix socket
 *   token:agent-factory        a JSON Web Token (HS256) in x-prisme-token, signed with
 *                              prisme-source-key, with this name as iss or sub; it lives for
 *                              TOKEN_LIFE_S seconds at most
 *   mtls:agent-factory         a certificate of an authority in tls-client-ca, with this
 *                              common name
 *   mtls:"CN=a,O=b"=storage    the same, with this whole subject, as RFC 4514 writes it
 *
 * With such a list all other callers need a key, also on loopback.
 */
#include "doors/prisme/prisme_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum proof { PROOF_UNIX, PROOF_TOKEN, PROOF_COMMON_NAME, PROOF_SUBJECT };

struct trusted_source {
    enum proof proof;
    uid_t uid;
    char name[64]; /* also its tenant */
    char subject[sizeof(((struct subject *)0)->dn)];
};

struct trusted_sources {
    struct trusted_source item[TRUSTED_SOURCES_MAX];
    size_t count;
};

/* --- the setting --- */

static bool is_source_name(const char *s)
{
    size_t n = strlen(s);

    return n > 0 && n < 64 && strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-_.") == n;
}

static bool take_name(struct trusted_source *ret, enum proof proof, const char *name)
{
    ret->proof = proof;
    return is_source_name(name) && str_to_cstr(str_of(name), ret->name, sizeof(ret->name));
}

/* UID=NAME */
static bool read_unix(const char *s, struct trusted_source *ret)
{
    size_t digits = strspn(s, "0123456789");
    unsigned long long uid;

    if (digits == 0 || digits > 10 || s[digits] != '=')
        return false;
    uid = strtoull(s, NULL, 10);
    ret->uid = (uid_t)uid;
    return uid < (uid_t)-1 && take_name(ret, PROOF_UNIX, s + digits + 1);
}

static bool read_token(const char *s, struct trusted_source *ret)
{
    return take_name(ret, PROOF_TOKEN, s);
}

/* NAME, or "SUBJECT"=NAME */
static bool read_mtls(const char *s, struct trusted_source *ret)
{
    const char *quote = *s == '"' ? strchr(s + 1, '"') : NULL;

    if (*s != '"')
        return take_name(ret, PROOF_COMMON_NAME, s);
    return quote && quote[1] == '=' && quote > s + 1 &&
           str_to_cstr((struct str){s + 1, (size_t)(quote - s - 1)}, ret->subject,
                       sizeof(ret->subject)) &&
           take_name(ret, PROOF_SUBJECT, quote + 2);
}

static bool read_source(const char *word, struct trusted_source *ret)
{
    static const struct {
        const char *prefix;
        bool (*read)(const char *s, struct trusted_source *ret);
    } kinds[] = {
        {"unix:",  read_unix },
        {"token:", read_token},
        {"mtls:",  read_mtls },
    };

    for (size_t i = 0; i < COUNT(kinds); i++) {
        size_t n = strlen(kinds[i].prefix);
        if (strncmp(word, kinds[i].prefix, n) == 0)
            return kinds[i].read(word + n, ret);
    }
    return false;
}

static int add(struct trusted_sources *l, const char *word, bool certificates, struct err *e)
{
    struct trusted_source s = {0};

    if (l->count == TRUSTED_SOURCES_MAX)
        return err_set(e, ERR_CALLER, "more than %d sources", TRUSTED_SOURCES_MAX);
    if (!read_source(word, &s))
        return err_set(e, ERR_CALLER,
                       "%s is no source: write unix:UID=NAME, token:NAME, mtls:NAME or "
                       "mtls:\"SUBJECT\"=NAME",
                       word);
    if (s.proof >= PROOF_COMMON_NAME && !certificates)
        return err_set(e, ERR_CALLER, "%s needs tls-client-ca, which says whose certificates count",
                       word);
    l->item[l->count++] = s;
    return 0;
}

/* Cuts the next word off, or NULL. What is between quotes may hold commas and blanks. */
static char *next_word(char **rest)
{
    char *word = *rest + strspn(*rest, ", \t\n"), *p = word;
    bool quoted = false;

    for (; *p && (quoted || !strchr(", \t\n", *p)); p++)
        quoted ^= *p == '"';
    *rest = p + (*p != '\0');
    *p = '\0';
    return *word ? word : NULL;
}

struct trusted_sources *trusted_sources_new(const char *text, bool certificates, struct err *e)
{
    struct trusted_sources *l = mem_zalloc(sizeof(*l));
    AUTO_FREE char *copy = mem_strdup(text);
    char *rest = copy;

    for (char *word; (word = next_word(&rest));)
        if (add(l, word, certificates, e) < 0) {
            trusted_sources_free(l);
            return NULL;
        }
    return l;
}

void trusted_sources_free(struct trusted_sources *l)
{
    free(l);
}

/* --- callers --- */

/* What a caller has shown. */
struct proofs {
    char name[64]; /* of its token, or "" */
    bool has_uid;
    uid_t uid;
    struct subject subject; /* empty: none that is good */
};

static bool proves(const struct trusted_source *s, const struct proofs *p)
{
    switch (s->proof) {
    case PROOF_UNIX:
        return p->has_uid && s->uid == p->uid;
    case PROOF_TOKEN:
        return strcmp(s->name, p->name) == 0;
    case PROOF_COMMON_NAME:
        return strcmp(s->name, p->subject.cn) == 0;
    case PROOF_SUBJECT:
        return strcmp(s->subject, p->subject.dn) == 0;
    }
    return false;
}

/* The first that fits: the order of the list is the operator's. */
static bool is_listed(const struct trusted_sources *l, const struct proofs *p, struct caller *ret)
{
    for (size_t i = 0; i < l->count; i++)
        if (proves(&l->item[i], p)) {
            snprintf(ret->tenant, sizeof(ret->tenant), "%s", l->item[i].name);
            return true;
        }
    return false;
}

/* With a token the connection does not count: another process may have signed the token. */
static bool find_proofs(struct request *r, struct prisme *p, struct proofs *ret)
{
    struct str token = request_header(r, "x-prisme-token");

    if (token.p)
        return token_read(token, p->config.source_key, time(NULL), ret->name, sizeof(ret->name));
    ret->has_uid = request_peer(r, &ret->uid);
    return request_subject(r, &ret->subject) > 0 || ret->has_uid;
}

int prisme_identify(struct request *r, void *prisme, struct caller *ret)
{
    struct prisme *p = prisme;
    struct proofs proofs = {0};

    if (!p->sources || request_header(r, "authorization").p || request_header(r, "x-api-key").p)
        return 0; /* the key decides */
    if (find_proofs(r, p, &proofs) && is_listed(p->sources, &proofs, ret))
        return 1;
    answer_fail(r, 403, "UNTRUSTED_SOURCE", NULL,
                "this caller is not one of the trusted sources, and has no key");
    return -1;
}
