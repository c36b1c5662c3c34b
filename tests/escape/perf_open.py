"""Counts events of its own process through perf, which has a long record of escapes.

Refused by seccomp.
"""

GUEST = """
PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK = 1, 0
attr = ctypes.create_string_buffer(
    struct.pack("<IIQ", PERF_TYPE_SOFTWARE, 112, PERF_COUNT_SW_CPU_CLOCK) + bytes(96)
)
report(
    own=syscall("perf_event_open", attr, 0, -1, -1, 0),
    all=syscall("perf_event_open", attr, -1, 0, -1, 0),
)
"""

EXPECT = {"own": "EPERM", "all": "EPERM"}
