"""Has the kernel encrypt over the pages of a file it may only read (CVE-2026-31431, "Copy Fail").

Refused by seccomp: the family that this goes through does not exist in here.
"""

GUEST = """
AF_ALG = 38
report(
    open=syscall("socket", AF_ALG, 5, 0),
    flags=syscall("socket", AF_ALG, 5 | 0o2000000, 0),
    library=attempt(socket.socket, AF_ALG, socket.SOCK_SEQPACKET, 0),
)
"""

EXPECT = {"open": "EAFNOSUPPORT", "flags": "EAFNOSUPPORT", "library": "EAFNOSUPPORT"}
