/* This server as one of several nodes: its name, and the secret that they share. */
#include "cli/serve_int.h"

#include <fcntl.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <stdlib.h>
#include <unistd.h>

#define SECRET_MAX (4 * KiB)
#define SECRET_MIN 32

/* What a secret is for is part of what is made of it, so that none of them tells of another. */
static void derive(struct str text, const char *purpose, uint8_t *ret)
{
    int rc = gnutls_hmac_fast(GNUTLS_MAC_SHA256, text.p, text.n, purpose, strlen(purpose), ret);

    assert(rc == 0);
}

static int read_secret(struct node_set *set, const char *path, struct err *e)
{
    char text[SECRET_MAX];
    ssize_t n = fd_read_file_at(AT_FDCWD, path, text, sizeof(text));

    if (n < 0) {
        err_sys(e, "cannot read node-secret-file %s", path);
        e->kind = ERR_CALLER;
        return -1;
    }
    while (n > 0 && strchr(" \t\r\n", text[n - 1])) /* a text editor's */
        n--;
    if (n < SECRET_MIN)
        return err_set(e, ERR_CALLER, "node-secret-file %s holds fewer than %d bytes", path,
                       SECRET_MIN);
    derive((struct str){text, (size_t)n}, "retort peers", set->peers);
    derive((struct str){text, (size_t)n}, "retort mcp", set->mcp);
    gnutls_memset(text, 0, sizeof(text));
    return 0;
}

int node_set_open(struct node_set *set, const struct settings *s, struct err *e)
{
    const struct serve_settings *o = &s->serve;

    if (!o->node_url)
        return 0;
    if (read_secret(set, o->node_secret_file, e) < 0)
        return -1;
    if (gethostname(set->host, sizeof(set->host) - 1) < 0)
        return err_sys(e, "ask for the name of this machine");
    set->ca = o->node_ca ? file_keep("--node-ca", o->node_ca, set->ca_path, e) : -1;
    if (o->node_ca && set->ca < 0)
        return -1;
    if (o->node_cert) {
        set->cert = file_keep("--node-cert", o->node_cert, set->cert_path, e);
        set->key = file_keep("--node-key", o->node_key, set->key_path, e);
        if (set->cert < 0 || set->key < 0 || node_cert_check(set, o, e) < 0)
            return -1;
    }
    set->on = true;
    set->node = (struct node_config){.name = o->node_name ? o->node_name : set->host,
                                     .url = o->node_url,
                                     .lease_ms = o->node_lease_ms};
    return 0;
}

void node_set_done(struct node_set *set)
{
    fd_closep(&set->ca);
    fd_closep(&set->cert);
    fd_closep(&set->key);
    gnutls_memset(set->peers, 0, sizeof(set->peers));
    gnutls_memset(set->mcp, 0, sizeof(set->mcp));
}
