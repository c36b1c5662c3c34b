"""Restarts the host with one letter.

Only opened, never written to: should this ever succeed, the machine survives the test.
"""

GUEST = """
report(
    trigger=reopen("/proc/sysrq-trigger", os.O_WRONLY),
    setting=reopen("/proc/sys/kernel/sysrq", os.O_WRONLY),
)
"""

EXPECT = {"trigger": "ENOENT", "setting": "ENOENT"}
