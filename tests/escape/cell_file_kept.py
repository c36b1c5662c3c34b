"""Keeps the file in which a long cell arrives, and stores in it what no limit counts.

The file is sealed: it can be read and nothing else.
"""

from outside import cell, plain, same

GUEST = """
import _retort, array

inbox = socket.socket(
    fileno=os.dup(
        [
            n
            for n in range(3, 64)
            if os.path.exists(f"/proc/self/fd/{n}")
            and os.readlink(f"/proc/self/fd/{n}").startswith("socket")
        ][0]
    )
)


def recv():
    data, controls, *_ = inbox.recvmsg(65536, socket.CMSG_SPACE(4 * 8))
    files = [
        fd
        for level, kind, raw_fds in controls
        for fd in array.array("i", raw_fds[: len(raw_fds) // 4 * 4])
    ]
    report(
        files=len(files),
        grow=[attempt(os.ftruncate, fd, 1 << 20) for fd in files],
        write=[attempt(os.pwrite, fd, b"x", 0) for fd in files],
        again=[attempt(os.write, os.open(f"/proc/self/fd/{fd}", os.O_RDWR), b"x") for fd in files],
        read=[len(os.pread(fd, 10, 0)) for fd in files],
    )
    os._exit(0)


_retort.recv = recv
"""


def check(box):
    run = box.run(cell(GUEST), plain("#" * 100_000), flags=["--keep-going"])
    same(
        run.report,
        {"files": 1, "grow": ["EPERM"], "write": ["EPERM"], "again": ["EPERM"], "read": [10]},
    )
    same(run.status(1), "died", "outcome")
