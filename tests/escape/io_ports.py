"""Asks for the machine's I/O ports and for a segment table of its own.

Refused by seccomp.
"""

MACHINE = "x86_64"

GUEST = """
entry = ctypes.create_string_buffer(struct.pack("<IIII", 0, 0, 0xFFFFF, 0x51))
report(
    iopl=syscall("iopl", 3),
    ioperm=syscall("ioperm", 0x80, 1, 1),
    ldt_write=syscall("modify_ldt", 1, entry, 16),
    ldt_read=syscall("modify_ldt", 0, entry, 16),
)
"""

EXPECT = {"iopl": "EPERM", "ioperm": "EPERM", "ldt_write": "EPERM", "ldt_read": "EPERM"}
