"""Learns when the host was started, which tells machines apart and what was mended since.

By the file, by each clock that counts from then, by the time at which a process began, and by
sysinfo(). All of them count from the start of the pool.
"""

import time

from outside import cell, holds

GUEST = """
CLOCKS = ["MONOTONIC", "MONOTONIC_RAW", "BOOTTIME"]
COARSE, BOOTTIME_ALARM = 6, 9
info = ctypes.create_string_buffer(512)
raw(__import__("platform").machine() == "aarch64" and 179 or 99, info)
words = open("/proc/self/stat").read().rsplit(") ", 1)[1].split()
stat = dict(l.split()[:2] for l in open("/proc/stat") if not l.startswith("cpu"))
report(
    seconds={
        **{n: time.clock_gettime(getattr(time, "CLOCK_" + n)) for n in CLOCKS},
        "COARSE": time.clock_gettime(COARSE),
        "uptime": float(open("/proc/uptime").read().split()[0]),
        "idle": float(open("/proc/uptime").read().split()[1]),
        "sysinfo": struct.unpack_from("<q", info)[0],
        "began": int(words[19]) / os.sysconf("SC_CLK_TCK"),
        "btime": time.time() - int(stat["btime"]),
    },
)
"""


def check(box):
    before = time.clock_gettime(time.CLOCK_BOOTTIME)
    said = box.ok(box.run(cell(GUEST), alone=True))["seconds"]
    passed = time.clock_gettime(time.CLOCK_BOOTTIME) - before
    wrong = {n: s for n, s in said.items() if not 0 <= s <= passed + 3}
    holds(not wrong, f"{passed:.1f} s after the start of the pool these tell: {wrong}")
