"""Sends one message in pieces without end, to fill the server's memory.

A message has a ceiling; past it the session is over.
"""

from guest import WIRE
from outside import cell, holds, same

GUEST = (
    WIRE
    + """
w = wire()
part = packet(MSG_RESULT, b"x" * 48 * 1024, flags=MORE)
for _ in range(40_000):
    w.send(part)
time.sleep(5)
"""
)


def check(box):
    run = box.run(cell(GUEST), flags=["--timeout", "8"], alone=True)
    same([run.status(0), run.exit], ["session_lost", 3], "outcome and exit status")
    holds(run.peak_kb < 300_000, f"the program held {run.peak_kb} kB")
