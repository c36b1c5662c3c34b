/*
 * Client certificates: the subject of the certificate that a client has shown.
 *
 * The TLS handshake asks for a certificate and accepts any, as most clients have none and use keys.
 * So the certificate is verified here, against the authorities of tls-client-ca: its chain, its
 * time, and that it is for clients. This is done for each request that asks, so that a certificate
 * that expires ends its rights on a connection that is still open. A header that describes a
 * certificate is never read.
 */
#include "doors/http/http_mhd.h"

#include <gnutls/x509.h>

static bool is_verified(gnutls_session_t session)
{
    gnutls_typed_vdata_st want = {.type = GNUTLS_DT_KEY_PURPOSE_OID,
                                  .data = (unsigned char *)GNUTLS_KP_TLS_WWW_CLIENT};
    unsigned status = ~0U;

    return gnutls_certificate_verify_peers(session, &want, 1, &status) == GNUTLS_E_SUCCESS &&
           status == 0;
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
    const union MHD_ConnectionInfo *info =
        r->http->tls_ca && r->mhd
            ? MHD_get_connection_info(r->mhd, MHD_CONNECTION_INFO_GNUTLS_SESSION)
            : NULL;
    gnutls_session_t session = info ? info->tls_session : NULL;
    const gnutls_datum_t *chain;
    unsigned count = 0;

    *ret = (struct subject){0};
    if (!session || !(chain = gnutls_certificate_get_peers(session, &count)) || count == 0)
        return 0;
    return is_verified(session) && read_subject(&chain[0], ret) ? 1 : -1;
}

int client_ca_check(const char *pem, struct err *e)
{
    const gnutls_datum_t text = {(unsigned char *)pem, (unsigned)strlen(pem)};
    gnutls_x509_crt_t *certs = NULL;
    unsigned count = 0;

    if (gnutls_x509_crt_list_import2(&certs, &count, &text, GNUTLS_X509_FMT_PEM, 0) < 0)
        return err_set(e, ERR_CALLER, "tls-client-ca: there is no certificate in it");
    for (unsigned i = 0; i < count; i++)
        gnutls_x509_crt_deinit(certs[i]);
    gnutls_free(certs);
    return count > 0 ? 0 : err_set(e, ERR_CALLER, "tls-client-ca: there is no certificate in it");
}
