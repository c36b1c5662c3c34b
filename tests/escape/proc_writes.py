"""Opens everything in /proc that is not a process for writing: sysrq, mtrr, irq, bus, scsi, kcore.

Of those that are there at all, none can be written to: /proc is mounted read-only.
"""

GUEST = """
paths = [f"/proc/{n}" for n in ("meminfo", "cpuinfo", "stat", "loadavg", "uptime", "version")]
for top, dirs, names in os.walk("/proc"):
    if top == "/proc":
        dirs[:] = [d for d in dirs if not d.isdigit() and d not in ("self", "thread-self", "sys")]
    paths += [os.path.join(top, n) for n in names]
opened = [p for p in paths if reopen(p, os.O_WRONLY | os.O_NONBLOCK) == "ok"]
made = [
    attempt(os.mkdir, "/proc/x"),
    attempt(os.mknod, "/proc/y"),
    attempt(os.chmod, "/proc/version", 0o666),
]
report(opened=opened, made=made)
"""

EXPECT = {"opened": [], "made": ["ENOENT", "ENOENT", "EROFS"]}
