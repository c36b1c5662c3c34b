"""Speaks to the kernel's network configuration: most of the reachable kernel bugs of the last years
are behind it (CVE-2023-32233, CVE-2024-1086, CVE-2022-34918).

Refused by seccomp, which lists the families that exist in here.
"""

GUEST = """
AF_NETLINK = 16
report(
    every=sorted(
        {syscall("socket", AF_NETLINK, kind, protocol) for kind in (2, 3) for protocol in range(23)}
    ),
    flags=syscall("socket", AF_NETLINK, 3 | 0o2000000 | 0o4000, 12),
    high_bits=syscall("socket", AF_NETLINK | 1 << 32, 3, 0),
    library=attempt(socket.socket, AF_NETLINK, socket.SOCK_RAW, 0),
)
"""

EXPECT = {
    "every": ["EAFNOSUPPORT"],
    "flags": "EAFNOSUPPORT",
    "high_bits": "EAFNOSUPPORT",
    "library": "EAFNOSUPPORT",
}
