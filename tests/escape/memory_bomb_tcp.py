"""Takes memory that is the kernel's: bytes under way in TCP connections that nobody reads.

They are bounded for each connection by settings of the sandbox's own network namespace, which a wish
for larger buffers does not change, and for all of them by a cgroup; where there is none, init counts
the sockets. Past that, a write waits.
"""

from outside import cell, holds, plain, same

GUEST = """
held, kept = 0, []
here = socket.create_server(("127.0.0.1", 0), backlog=64)
try:
    while held < 400 << 20:
        a = socket.create_connection(here.getsockname())
        pair = (a, here.accept()[0])
        kept += pair
        most = held + (64 << 20)
        for end in pair:
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 64 << 20)
            end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 << 20)
            end.setblocking(False)
        for n in range(400):
            for end in pair:
                try:
                    while held < most:
                        held += end.send(bytes(1 << 16))
                except BlockingIOError:
                    pass
except OSError as e:
    pass
report(megabytes=held >> 20, sockets=len(kept))
time.sleep(1)
"""


def check(box):
    run = box.run(
        cell(GUEST),
        plain("print('alive')"),
        flags=["--memory", "100M", "--keep-going", "--timeout", "20"],
    )
    had = 0 if run.status(0) == "memory" else run.report["megabytes"]
    holds(had < 100, f"had {run.report} of 100 MB: {run.outcome(0)}")
    same(run.text(1), "alive\n", "the next cell")
