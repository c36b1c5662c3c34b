/*
 * Names for the drivers of fetch and egress: what ends in .test is looked up here,
 * by libcurl too, as a program is searched for symbols before its libraries.
 *
 *   slow.test   127.0.0.1 after three seconds
 *   both.test   10.255.255.1, then 127.0.0.1
 *   next.test   127.0.0.2, then 127.0.0.1
 *   none.test   no address
 *   any other   127.0.0.1
 */
#include "base/base.h"

#include <dlfcn.h>
#include <netdb.h>
#include <unistd.h>

typedef int lookup_fn(const char *, const char *, const struct addrinfo *, struct addrinfo **);

static int real(const char *host, const char *port, const struct addrinfo *hints,
                struct addrinfo **ret)
{
    lookup_fn *fn;

    *(void **)&fn = dlsym(RTLD_NEXT, "getaddrinfo");
    return fn(host, port, hints, ret);
}

static int literal(const char *address, const char *port, struct addrinfo **ret)
{
    struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
                             .ai_socktype = SOCK_STREAM};

    return real(address, port, &hints, ret);
}

/* freeaddrinfo() frees each element of a list by itself, so two lists may be joined. */
static int two(const char *first, const char *port, struct addrinfo **ret)
{
    int rc = literal(first, port, ret);

    return rc ? rc : literal("127.0.0.1", port, &(*ret)->ai_next);
}

int getaddrinfo(const char *host, const char *port, const struct addrinfo *hints,
                struct addrinfo **ret)
{
    size_t n = host ? strlen(host) : 0;

    if (n < 5 || strcmp(host + n - 5, ".test") != 0)
        return real(host, port, hints, ret);
    if (strcmp(host, "none.test") == 0)
        return EAI_NONAME;
    if (strcmp(host, "both.test") == 0)
        return two("10.255.255.1", port, ret);
    if (strcmp(host, "next.test") == 0)
        return two("127.0.0.2", port, ret);
    if (strcmp(host, "slow.test") == 0)
        sleep(3);
    return literal("127.0.0.1", port, ret);
}
