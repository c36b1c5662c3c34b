"""Hangs up: closes its socket, or its output, in the middle of a cell and goes on computing.

Without its line the interpreter is lost to the server, which says so and does not wait for it.
"""

from guest import WIRE
from outside import cell, holds, plain

GUEST = (
    WIRE
    + """
for s in own_sockets():
    s.shutdown(socket.SHUT_RDWR)
os.closerange(0, 256)
end = time.monotonic() + 20
while time.monotonic() < end:
    pass
"""
)


def check(box):
    run = box.run(
        cell(GUEST),
        plain("print('alive')"),
        flags=["--keep-going", "--timeout", "3", "--grace", "0.5"],
        seconds=15,
    )
    holds(run.exit in (1, 3, 124), f"exit {run.exit}: {run.brief()}")
    holds(run.status(0) in ("died", "timeout", "session_lost"), f"outcomes: {run.statuses()}")
    holds(
        run.status(0) == "session_lost" or run.text(1) == "alive\n", f"the next cell: {run.brief()}"
    )
