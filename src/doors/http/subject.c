/*
 * Client certificates: the subject of the certificate that a client has shown, and whether a node
 * has shown one.
 *
 * The TLS handshake asks for a certificate and accepts any, as most clients have none and use keys.
 * So the certificate is verified here, against the authorities of tls-client-ca, or for a node
 * against those of node-ca: its chain, its time, and that it is for clients. This is done for each
 * request that asks, so that a certificate that expires ends its rights on a connection that is
 * still open. A header that describes a certificate is never read.
 */
#include "doors/http/http_mhd.h"

#include <gnutls/x509.h>
#include <stdlib.h>

#define CHAIN_MAX 8

struct trust {
    gnutls_x509_trust_list_t list; /* owned */
};

struct trust *trust_new(const char *pem, const char *setting, struct err *e)
{
    const gnutls_datum_t text = {(unsigned char *)pem, (unsigned)strlen(pem)};
    struct trust *t = mem_zalloc(sizeof(*t));

    if (gnutls_x509_trust_list_init(&t->list, 0) < 0)
        abort();
    if (gnutls_x509_trust_list_add_trust_mem(t->list, &text, NULL, GNUTLS_X509_FMT_PEM, 0, 0) > 0)
        return t;
    trust_free(t);
    (void)err_set(e, ERR_CALLER, "%s: there is no certificate in it", setting);
    return NULL;
}

void trust_free(struct trust *t)
{
    if (!t)
        return;
    gnutls_x509_trust_list_deinit(t->list, 1);
    free(t);
}

/* What the other side of the connection has shown; NULL: nothing. */
static const gnutls_datum_t *chain_of(struct request *r, unsigned *ret_count)
{
    const union MHD_ConnectionInfo *info =
        r->http->tls_trust && r->mhd
            ? MHD_get_connection_info(r->mhd, MHD_CONNECTION_INFO_GNUTLS_SESSION)
            : NULL;

    *ret_count = 0;
    return info && info->tls_session ? gnutls_certificate_get_peers(info->tls_session, ret_count)
                                     : NULL;
}

static bool is_verified(const struct trust *t, const gnutls_datum_t *chain, unsigned count)
{
    gnutls_typed_vdata_st want = {.type = GNUTLS_DT_KEY_PURPOSE_OID,
                                  .data = (unsigned char *)GNUTLS_KP_TLS_WWW_CLIENT};
    gnutls_x509_crt_t certs[CHAIN_MAX];
    unsigned read = 0, status = ~0U;
    bool good;

    if (count == 0 || count > CHAIN_MAX)
        return false;
    for (good = true; good && read < count; read++) {
        if (gnutls_x509_crt_init(&certs[read]) < 0)
            abort();
        good = gnutls_x509_crt_import(certs[read], &chain[read], GNUTLS_X509_FMT_DER) >= 0;
    }
    good = good &&
           gnutls_x509_trust_list_verify_crt2(t->list, certs, count, &want, 1, 0, &status, NULL) ==
               GNUTLS_E_SUCCESS &&
           status == 0;
    while (read > 0)
        gnutls_x509_crt_deinit(certs[--read]);
    return good;
}

/* A subject with two common names has none: which of them a list means nobody can tell. */
static void common_name(gnutls_x509_crt_t cert, struct subject *ret)
{
    char name[sizeof(ret->cn)], second[sizeof(ret->cn)];
    size_t n = sizeof(name), second_n = sizeof(second);

    if (gnutls_x509_crt_get_dn_by_oid(cert, GNUTLS_OID_X520_COMMON_NAME, 0, 0, name, &n) < 0 ||
        memchr(name, '\0', n) ||
        gnutls_x509_crt_get_dn_by_oid(cert, GNUTLS_OID_X520_COMMON_NAME, 1, 0, second, &second_n) !=
            GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE)
        return;
    (void)!str_to_cstr((struct str){name, n}, ret->cn, sizeof(ret->cn));
}

/* One that does not fit is no subject: half a name could be somebody else's. */
static bool read_subject(const gnutls_datum_t *der, struct subject *ret)
{
    gnutls_x509_crt_t cert;
    gnutls_datum_t dn = {0};
    bool good;

    if (gnutls_x509_crt_init(&cert) < 0)
        return false;
    good = gnutls_x509_crt_import(cert, der, GNUTLS_X509_FMT_DER) >= 0 &&
           gnutls_x509_crt_get_dn3(cert, &dn, 0) >= 0 && dn.size > 0 &&
           str_to_cstr((struct str){(const char *)dn.data, dn.size}, ret->dn, sizeof(ret->dn));
    if (good)
        common_name(cert, ret);
    gnutls_free(dn.data);
    gnutls_x509_crt_deinit(cert);
    return good;
}

int request_subject(struct request *r, struct subject *ret)
{
    unsigned count;
    const gnutls_datum_t *chain = chain_of(r, &count);

    *ret = (struct subject){0};
    if (!r->http->clients || !chain || count == 0)
        return 0;
    return is_verified(r->http->clients, chain, count) && read_subject(&chain[0], ret) ? 1 : -1;
}

bool peer_is_certified(struct request *r)
{
    unsigned count;
    const gnutls_datum_t *chain;

    if (!r->http->nodes)
        return true;
    chain = chain_of(r, &count);
    return chain && is_verified(r->http->nodes, chain, count);
}
