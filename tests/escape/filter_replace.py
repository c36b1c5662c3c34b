"""Puts a filter of its own on top that allows everything, or one that answers for the kernel.

Filters add up: the strictest answer holds. seccomp() itself is refused, so that there is no
listener.
"""

GUEST = """
allow_all = ctypes.create_string_buffer(struct.pack("<HBBI", 6, 0, 0, 0x7FFF0000))
program = ctypes.create_string_buffer(struct.pack("<HxxxxxxQ", 1, ctypes.addressof(allow_all)))
NEW_LISTENER = 8
PR_SET_SECCOMP, PR_GET_SECCOMP = 22, 21
report(
    listener=syscall("seccomp", 1, NEW_LISTENER, program),
    plain=syscall("seccomp", 1, 0, program),
    off=syscall("prctl", PR_SET_SECCOMP, 0, 0, 0, 0),
    stacked=syscall("prctl", PR_SET_SECCOMP, 2, program, 0, 0),
    mount=syscall("mount", b"none", b"/tmp", b"tmpfs", 0, 0),
    ring=syscall("io_uring_setup", 1, 0),
    namespace=syscall("unshare", 0x10000000),
)
"""

EXPECT = {
    "listener": "EPERM",
    "plain": "EPERM",
    "off": "EINVAL",
    "stacked": "ok",
    "mount": "EPERM",
    "ring": "ENOSYS",
    "namespace": "EPERM",
}
