"""Binds the root, or a part of it, to a second place to get rid of what covers it.

Refused by seccomp.
"""

GUEST = """
MS_BIND, MS_REC, MS_MOVE, MS_PRIVATE, MS_SHARED = 4096, 16384, 8192, 1 << 18, 1 << 20
os.mkdir("/tmp/here")
report(
    bind=syscall("mount", b"/", b"/tmp/here", 0, MS_BIND, 0),
    recursive=syscall("mount", b"/", b"/tmp/here", 0, MS_BIND | MS_REC, 0),
    move=syscall("mount", b"/workspace", b"/tmp/here", 0, MS_MOVE, 0),
    private=syscall("mount", b"none", b"/", 0, MS_PRIVATE | MS_REC, 0),
    shared=syscall("mount", b"none", b"/", 0, MS_SHARED | MS_REC, 0),
)
"""

EXPECT = {
    "bind": "EPERM",
    "recursive": "EPERM",
    "move": "EPERM",
    "private": "EPERM",
    "shared": "EPERM",
}
