"""Climbs past the root: by "..", through descriptors, through /proc's magic links.

The root of the mount namespace has nothing above it.
"""

from outside import cell, same

GUEST = """
root = os.stat("/")


def climbed(start):
    fd = os.open(start, os.O_RDONLY)
    for _ in range(100):
        fd, old = os.open("..", os.O_RDONLY, dir_fd=fd), fd
        os.close(old)
    return os.path.samestat(os.fstat(fd), root)


report(
    **{p: climbed(p) for p in ("/", "/workspace", "/proc/self/root", "/proc/self/cwd", "/dev/shm")},
    path=attempt(open, "/.." * 100 + DECOY),
    magic=attempt(open, "/proc/self/root" + "/.." * 100 + DECOY),
    thread=attempt(open, "/proc/thread-self/root" + DECOY)
)
"""


def check(box):
    decoy, _ = box.decoy()
    run = box.run(cell(GUEST, DECOY=str(decoy)))
    same(
        box.ok(run),
        {
            "/": True,
            "/workspace": True,
            "/proc/self/root": True,
            "/proc/self/cwd": True,
            "/dev/shm": True,
            "path": "ENOENT",
            "magic": "ENOENT",
            "thread": "ENOENT",
        },
    )
