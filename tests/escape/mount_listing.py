"""Asks the kernel for mounts of other namespaces by number (statmount, listmount).

Newer than the filter: they do not exist.
"""

GUEST = """
request = ctypes.create_string_buffer(struct.pack("<IIQQQ", 32, 0, 0xFFFFFFFFFFFFFFFF, 0, 0))
answer = ctypes.create_string_buffer(4096)
report(
    listmount=syscall("listmount", request, answer, 64, 0),
    statmount=syscall("statmount", request, answer, 4096, 0),
)
"""

EXPECT = {"listmount": "ENOSYS", "statmount": "ENOSYS"}
