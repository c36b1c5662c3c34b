"""Enters the namespaces of another process by a pidfd, the way nsenter does since Linux 5.8.

Refused by seccomp.
"""

GUEST = """
parent, _ = raw("pidfd_open", os.getppid(), 0)
first, _ = raw("pidfd_open", 1, 0)
report(
    parent=syscall("setns", parent, 0x20000 | 0x40000000),
    init=syscall("setns", first, 0x10000000),
    no_fd=syscall("setns", -1, 0x20000),
)
"""

EXPECT = {"parent": "EPERM", "init": "EPERM", "no_fd": "EPERM"}
