"""Reads and writes another process's memory without attaching to it.

Refused by seccomp.
"""

GUEST = """
buffer = ctypes.create_string_buffer(64)
iov = ctypes.create_string_buffer(struct.pack("<QQ", ctypes.addressof(buffer), 64))
report(
    read_init=syscall("process_vm_readv", 1, iov, 1, iov, 1, 0),
    write_init=syscall("process_vm_writev", 1, iov, 1, iov, 1, 0),
    read_self=syscall("process_vm_readv", os.getpid(), iov, 1, iov, 1, 0),
)
"""

EXPECT = {"read_init": "EPERM", "write_init": "EPERM", "read_self": "EPERM"}
