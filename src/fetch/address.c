/*
 * Which addresses a stranger may make us dial. The check always takes the address in the socket
 * call, so no way of writing it (hex, octal, a zone, a name that changes its mind) gets past
 * this table.
 */
#include "fetch/fetch.h"

#include <arpa/inet.h>

enum verdict { REFUSED, PUBLIC, INSIDE };

struct address_row {
    uint8_t prefix[16];
    uint8_t bits;
    enum verdict verdict;
    uint8_t at; /* INSIDE: where the IPv4 address stands */
    const char *what;
};

/* First match decides; what no row has is refused. */
static const struct address_row rows4[] = {
    {{0},                8,  REFUSED, 0, "this network, RFC 1122 3.2.1.3"       },
    {{10},               8,  REFUSED, 0, "private, RFC 1918"                    },
    {{100, 64},          10, REFUSED, 0, "carrier-grade NAT, RFC 6598"          },
    {{127},              8,  REFUSED, 0, "loopback, RFC 1122 3.2.1.3"           },
    {{168, 63, 129, 16}, 32, REFUSED, 0, "Azure's platform services, metadata"  },
    {{169, 254},         16, REFUSED, 0, "link-local and metadata, RFC 3927"    },
    {{172, 16},          12, REFUSED, 0, "private, RFC 1918"                    },
    {{192, 0, 0},        24, REFUSED, 0, "protocol assignments, RFC 6890"       },
    {{192, 0, 2},        24, REFUSED, 0, "documentation, RFC 5737"              },
    {{192, 88, 99},      24, REFUSED, 0, "6to4 relays, RFC 7526"                },
    {{192, 168},         16, REFUSED, 0, "private, RFC 1918"                    },
    {{198, 18},          15, REFUSED, 0, "benchmarks, RFC 2544"                 },
    {{198, 51, 100},     24, REFUSED, 0, "documentation, RFC 5737"              },
    {{203, 0, 113},      24, REFUSED, 0, "documentation, RFC 5737"              },
    {{224},              4,  REFUSED, 0, "multicast, RFC 5771"                  },
    {{240},              4,  REFUSED, 0, "reserved and broadcast, RFC 1112, 919"},
    {{0},                0,  PUBLIC,  0, "the rest"                             },
};
static const struct address_row rows6[] = {
    {{[10] = 0xff, 0xff},      96, INSIDE,  12, "IPv4-mapped, RFC 4291"                 },
    {{0, 0x64, 0xff, 0x9b},    96, INSIDE,  12, "NAT64, RFC 6052"                       },
    {{0},                      8,  REFUSED, 0,  "::, ::1, ::a.b.c.d, RFC 4291; RFC 8215"},
    {{0x01},                   64, REFUSED, 0,  "discard-only, RFC 6666"                },
    {{0x20, 0x01},             23, REFUSED, 0,  "Teredo and more, RFC 4380, RFC 2928"   },
    {{0x20, 0x01, 0x0d, 0xb8}, 32, REFUSED, 0,  "documentation, RFC 3849"               },
    {{0x20, 0x02},             16, INSIDE,  2,  "6to4, RFC 3056"                        },
    {{0x3f, 0xff},             20, REFUSED, 0,  "documentation, RFC 9637"               },
    {{0x5f},                   16, REFUSED, 0,  "segment routing, RFC 9602"             },
    {{0xfc},                   7,  REFUSED, 0,  "unique local, RFC 4193"                },
    {{0xfe, 0x80},             10, REFUSED, 0,  "link-local, RFC 4291"                  },
    {{0xfe, 0xc0},             10, REFUSED, 0,  "site-local, RFC 3879"                  },
    {{0xff},                   8,  REFUSED, 0,  "multicast, RFC 4291"                   },
    {{0x20},                   3,  PUBLIC,  0,  "global unicast, RFC 4291"              },
};

static bool has_prefix(const uint8_t *address, const uint8_t *prefix, unsigned bits)
{
    unsigned rest = bits % 8;

    if (memcmp(address, prefix, bits / 8) != 0)
        return false;
    return rest == 0 || (address[bits / 8] ^ prefix[bits / 8]) >> (8 - rest) == 0;
}

static bool is_public4(const uint8_t *address)
{
    for (size_t i = 0; i < COUNT(rows4); i++)
        if (has_prefix(address, rows4[i].prefix, rows4[i].bits))
            return rows4[i].verdict == PUBLIC;
    return false;
}

static bool is_public6(const uint8_t *address)
{
    for (size_t i = 0; i < COUNT(rows6); i++) {
        const struct address_row *r = &rows6[i];
        if (!has_prefix(address, r->prefix, r->bits))
            continue;
        return r->verdict == INSIDE ? is_public4(address + r->at) : r->verdict == PUBLIC;
    }
    return false;
}

bool address_is_public(const struct sockaddr *a)
{
    if (a->sa_family == AF_INET)
        return is_public4((const uint8_t *)&((const struct sockaddr_in *)a)->sin_addr);
    if (a->sa_family == AF_INET6)
        return is_public6(((const struct sockaddr_in6 *)a)->sin6_addr.s6_addr);
    return false;
}
