"""The host's devices, modules, firmware and cgroups as files.

There is no /sys in the sandbox.
"""

GUEST = """
paths = (
    "/sys",
    "/sys/kernel",
    "/sys/fs/cgroup",
    "/sys/firmware",
    "/sys/kernel/debug",
    "/sys/kernel/uevent_helper",
    "/sys/class/net",
    "/sys/power/state",
    "/sys/module",
)
report(
    answers=sorted({attempt(os.listdir, p) for p in paths}),
    type=b"sysfs" in open("/proc/self/mountinfo", "rb").read(),
)
"""

EXPECT = {"answers": ["ENOENT"], "type": False}
