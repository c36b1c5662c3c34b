"""Turns the host's clock, which every log line and certificate check believes.

Refused by seccomp. The times asked for are the current ones.
"""

GUEST = """
now = ctypes.create_string_buffer(struct.pack("<qq", int(time.time()), 0))
ADJ_TICK, ADJ_FREQUENCY = 0x4000, 2
slower = ctypes.create_string_buffer(struct.pack("<Iiqq", ADJ_FREQUENCY, 0, 0, 0) + bytes(208))
report(
    clock=syscall("clock_settime", 0, now),
    day=syscall("settimeofday", now, 0),
    adjust=syscall("adjtimex", slower),
    clock_adjust=syscall("clock_adjtime", 0, slower),
    rtc=reopen("/dev/rtc0", os.O_RDWR),
)
"""

EXPECT = {
    "clock": "EPERM",
    "day": "EPERM",
    "adjust": "EPERM",
    "clock_adjust": "EPERM",
    "rtc": "ENOENT",
}
