"""Asks the kernel itself, past every file, for the host's memory, load and processors.

Init answers these two calls; a caller that says where no memory is hears so, as from the kernel.
"""

GUEST = """
SYSINFO, AFFINITY = (179, 123) if platform.machine() == "aarch64" else (99, 204)

info = ctypes.create_string_buffer(112)
raw(SYSINFO, info)
up, *rest = struct.unpack("<10qHxxxxxxqqI", info.raw[:108])
mask = ctypes.create_string_buffer(b"\\xff" * 128, 128)
written, _ = raw(AFFINITY, 0, 128, mask)
in_child = child(lambda: raw(SYSINFO, info)[0])
in_thread = []
t = threading.Thread(target=lambda: in_thread.append(raw(SYSINFO, info)[0]))
t.start(); t.join()
report(
    rest=rest, processors=[written, mask.raw[:written].hex()],
    others=[in_child, in_thread],
    nowhere=[syscall(SYSINFO, 8), syscall(AFFINITY, 0, 128, 8)],
    kernel=[syscall(SYSINFO, ctypes.c_void_p(0xffffffff80000000))],
    readonly=syscall(SYSINFO, ctypes.c_void_p(ctypes.cast(libc.getpid, ctypes.c_void_p).value)),
    nobody=[syscall(AFFINITY, p, 128, mask) for p in (-1, 54321)],
    short=[syscall(AFFINITY, 0, n, mask) for n in (0, 1, 7, 9)],
    init=raw(AFFINITY, 1, 128, mask)[0],
)
"""

MEMORY = 2 << 30

EXPECT = {
    "rest": [0, 0, 0, MEMORY, MEMORY, 0, 0, 0, 0, 1, 0, 0, 1],
    "processors": [8, "0100000000000000"],
    "others": [0, [0]],
    "nowhere": ["EFAULT", "EFAULT"],
    "kernel": ["EFAULT"],
    "readonly": "EFAULT",
    "nobody": ["ESRCH", "ESRCH"],
    "short": ["EINVAL", "EINVAL", "EINVAL", "EINVAL"],
    "init": 8,
}
