"""Moves a mount away from what it covers.

Refused by seccomp.
"""

GUEST = """
os.mkdir("/tmp/here")
fd = os.open("/workspace", os.O_PATH)
report(
    by_path=syscall("move_mount", -100, b"/proc", -100, b"/tmp/here", 0),
    by_fd=syscall("move_mount", fd, b"", -100, b"/tmp/here", 4),
)
"""

EXPECT = {"by_path": "EPERM", "by_fd": "EPERM"}
