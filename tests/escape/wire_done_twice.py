"""Says that it is done, and again, and goes on working: a cell that ends early and answers for the next.

A second end belongs to no cell: it is not taken for that of the next one.
"""

from guest import WIRE
from harness import cell, holds

GUEST = WIRE + """
w = wire()
for _ in range(3):
    w.send(done())
time.sleep(0.3)
"""


def check(box):
    run = box.run(cell(GUEST), cell("raise ValueError('true end')"), flags=["--keep-going", "--timeout", "3", "--grace", "0.5"])
    holds(run.exit == 1, f"exit {run.exit}: {run.brief()}")
    holds(run.status(0) in ("ok", "session_lost"), f"outcomes: {run.statuses()}")
    holds(run.status(1) in ("raised", "session_lost"), f"the forged end was believed: {run.statuses()}")
