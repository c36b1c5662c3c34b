"""Holds the kernel at a page fault for as long as a race needs.

Refused by seccomp; the device of the same use is not in /dev.
"""

GUEST = """
UFFD_USER_MODE_ONLY = 1
report(
    plain=syscall("userfaultfd", 0),
    user=syscall("userfaultfd", UFFD_USER_MODE_ONLY),
    device=reopen("/dev/userfaultfd", os.O_RDWR),
)
"""

EXPECT = {"plain": "EPERM", "user": "EPERM", "device": "ENOENT"}
