"""Locks memory so that the host cannot take it back.

Limited to 64 KiB for each process.
"""

GUEST = """
size = 1 << 20
address = libc.mmap
address.restype = ctypes.c_void_p
block = address(None, ctypes.c_size_t(size), 3, 0x22, -1, ctypes.c_long(0))
MCL_CURRENT, MCL_FUTURE = 1, 2
report(
    one=syscall("mlock", block, size),
    all=syscall("mlockall", MCL_CURRENT),
    future=syscall("mlockall", MCL_CURRENT | MCL_FUTURE),
)
"""

EXPECT = {"one": "ENOMEM", "all": "ENOMEM", "future": "ENOMEM"}
