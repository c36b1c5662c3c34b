"""Reads the keys of the session that started it: keyrings are not part of any namespace
(CVE-2016-0728).

Refused by seccomp.
"""

GUEST = """
GET_KEYRING_ID, JOIN_SESSION, DESCRIBE, READ = 0, 1, 6, 11
report(
    session=syscall("keyctl", GET_KEYRING_ID, -3, 0),
    user=syscall("keyctl", GET_KEYRING_ID, -4, 0),
    join=syscall("keyctl", JOIN_SESSION, 0),
    describe=syscall("keyctl", DESCRIBE, -3, 0, 0),
    read=syscall("keyctl", READ, -3, 0, 0),
    add=syscall("add_key", b"user", b"x", b"data", 4, -3),
    request=syscall("request_key", b"user", b"x", 0, 0),
)
"""

EXPECT = {k: "EPERM" for k in ("session", "user", "join", "describe", "read", "add", "request")}
