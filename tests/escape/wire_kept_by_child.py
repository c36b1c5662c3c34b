"""Leaves a child behind that holds the dead interpreter's socket and speaks for its successor.

The successor has a line of its own; what arrives on the old one belongs to nobody.
"""

from guest import WIRE
from outside import cell, holds

GUEST = (
    WIRE
    + """
w = wire()
if os.fork() == 0:
    os.setsid()
    end = time.monotonic() + 4
    while time.monotonic() < end:
        for kind in (MSG_IDLE, MSG_SYNC, MSG_DONE):
            try:
                w.send(
                    packet(kind, number(TAG_STATUS, 0) if kind == MSG_DONE else b""),
                    socket.MSG_DONTWAIT,
                )
            except OSError:
                pass
        time.sleep(0.01)
    os._exit(0)
os.kill(os.getpid(), signal.SIGKILL)
"""
)


def check(box):
    run = box.run(
        cell(GUEST),
        cell("import time; time.sleep(0.5); raise ValueError('true end')"),
        flags=["--keep-going", "--timeout", "4"],
    )
    holds(run.exit in (1, 3), f"exit {run.exit}: {run.brief()}")
    holds(run.status(0) in ("died", "session_lost"), f"outcomes: {run.statuses()}")
    holds(
        run.status() in ("raised", "session_lost"), f"the forged end was believed: {run.statuses()}"
    )
