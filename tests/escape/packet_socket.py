"""Listens to and forges whole frames (CVE-2017-7308, CVE-2020-14386), also by the old name of the
family.

Refused by seccomp: SOCK_PACKET below AF_INET is turned into AF_PACKET by the kernel.
"""

GUEST = """
AF_PACKET, SOCK_PACKET = 17, 10
report(
    raw=syscall("socket", AF_PACKET, 3, 0x0300),
    dgram=syscall("socket", AF_PACKET, 2, 0x0300),
    old=syscall("socket", AF_PACKET, SOCK_PACKET, 0x0300),
    renamed=syscall("socket", 2, SOCK_PACKET, 0x0300),
    renamed6=syscall("socket", 10, SOCK_PACKET, 0x0300),
)
"""

EXPECT = {
    "raw": "EAFNOSUPPORT",
    "dgram": "EAFNOSUPPORT",
    "old": "EAFNOSUPPORT",
    "renamed": "ENOSYS",
    "renamed6": "ENOSYS",
}
