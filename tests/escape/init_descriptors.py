"""Takes init's descriptors: its line to the server, its writable view of /proc.

Init is not dumpable; pidfd_getfd() is for init alone, by seccomp.
"""

GUEST = """
def listed(path):
    try:
        return os.listdir(path)
    except OSError as e:
        return name_of(e.errno)


pidfd, number = raw("pidfd_open", 1, 0)
report(
    listed=listed("/proc/1/fd"),
    info=attempt(os.listdir, "/proc/1/fdinfo"),
    opened=sorted({reopen(f"/proc/1/fd/{n}", os.O_RDWR) for n in range(16)}),
    stolen=sorted({syscall("pidfd_getfd", pidfd, n, 0) for n in range(16)}),
)
"""

# Rootless the directory would be its own user's to list: another, empty one lies over it.
EXPECT = {
    "listed": ("EACCES", []),
    "info": "EACCES",
    "opened": (["EACCES"], ["ENOENT"]),
    "stolen": ["EPERM"],
}
