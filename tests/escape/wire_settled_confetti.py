"""Prints one byte at a time and has the server empty its pipes after each, so that none can be
joined to another.

What is kept of an execution has a number as well as a size.
"""

from guest import WIRE
from outside import cell, holds, same

GUEST = (
    WIRE
    + """
w = wire()
end = time.monotonic() + 1000
sync = packet(MSG_SYNC)
while time.monotonic() < end:
    os.write(1, b"o")
    os.write(2, b"e")
    w.send(sync)
    w.recv(64)
"""
)


def check(box):
    run = box.run(cell(GUEST), flags=["--timeout", "2", "--grace", "0.3"], alone=True)
    same([run.exit, run.status()], [124, "timeout"], "outcome")
    holds(run.peak_kb < 100_000, f"the program held {run.peak_kb} kB")
    holds(len(run[0]["events"]) < 20_000, f"{len(run[0]['events'])} events")
