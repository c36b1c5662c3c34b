"""Reads the kernel's memory and its log: kcore, kmsg, /dev/mem, the ring buffer.

None of them is there; syslog() is refused by seccomp.
"""

GUEST = """
READ_ALL, SIZE_BUFFER = 3, 10
report(
    kcore=reopen("/proc/kcore", os.O_RDONLY),
    kmsg=reopen("/proc/kmsg", os.O_RDONLY),
    vmcore=reopen("/proc/vmcore", os.O_RDONLY),
    pages=reopen("/proc/kpageflags", os.O_RDONLY),
    mem=reopen("/dev/mem", os.O_RDONLY),
    kmem=reopen("/dev/kmem", os.O_RDONLY),
    port=reopen("/dev/port", os.O_RDONLY),
    dev_kmsg=reopen("/dev/kmsg", os.O_RDONLY),
    log=syscall("syslog", READ_ALL, ctypes.create_string_buffer(4096), 4096),
    log_size=syscall("syslog", SIZE_BUFFER, 0, 0),
)
"""

EXPECT = {
    "kcore": "ENOENT",
    "kmsg": "ENOENT",
    "vmcore": "ENOENT",
    "pages": "ENOENT",
    "mem": "ENOENT",
    "kmem": "ENOENT",
    "port": "ENOENT",
    "dev_kmsg": "ENOENT",
    "log": "EPERM",
    "log_size": "EPERM",
}
