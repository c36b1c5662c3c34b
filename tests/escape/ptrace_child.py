"""Traces a child of its own to change its system calls after the filter has looked at them.

Refused by seccomp, to the tracer and to the one who asks to be traced.
"""

GUEST = """
PTRACE_TRACEME, PTRACE_ATTACH, PTRACE_SEIZE = 0, 16, 0x4206
sleeper = subprocess.Popen(["sleep", "5"])
traceme = child(lambda: raw("ptrace", PTRACE_TRACEME, 0, 0, 0)[1])
report(
    traceme=name_of(traceme),
    attach=syscall("ptrace", PTRACE_ATTACH, sleeper.pid, 0, 0),
    seize=syscall("ptrace", PTRACE_SEIZE, sleeper.pid, 0, 0),
)
sleeper.kill()
"""

EXPECT = {"traceme": "EPERM", "attach": "EPERM", "seize": "EPERM"}
