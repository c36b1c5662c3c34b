"""Watches what other processes do with the files of a shared mount.

Refused by seccomp.
"""

GUEST = """
FAN_REPORT_FID, FAN_CLASS_CONTENT = 0x200, 4
report(
    plain=syscall("fanotify_init", 0, 0),
    by_id=syscall("fanotify_init", FAN_REPORT_FID, 0),
    content=syscall("fanotify_init", FAN_CLASS_CONTENT, 0),
)
"""

EXPECT = {"plain": "EPERM", "by_id": "EPERM", "content": "EPERM"}
