/*
 * Links to images. They stand in Markdown that a chat shows, so a link works without a key. It
 * cannot be forged: it has a signature over the tenant, the execution and the number of the image.
 * The image is read from the execution's record, and goes when the record goes.
 *
 * exec_...-2-SIGNATURE-TENANT.png, the last two in hex. Those who see a link are not told whose it
 * is: the tenant's name is padded and masked with a key stream of this image alone.
 */
#include "doors/qwen/qwen_int.h"

#include <gnutls/crypto.h>
#include <stdio.h>
#include <stdlib.h>

#define SIGNATURE  16 /* bytes of it */
#define TENANT_MAX sizeof(((struct caller *)0)->tenant)

static void sign(const struct qwen *q, const char *tenant, const char *execution, size_t n,
                 char ret[2 * SIGNATURE + 1])
{
    char text[TENANT_MAX + ID_MAX + 64];
    uint8_t mac[32];
    int len = snprintf(text, sizeof(text), "qwen image\n%s\n%s\n%zu", tenant, execution, n);

    if (gnutls_hmac_fast(GNUTLS_MAC_SHA256, q->config.secret, sizeof(q->config.secret), text,
                         (size_t)len, mac) < 0)
        abort();
    hex_print(ret, mac, SIGNATURE);
}

/* Masks a name, and unmasks it. */
static void mask(const struct qwen *q, const char *execution, size_t n, char tenant[TENANT_MAX])
{
    char text[ID_MAX + 64];
    uint8_t stream[32];

    for (size_t i = 0; i < TENANT_MAX; i++) {
        if (i % sizeof(stream) == 0) {
            int len = snprintf(text, sizeof(text), "qwen tenant\n%s\n%zu\n%zu", execution, n, i);
            if (gnutls_hmac_fast(GNUTLS_MAC_SHA256, q->config.secret, sizeof(q->config.secret),
                                 text, (size_t)len, stream) < 0)
                abort();
        }
        tenant[i] = (char)((unsigned char)tenant[i] ^ stream[i % sizeof(stream)]);
    }
}

void image_name(const struct qwen *q, const char *tenant, const char *execution, size_t n,
                const char *mime, struct buf *ret)
{
    char signature[2 * SIGNATURE + 1], masked[TENANT_MAX] = "", digits[2 * TENANT_MAX + 1];

    sign(q, tenant, execution, n, signature);
    buf_printf(ret, "%s-%zu-%s-", execution, n, signature);
    memcpy(masked, tenant, strnlen(tenant, TENANT_MAX - 1));
    mask(q, execution, n, masked);
    hex_print(digits, masked, TENANT_MAX);
    buf_printf(ret, "%s.%s", digits, suffix_of(mime));
}

/* --- and back --- */

struct image_request {
    struct request *r; /* borrowed: outlives us */
    size_t n;
    json_t *text; /* owned */
    const char *mime;
    char *bytes; /* owned, or NULL */
    size_t size;
};

static void image_request_free(void *arg)
{
    struct image_request *m = arg;

    json_decref(m->text);
    free(m->bytes);
    free(m);
}

static void no_image(struct request *r)
{
    answer_fail(r, 404, "not_found", NULL, "there is no such image, or no more");
}

char *image_bytes(const json_t *image, const char *mime, size_t *ret_n)
{
    struct str text = json_view(image);
    AUTO_FREE char *bytes = mem_zalloc(text.n + 1);

    *ret_n = text.n;
    if (strcmp(mime, "image/svg+xml") == 0)
        memcpy(bytes, text.p, text.n);
    else if (!base64_decode(text, bytes, ret_n))
        return NULL;
    return take_ptr(&bytes);
}

static void decode(void *arg)
{
    struct image_request *m = arg;

    m->bytes = image_bytes(m->text, m->mime, &m->size);
}

static void on_decoded(void *arg)
{
    struct image_request *m = arg;

    if (!m->bytes) {
        no_image(m->r);
        return;
    }
    answer_header(m->r, "cache-control", "private, max-age=86400, immutable");
    answer_header(m->r, "x-content-type-options", "nosniff");
    answer_header(m->r, "content-security-policy", "default-src 'none'; sandbox"); /* of an SVG */
    answer_text(m->r, 200, m->mime, (struct str){m->bytes, m->size});
}

static void on_record(void *arg, const struct exec_info *info, const struct err *failed)
{
    struct image_request *m = arg;
    const json_t *image = failed ? NULL : events_image(info->events, m->n, &m->mime);

    if (!image) {
        no_image(m->r);
        return;
    }
    m->text = json_incref((json_t *)image);
    service_work(request_service(m->r), decode, on_decoded, m);
}

static bool unhex(const char *text, char ret[TENANT_MAX])
{
    if (strspn(text, "0123456789abcdef") != 2 * TENANT_MAX || text[2 * TENANT_MAX] != '.')
        return false;
    for (size_t i = 0; i < TENANT_MAX; i++)
        ret[i] = (char)(hex_digit(text[2 * i]) << 4 | hex_digit(text[2 * i + 1]));
    return true;
}

/* False: it is none that we have made. */
static bool name_read(const struct qwen *q, struct str name, struct caller *ret_caller,
                      char ret_execution[ID_MAX], size_t *ret_n)
{
    char text[512], given[2 * SIGNATURE + 1], made[2 * SIGNATURE + 1];
    int at = 0;

    if (!str_to_cstr(name, text, sizeof(text)) ||
        /* NOLINTNEXTLINE(cert-err34-c): five digits always fit */
        sscanf(text, "%39[a-z0-9_]-%5zu-%32[0-9a-f]-%n", ret_execution, ret_n, given, &at) != 3 ||
        at == 0 || !id_is(str_of(ret_execution), "exec_") ||
        strlen(given) != 2 * (size_t)SIGNATURE || !unhex(text + at, ret_caller->tenant))
        return false;
    mask(q, ret_execution, *ret_n, ret_caller->tenant);
    if (!memchr(ret_caller->tenant, '\0', TENANT_MAX))
        return false;
    sign(q, ret_caller->tenant, ret_execution, *ret_n, made);
    return gnutls_memcmp(given, made, 2 * (size_t)SIGNATURE) == 0;
}

void handle_static(struct request *r)
{
    struct image_request *m = mem_zalloc(sizeof(*m));
    struct caller caller = {.door = "qwen"};
    char execution[ID_MAX];

    m->r = r;
    request_keep(r, image_request_free, m);
    if (name_read(request_ctx(r), request_path(r, "name"), &caller, execution, &m->n))
        service_exec_get(request_service(r), &caller, str_of(execution), on_record, m);
    else
        no_image(r);
}
