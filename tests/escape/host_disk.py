"""Asks for the name, the number and the layout of the disk that the system's files are on.

The ioctls are not there.
"""

GUEST = """
system = os.open("/usr/bin/env", os.O_RDONLY)
report(
    extents=syscall("ioctl", system, 0xC020660B, ctypes.create_string_buffer(300)),
    label=syscall("ioctl", system, 0x81009431, ctypes.create_string_buffer(256)),
    uuid=syscall("ioctl", system, 0x80111500, ctypes.create_string_buffer(17)),
    sysfs=syscall("ioctl", system, 0x80811501, ctypes.create_string_buffer(129)),
    length=syscall("ioctl", system, 0x541B, ctypes.create_string_buffer(8)),
)
"""

EXPECT = {"extents": "ENOTTY", "label": "ENOTTY", "uuid": "ENOTTY", "sysfs": "ENOTTY", "length": "ok"}
