"""Writes its own IP headers, and pings.

Refused by seccomp: of the internet families there is TCP and UDP.
"""

GUEST = """
ICMP, ICMPV6, RAW = 1, 58, 255
report(
    raw4=syscall("socket", 2, 3, RAW),
    raw6=syscall("socket", 10, 3, RAW),
    icmp=syscall("socket", 2, 3, ICMP),
    flags=syscall("socket", 2, 3 | 0o2000000, RAW),
    ping4=syscall("socket", 2, 2, ICMP),
    ping6=syscall("socket", 10, 2, ICMPV6),
    tcp=syscall("socket", 2, 1, 0),
    udp=syscall("socket", 2, 2, 17),
)
"""

EXPECT = {
    "raw4": "EPERM",
    "raw6": "EPERM",
    "icmp": "EPERM",
    "flags": "EPERM",
    "ping4": "ENOSYS",
    "ping6": "ENOSYS",
    "tcp": "ok",
    "udp": "ok",
}
