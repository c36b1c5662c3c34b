"""Takes memory that is the kernel's: bytes under way in sockets that nobody reads.

A cgroup counts them. Where there is none, init counts the sockets.
"""

from outside import cell, holds, plain, same

GUEST = """
held, kept = 0, []
try:
    while held < 400 << 20:
        pair = socket.socketpair()
        kept += pair
        for end in pair:
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 64 << 20)
            end.setblocking(False)
            try:
                while True:
                    held += end.send(bytes(1 << 16))
            except BlockingIOError:
                pass
except OSError:
    pass
time.sleep(1)
report(megabytes=held >> 20)
"""


def check(box):
    run = box.run(
        cell(GUEST),
        plain("print('alive')"),
        flags=["--memory", "100M", "--keep-going", "--timeout", "8"],
    )
    holds(run.status(0) == "memory", f"had {run.report} of 100 MB: {run.outcome(0)}")
    same(run.text(1), "alive\n", "the next cell")
