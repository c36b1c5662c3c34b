/* Names and addresses of hosts, and the lists of them that an operator writes. */
#include "fetch/fetch.h"

#include <arpa/inet.h>
#include <stdlib.h>

#define LIST_MAX 1024 /* words */

enum word_kind { WORD_ANY, WORD_NAME, WORD_BELOW, WORD_ADDRESS };

struct word {
    enum word_kind kind;
    struct host host; /* BELOW: what comes after "*." */
    unsigned bits;    /* ADDRESS */
    uint16_t port;    /* 0: see web_only */
};

struct host_list {
    struct word *words; /* owned */
    size_t count;
    bool web_only;
};

/* --- one host --- */

static void map4(const void *four, struct in6_addr *ret)
{
    *ret = (struct in6_addr){
        .s6_addr = {[10] = 0xff, 0xff}
    };
    memcpy(ret->s6_addr + 12, four, 4);
}

static bool parse_address(struct str text, struct in6_addr *ret)
{
    char copy[INET6_ADDRSTRLEN];
    struct in_addr four;

    if (!str_to_cstr(text, copy, sizeof(copy)))
        return false;
    if (inet_pton(AF_INET, copy, &four) == 1) {
        map4(&four, ret);
        return true;
    }
    return inet_pton(AF_INET6, copy, ret) == 1;
}

/* inet_aton() and with it getaddrinfo() take 127.1 and 0x7f for addresses. */
static bool ends_in_number(const char *name)
{
    const char *dot = strrchr(name, '.');
    const char *label = dot ? dot + 1 : name;

    if (label[0] == '0' && label[1] == 'x')
        return true;
    return label[strspn(label, "0123456789")] == '\0';
}

static bool parse_name(struct str text, char *ret)
{
    size_t label = 0;

    if (text.n > 1 && text.p[text.n - 1] == '.')
        text.n--;
    if (text.n == 0 || text.n > HOST_NAME_MAX_BYTES)
        return false;
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        if (c >= 'A' && c <= 'Z')
            c = (char)(c | 0x20);
        bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
        if (c == '.' ? label == 0 : !plain || label == 63)
            return false;
        label = c == '.' ? 0 : label + 1;
        ret[i] = c;
    }
    ret[text.n] = '\0';
    return label > 0 && !ends_in_number(ret);
}

bool host_parse(struct str text, struct host *ret)
{
    bool bracketed = text.n >= 2 && text.p[0] == '[' && text.p[text.n - 1] == ']';

    *ret = (struct host){0};
    if (bracketed)
        text = (struct str){text.p + 1, text.n - 2};
    ret->is_address = parse_address(text, &ret->address);
    if (ret->is_address)
        return !bracketed || memchr(text.p, ':', text.n);
    return !bracketed && parse_name(text, ret->name);
}

static bool parse_number(struct str s, unsigned long max, unsigned long *ret)
{
    unsigned long n = 0;

    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] < '0' || s.p[i] > '9' || n > max)
            return false;
        n = n * 10 + (unsigned long)(s.p[i] - '0');
    }
    *ret = n;
    return s.n > 0 && n <= max;
}

bool host_port_split(struct str text, struct str *ret_host, uint16_t *ret_port)
{
    const char *first, *last;
    bool bracketed;
    unsigned long port;

    *ret_host = text;
    *ret_port = 0;
    if (text.n == 0)
        return false;
    first = memchr(text.p, ':', text.n);
    last = memrchr(text.p, ':', text.n);
    bracketed = text.p[0] == '[';
    /* "[::1]" and "::1" end in no port. */
    if (!last || (bracketed ? text.p[text.n - 1] == ']' : first != last))
        return true;
    *ret_host = (struct str){text.p, (size_t)(last - text.p)};
    if (ret_host->n == 0 || (bracketed && last[-1] != ']'))
        return false;
    if (!parse_number((struct str){last + 1, text.n - ret_host->n - 1}, UINT16_MAX, &port))
        return false;
    *ret_port = (uint16_t)port;
    return port > 0;
}

/* --- lists --- */

/* "10.0.0.0/8". Bits beyond the prefix must be zero: 10.0.0.1/8 is more likely a slip. */
static bool parse_prefix(struct str text, const char *slash, struct word *w)
{
    struct str address = {text.p, (size_t)(slash - text.p)};
    unsigned long bits;
    bool is4 = memchr(address.p, '.', address.n) && !memchr(address.p, ':', address.n);
    struct str digits = {slash + 1, text.n - address.n - 1};

    w->kind = WORD_ADDRESS;
    w->host.is_address = true;
    if (!parse_address(address, &w->host.address) || !parse_number(digits, is4 ? 32 : 128, &bits))
        return false;
    w->bits = (unsigned)bits + (is4 ? 96 : 0);
    for (unsigned i = w->bits; i < 128; i++)
        if (w->host.address.s6_addr[i / 8] & (0x80 >> i % 8))
            return false;
    return true;
}

static bool parse_word(struct str text, struct word *w)
{
    const char *slash = memchr(text.p, '/', text.n);
    struct str host;

    *w = (struct word){.bits = 128};
    if (slash)
        return parse_prefix(text, slash, w);
    if (!host_port_split(text, &host, &w->port))
        return false;
    if (str_is(host, "*")) {
        w->kind = WORD_ANY;
        return true;
    }
    if (host.n > 2 && memcmp(host.p, "*.", 2) == 0) {
        w->kind = WORD_BELOW;
        return host_parse((struct str){host.p + 2, host.n - 2}, &w->host) && !w->host.is_address;
    }
    if (!host_parse(host, &w->host))
        return false;
    w->kind = w->host.is_address ? WORD_ADDRESS : WORD_NAME;
    return true;
}

struct host_list *host_list_new(const char *words, struct err *e)
{
    static const char blanks[] = ", \t\r\n";
    struct host_list *l = mem_zalloc(sizeof(*l));
    size_t n;

    for (words = words ? words : ""; *(words += strspn(words, blanks)); words += n) {
        n = strcspn(words, blanks);
        l->words = mem_realloc(l->words, (l->count + 1) * sizeof(*l->words));
        if (parse_word((struct str){words, n}, &l->words[l->count++]) && l->count <= LIST_MAX)
            continue;
        if (l->count > LIST_MAX)
            err_set(e, ERR_CALLER, "the list of hosts has more than %d words", LIST_MAX);
        else
            err_set(e, ERR_CALLER, "'%.*s' is not a host, a host with a port, or a network",
                    (int)(n < 300 ? n : 300), words);
        host_list_free(l);
        return NULL;
    }
    return l;
}

void host_list_free(struct host_list *l)
{
    if (l)
        free(l->words);
    free(l);
}

void host_list_set_web_only(struct host_list *l)
{
    l->web_only = true;
}

static bool in_prefix(const struct in6_addr *a, const struct word *w)
{
    unsigned rest = w->bits % 8, whole = w->bits / 8;
    const uint8_t *want = w->host.address.s6_addr;

    if (memcmp(a->s6_addr, want, whole) != 0)
        return false;
    return rest == 0 || (a->s6_addr[whole] ^ want[whole]) >> (8 - rest) == 0;
}

static bool is_below(const char *name, const char *parent)
{
    size_t n = strlen(name), p = strlen(parent);

    return n > p + 1 && name[n - p - 1] == '.' && strcmp(name + n - p, parent) == 0;
}

static bool word_has(const struct word *w, const struct host *h)
{
    switch (w->kind) {
    case WORD_ANY:
        return true;
    case WORD_NAME:
        return !h->is_address && strcmp(h->name, w->host.name) == 0;
    case WORD_BELOW:
        return !h->is_address && is_below(h->name, w->host.name);
    case WORD_ADDRESS:
        return h->is_address && in_prefix(&h->address, w);
    }
    return false;
}

static bool word_has_port(const struct host_list *l, const struct word *w, uint16_t port)
{
    if (w->port)
        return w->port == port;
    return !l->web_only || port == 80 || port == 443;
}

bool host_list_has(const struct host_list *l, const struct host *h, uint16_t port)
{
    for (size_t i = 0; i < l->count; i++)
        if (word_has(&l->words[i], h) && word_has_port(l, &l->words[i], port))
            return true;
    return false;
}

bool host_list_has_address(const struct host_list *l, const struct sockaddr *a)
{
    const struct sockaddr_in *in4 = (const struct sockaddr_in *)a;
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)a;
    struct host h = {.is_address = true};
    uint16_t port = ntohs(a->sa_family == AF_INET ? in4->sin_port : in6->sin6_port);

    if (a->sa_family == AF_INET)
        map4(&in4->sin_addr, &h.address);
    else if (a->sa_family == AF_INET6)
        h.address = in6->sin6_addr;
    else
        return false;
    for (size_t i = 0; i < l->count; i++)
        if (l->words[i].kind == WORD_ADDRESS && word_has(&l->words[i], &h) &&
            word_has_port(l, &l->words[i], port))
            return true;
    return false;
}
