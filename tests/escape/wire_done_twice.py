"""Says that it is done, and again, and goes on working: a cell that ends early and answers for
the next.

The first end is its own to give. A second belongs to no cell, and the session is over.
"""

from guest import WIRE
from outside import cell, holds

GUEST = (
    WIRE
    + """
w = wire()
for _ in range(3):
    w.send(done())
time.sleep(0.3)
"""
)


def check(box):
    run = box.run(
        cell(GUEST),
        cell("raise ValueError('true end')"),
        flags=["--keep-going", "--timeout", "3", "--grace", "0.5"],
    )
    holds(run.exit == 3, f"exit {run.exit}: {run.brief()}")
    holds(
        run.statuses() in (["session_lost"], ["ok", "session_lost"]),
        f"the forged end was believed: {run.statuses()}",
    )
