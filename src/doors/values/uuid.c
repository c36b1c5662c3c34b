/* UUIDs: random ones, and ones that are the same for the same name. */
#include "doors/values/values.h"

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>

static void uuid_print(char ret[UUID_MAX], uint8_t b[16], unsigned version)
{
    static const unsigned char groups[] = {4, 2, 2, 2, 6};
    char *p = ret;

    b[6] = (uint8_t)((b[6] & 0x0f) | version << 4);
    b[8] = (uint8_t)((b[8] & 0x3f) | 0x80);
    for (size_t i = 0; i < COUNT(groups); b += groups[i++]) {
        if (i > 0)
            *p++ = '-';
        p = hex_print(p, b, groups[i]);
    }
}

void uuid_make(char ret[UUID_MAX])
{
    uint8_t b[16];

    random_bytes(b, sizeof(b));
    uuid_print(ret, b, 4);
}

void uuid_from(char ret[UUID_MAX], struct str name)
{
    uint8_t hash[32];
    int rc = gnutls_hash_fast(GNUTLS_DIG_SHA256, name.p, name.n, hash);

    assert(rc == 0);
    uuid_print(ret, hash, 8);
}
