"""Starves init, whose watch is what holds memory where there is no cgroup: idle class, lowest
priority, one processor, idle I/O.

As root init has another uid; rootless it has the same, and seccomp refuses what is meant for it.
"""

GUEST = """
SCHED_IDLE, SCHED_BATCH = 5, 3
none = ctypes.create_string_buffer(4)
idle = ctypes.create_string_buffer(struct.pack("<IIQiIQQQ", 48, SCHED_IDLE, 0, 0, 0, 0, 0, 0))
mask = ctypes.create_string_buffer(struct.pack("<Q", 1))
report(
    idle=syscall("sched_setscheduler", 1, SCHED_IDLE, none),
    batch=syscall("sched_setscheduler", 1, SCHED_BATCH, none),
    attr=syscall("sched_setattr", 1, idle, 0),
    param=syscall("sched_setparam", 1, none),
    nice=syscall("setpriority", 0, 1, 19),
    user=syscall("setpriority", 2, 0, 19),
    processor=syscall("sched_setaffinity", 1, 8, mask),
    io=syscall("ioprio_set", 1, 1, 3 << 13),
    io_user=syscall("ioprio_set", 3, 0, 3 << 13),
)
"""

EXPECT = {
    k: "EPERM"
    for k in ("idle", "batch", "attr", "param", "nice", "user", "processor", "io", "io_user")
}
