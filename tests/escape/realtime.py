"""Takes the processor for itself: real-time and deadline scheduling, negative niceness, I/O class.

All need a capability or a limit above zero.
"""

GUEST = """
param = ctypes.create_string_buffer(struct.pack("<i", 1))
deadline = ctypes.create_string_buffer(
    struct.pack("<IIQiIQQQ", 48, 6, 0, 0, 0, 10**6, 10**7, 10**7)
)
IOPRIO_RT = 1 << 13
report(
    fifo=syscall("sched_setscheduler", 0, 1, param),
    rr=syscall("sched_setscheduler", 0, 2, param),
    deadline=syscall("sched_setattr", 0, deadline, 0),
    nice=attempt(os.nice, -5),
    priority=syscall("setpriority", 0, 0, -20),
    io=syscall("ioprio_set", 1, 0, IOPRIO_RT),
)
"""

EXPECT = {
    "fifo": "EPERM",
    "rr": "EPERM",
    "deadline": "EPERM",
    "nice": "EPERM",
    "priority": "EACCES",
    "io": "EPERM",
}
