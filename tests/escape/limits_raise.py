"""Raises its own limits, and those of others.

The hard limits are those of the sandbox and need a capability to raise; other processes' are
refused by seccomp.
"""

GUEST = """
import resource

names = ("NOFILE", "NPROC", "FSIZE", "CORE", "MEMLOCK", "MSGQUEUE", "RTPRIO", "NICE", "SIGPENDING")
INFINITY = 0xFFFFFFFFFFFFFFFF
both = ctypes.create_string_buffer(struct.pack("<QQ", INFINITY, INFINITY))
raised = {n: syscall("prlimit64", 0, getattr(resource, "RLIMIT_" + n), both, 0) for n in names}
report(
    raised=sorted(set(raised.values())),
    core=list(resource.getrlimit(resource.RLIMIT_CORE)),
    init=syscall("prlimit64", 1, resource.RLIMIT_NOFILE, 0, ctypes.create_string_buffer(16)),
    init_lower=syscall("prlimit64", 1, resource.RLIMIT_NOFILE, ctypes.create_string_buffer(16), 0),
    shell=subprocess.run(["bash", "-c", "ulimit -Hn 1048576"], capture_output=True).returncode != 0,
)
"""

EXPECT = {
    "raised": ["EPERM"],
    "core": [0, 0],
    "init": "EPERM",
    "init_lower": "EPERM",
    "shell": True,
}
