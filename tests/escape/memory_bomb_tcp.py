"""Takes memory that is the kernel's: bytes under way in TCP connections that nobody reads.

They are bounded for each connection by settings of the sandbox's own network namespace, which a wish
for larger buffers does not change, and for all of them by a cgroup; where there is none, init counts
the sockets. Past that, a write waits.
"""

from outside import cell, holds, plain, same

GUEST = """
held, kept, end = 0, [], time.monotonic() + 8
here = socket.create_server(("127.0.0.1", 0), backlog=64)


def fill(one):
    sent = 0
    try:
        while sent < 64 << 20:
            sent += one.send(bytes(1 << 16))
    except BlockingIOError:
        pass
    return sent


try:
    while held < 400 << 20 and time.monotonic() < end:
        one = socket.create_connection(here.getsockname(), timeout=2)
        pair = (one, here.accept()[0])
        kept += pair
        for s in pair:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 64 << 20)
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 << 20)
            s.setblocking(False)
        while more := sum(map(fill, pair)):
            held += more
except OSError:
    pass
report(megabytes=held >> 20, sockets=len(kept))
time.sleep(1)
"""


def check(box):
    run = box.run(
        cell(GUEST),
        plain("print('alive')"),
        flags=["--memory", "100M", "--keep-going", "--timeout", "100"],
    )
    had = 0 if run.status(0) == "memory" else run.report["megabytes"]
    holds(had < 100, f"had {run.report} of 100 MB: {run.outcome(0)}")
    same(run.text(1), "alive\n", "the next cell")
