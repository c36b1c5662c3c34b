"""Takes init's descriptors: its line to the server, its writable view of /proc.

Init is not dumpable; pidfd_getfd() is refused by seccomp.
"""

GUEST = """
pidfd, number = raw("pidfd_open", 1, 0)
report(
    listed=attempt(os.listdir, "/proc/1/fd"),
    info=attempt(os.listdir, "/proc/1/fdinfo"),
    opened=sorted({reopen(f"/proc/1/fd/{n}", os.O_RDWR) for n in range(16)}),
    stolen=sorted({syscall("pidfd_getfd", pidfd, n, 0) for n in range(16)}),
)
"""

# Rootless the directory is its own user's and can be listed: numbers, and nothing behind them.
EXPECT = {
    "listed": ("EACCES", "ok"),
    "info": "EACCES",
    "opened": (["EACCES"], ["EACCES", "ENOENT"]),
    "stolen": ["EPERM"],
}
