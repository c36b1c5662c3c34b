/*
 * Hosts as strangers and operators write them: a host that is accepted is accepted
 * in its own spelling, and a list has the hosts that its words are.
 *
 * links: src/fetch/hosts.c
 */
#include "fetch/fetch.h"

#include "support/fuzz.h"

static void check_host(struct str text)
{
    struct host h, again;
    struct host_list *l;
    struct err e;

    if (!host_parse(text, &h))
        return;
    EXPECT(h.is_address == (h.name[0] == '\0'));
    if (h.is_address)
        return;
    EXPECT(strspn(h.name, "abcdefghijklmnopqrstuvwxyz0123456789.-_") == strlen(h.name));
    EXPECT(host_parse(str_of(h.name), &again) && strcmp(again.name, h.name) == 0);
    l = host_list_new(h.name, &e);
    EXPECT(l && host_list_has(l, &h, 80));
    host_list_free(l);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = {(const char *)data, size}, host;
    char words[512];
    struct host_list *l;
    struct err e = {0};
    uint16_t port;

    check_host(text);
    if (host_port_split(text, &host, &port)) {
        EXPECT(host.n > 0 && host.p == text.p && host.n <= text.n);
        check_host(host);
    }
    if (!str_to_cstr(text, words, sizeof(words)))
        return 0;
    l = host_list_new(words, &e);
    EXPECT(l || (e.kind == ERR_CALLER && strlen(e.text) > 0));
    host_list_free(l);
    return 0;
}
