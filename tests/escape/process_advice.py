"""Has init's memory thrown out, moved or compared: process_madvise, process_mrelease, migrate and
move pages, kcmp.

Refused by seccomp.
"""

GUEST = """
pidfd, _ = raw("pidfd_open", 1, 0)
iov = ctypes.create_string_buffer(16)
mask = ctypes.create_string_buffer(struct.pack("<Q", 1))
report(
    madvise=syscall("process_madvise", pidfd, iov, 1, 21, 0),
    mrelease=syscall("process_mrelease", pidfd, 0),
    migrate=syscall("migrate_pages", 1, 64, mask, mask),
    move=syscall("move_pages", 1, 0, 0, 0, 0, 0),
    compare=syscall("kcmp", 1, os.getpid(), 0, 0, 0),
)
"""

EXPECT = {
    "madvise": "EPERM",
    "mrelease": "EPERM",
    "migrate": "EPERM",
    "move": "EPERM",
    "compare": "EPERM",
}
