"""Mounts a file system of its own over a directory it may write to.

Refused by seccomp; below it, by the missing capability.
"""

GUEST = """
os.mkdir("/tmp/here")
report(
    tmpfs=syscall("mount", b"none", b"/tmp/here", b"tmpfs", 0, 0),
    ramfs=syscall("mount", b"none", b"/tmp/here", b"ramfs", 0, 0),
    flags_in_high_bits=syscall("mount", b"none", b"/tmp/here", b"tmpfs", 1 << 32, 0),
)
"""

EXPECT = {"tmpfs": "EPERM", "ramfs": "EPERM", "flags_in_high_bits": "EPERM"}
