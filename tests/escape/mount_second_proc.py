"""Mounts a proc or sysfs of its own, writable where the one it was given is not.

A mount over /proc is also how the masked paths of runc were walked around (CVE-2025-52881).
Refused by seccomp.
"""

GUEST = """
os.mkdir("/tmp/here")
report(
    proc=syscall("mount", b"proc", b"/tmp/here", b"proc", 0, 0),
    over=syscall("mount", b"proc", b"/proc", b"proc", 0, 0),
    hide=syscall("mount", b"none", b"/proc", b"tmpfs", 0, 0),
    sysfs=syscall("mount", b"sysfs", b"/tmp/here", b"sysfs", 0, 0),
    devpts=syscall("mount", b"devpts", b"/tmp/here", b"devpts", 0, b"newinstance"),
    mqueue=syscall("mount", b"mqueue", b"/tmp/here", b"mqueue", 0, 0),
)
"""

EXPECT = {k: "EPERM" for k in ("proc", "over", "hide", "sysfs", "devpts", "mqueue")}
