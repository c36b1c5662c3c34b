"""Enters a namespace it holds a descriptor of, its own to begin with.

Refused by seccomp: whoever may call setns() only lacks the right descriptor.
"""

GUEST = """
found = {}
for kind in "user", "mnt", "pid", "net", "ipc", "uts", "cgroup", "time":
    fd = os.open("/proc/self/ns/" + kind, os.O_RDONLY)
    found[kind] = syscall("setns", fd, 0)
report(**found)
"""

EXPECT = {k: "EPERM" for k in ("user", "mnt", "pid", "net", "ipc", "uts", "cgroup", "time")}
