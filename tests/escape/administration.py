"""Administers the host: swap, accounting, quotas, reboot, hanging up the terminal, forcing every
disk to write.

Refused by seccomp. The reboot asked for is the one that only switches Ctrl-Alt-Del off.
"""

GUEST = """
MAGIC1, MAGIC2, CAD_OFF = 0xFEE1DEAD, 672274793, 0
report(
    reboot=syscall("reboot", MAGIC1, MAGIC2, CAD_OFF, 0),
    swapon=syscall("swapon", b"/workspace/x", 0),
    swapoff=syscall("swapoff", b"/dev/x"),
    acct=syscall("acct", b"/workspace/x"),
    quota=syscall("quotactl", 0x800007 << 8, b"/dev/x", 0, 0),
    quota_fd=syscall("quotactl_fd", 0, 0, 0, 0),
    hangup=syscall("vhangup"),
)
"""

EXPECT = {
    k: "EPERM" for k in ("reboot", "swapon", "swapoff", "acct", "quota", "quota_fd", "hangup")
}
