"""Watches what the host does: memory, disks, interrupts, scheduling, pressure, of all sessions.

Another session's work shows in each of these, to the microsecond. None of them is there.
"""

PATHS = [
    "vmstat", "diskstats", "interrupts", "softirqs", "schedstat", "zoneinfo", "buddyinfo",
    "pagetypeinfo", "slabinfo", "vmallocinfo", "timer_list", "kpagecount", "kpageflags",
    "kpagecgroup", "pressure/cpu", "pressure/memory", "pressure/io", "sys/fs/file-nr",
    "sys/fs/inode-nr", "sys/fs/dentry-state", "sys/kernel/random/entropy_avail", "sysvipc/shm",
    "latency_stats", "lock_stat", "sched_debug", "allocinfo", "dynamic_debug/control",
]

GUEST = f"""
others = {{"self", "thread-self"}}
report(
    answers={{p: reopen("/proc/" + p, os.O_RDONLY) for p in {PATHS!r}}},
    listed=[n for n in os.listdir("/proc") if not n.isdigit() and n not in others],
)
"""

EXPECT = {"answers": {p: "ENOENT" for p in PATHS}, "listed": []}
