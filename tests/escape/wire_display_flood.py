"""Displays without end, without waiting for the answer that paces it.

What is kept of an execution is bounded; so is what the server reads ahead.
"""

from guest import WIRE
from outside import cell, holds, same

GUEST = (
    WIRE
    + """
w = wire()
one = packet(MSG_DISPLAY, field(TAG_MIME, b"text/html") + field(TAG_DATA, b"<b>" * 15_000))
end = time.monotonic() + 1000
while time.monotonic() < end:
    w.send(one)
"""
)


def check(box):
    run = box.run(cell(GUEST), flags=["--timeout", "2", "--grace", "0.3", "--output", "1M"])
    same([run.exit, run.status()], [3, "session_lost"], "outcome")
    holds(run.peak_kb < 300_000, f"the program held {run.peak_kb} kB")
    holds(len(run.stdout) < 32 << 20, f"the document has {len(run.stdout)} bytes")
