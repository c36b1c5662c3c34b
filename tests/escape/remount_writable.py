"""Remounts the read-only system writable, whole or by its bind mounts.

Refused by seccomp; the flags are also locked by the user namespace that owns the mounts.
"""

GUEST = """
MS_REMOUNT, MS_BIND = 32, 4096
found = {}
for path in "/", "/usr", "/proc", "/dev", "/etc":
    found[path] = [
        syscall("mount", b"none", path.encode(), 0, MS_REMOUNT | MS_BIND, 0),
        syscall("mount", b"none", path.encode(), 0, MS_REMOUNT, 0),
    ]
report(**found)
"""

EXPECT = {p: ["EPERM", "EPERM"] for p in ("/", "/usr", "/proc", "/dev", "/etc")}
