"""mount_setattr() clears the read-only and nosuid bits of whole trees in one call.

Refused by seccomp.
"""

GUEST = """
MOUNT_ATTR_RDONLY, MOUNT_ATTR_NOSUID, AT_RECURSIVE = 1, 2, 0x8000
attr = ctypes.create_string_buffer(
    struct.pack("<QQQQ", 0, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID, 0, 0)
)
report(
    root=syscall("mount_setattr", -100, b"/", AT_RECURSIVE, attr, 32),
    proc=syscall("mount_setattr", -100, b"/proc", 0, attr, 32),
    workspace=syscall("mount_setattr", -100, b"/workspace", 0, attr, 32),
)
"""

EXPECT = {"root": "EPERM", "proc": "EPERM", "workspace": "EPERM"}
