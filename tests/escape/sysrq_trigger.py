"""Restarts the host with one letter.

Only opened, never written to: should this ever succeed, the machine survives the test.
"""

from outside import present

GUEST = """
report(
    trigger=reopen("/proc/sysrq-trigger", os.O_WRONLY),
    setting=reopen("/proc/sys/kernel/sysrq", os.O_WRONLY),
)
"""

EXPECT = {
    "trigger": present("/proc/sysrq-trigger", "EACCES"),
    "setting": present("/proc/sys/kernel/sysrq", "EACCES"),
}
