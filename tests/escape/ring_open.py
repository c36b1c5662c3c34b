"""A ring opens files and sockets without passing through the filter (CVE-2022-29582,
CVE-2023-2598).

Refused by seccomp with ENOSYS, so that libraries fall back to epoll.
"""

GUEST = """
params = ctypes.create_string_buffer(120)
report(
    setup=syscall("io_uring_setup", 8, params),
    enter=syscall("io_uring_enter", 0, 1, 0, 0, 0, 0),
    register=syscall("io_uring_register", 0, 0, 0, 0),
)
"""

EXPECT = {"setup": "ENOSYS", "enter": "ENOSYS", "register": "ENOSYS"}
