"""Attaches to init, or to its own parent, and takes it over.

Refused by seccomp for every request (the oldest hole here is CVE-2019-13272).
"""

GUEST = """
PTRACE_ATTACH, PTRACE_SEIZE, PTRACE_PEEKDATA = 16, 0x4206, 2
report(
    attach=syscall("ptrace", PTRACE_ATTACH, 1, 0, 0),
    seize=syscall("ptrace", PTRACE_SEIZE, os.getppid(), 0, 0),
    peek=syscall("ptrace", PTRACE_PEEKDATA, 1, 0, 0),
)
"""

EXPECT = {"attach": "EPERM", "seize": "EPERM", "peek": "EPERM"}
