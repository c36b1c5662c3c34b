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
