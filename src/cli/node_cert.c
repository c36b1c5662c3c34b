/*
 * The certificate that this node shows to others, looked at before anybody else does: as the others
 * will, against node-ca. They tell this node only that they do not take it.
 */
#include "cli/serve_int.h"

#include <gnutls/x509.h>
#include <stdlib.h>

static int load(gnutls_certificate_credentials_t own, const struct node_set *set,
                const struct serve_settings *o, struct err *e)
{
    int rc = gnutls_certificate_set_x509_key_file(own, set->cert_path, set->key_path,
                                                  GNUTLS_X509_FMT_PEM);

    if (rc >= 0)
        return 0;
    return err_set(e, ERR_CALLER, "node-cert %s with node-key %s: %s", o->node_cert, o->node_key,
                   gnutls_strerror(rc));
}

/* Only a warning: it may be node-ca that is old here, and this node serves its own tenants. */
static void verify(gnutls_x509_trust_list_t nodes, gnutls_x509_crt_t *chain, unsigned count,
                   const char *name)
{
    gnutls_typed_vdata_st want = {.type = GNUTLS_DT_KEY_PURPOSE_OID,
                                  .data = (unsigned char *)GNUTLS_KP_TLS_WWW_CLIENT};
    gnutls_datum_t why = {0};
    unsigned status = 0;

    if (gnutls_x509_trust_list_verify_crt2(nodes, chain, count, &want, 1, 0, &status, NULL) < 0 ||
        status == 0 ||
        gnutls_certificate_verification_status_print(status, GNUTLS_CRT_X509, &why, 0) < 0)
        return;
    log_warn("other nodes do not take node-cert %s: %s", name, (const char *)why.data);
    gnutls_free(why.data);
}

int node_cert_check(const struct node_set *set, const struct serve_settings *o, struct err *e)
{
    gnutls_certificate_credentials_t own;
    gnutls_x509_trust_list_t nodes;
    gnutls_x509_crt_t *chain = NULL;
    unsigned count = 0;

    if (gnutls_certificate_allocate_credentials(&own) < 0 ||
        gnutls_x509_trust_list_init(&nodes, 0) < 0)
        abort();
    int rc = load(own, set, o, e);
    if (rc == 0 && gnutls_certificate_get_x509_crt(own, 0, &chain, &count) >= 0 &&
        gnutls_x509_trust_list_add_trust_file(nodes, set->ca_path, NULL, GNUTLS_X509_FMT_PEM, 0,
                                              0) >= 0)
        verify(nodes, chain, count, o->node_cert);
    while (count > 0)
        gnutls_x509_crt_deinit(chain[--count]);
    gnutls_free(chain);
    gnutls_x509_trust_list_deinit(nodes, 1);
    gnutls_certificate_free_credentials(own);
    return rc;
}
