"""Becomes root, or anyone else, inside the sandbox.

Refused by seccomp to everything init starts; init itself needs the calls to start them.
"""

GUEST = """
report(
    setuid=syscall("setuid", 0),
    setgid=syscall("setgid", 0),
    setresuid=syscall("setresuid", 0, 0, 0),
    setresgid=syscall("setresgid", 0, 0, 0),
    saved=syscall("setresuid", -1, -1, 0),
    groups=syscall("setgroups", 1, ctypes.create_string_buffer(4)),
    nobody=syscall("setresuid", 65534, 65534, 65534),
    chown=attempt(lambda: (open("/workspace/f", "w"), os.chown("/workspace/f", 0, 0))),
    ids=list(os.getresuid()) + list(os.getresgid()),
)
"""

EXPECT = {
    "setuid": "EPERM",
    "setgid": "EPERM",
    "setresuid": "EPERM",
    "setresgid": "EPERM",
    "saved": "EPERM",
    "groups": "EPERM",
    "nobody": "EPERM",
    "chown": ("EPERM", "EINVAL"),
    "ids": [1000] * 6,
}
