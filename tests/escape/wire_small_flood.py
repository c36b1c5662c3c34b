"""Says next to nothing, ten thousand times a second: clears and empty displays that cost the
server a record each.

What is kept of an execution is counted in events as well as in bytes.
"""

from guest import WIRE
from outside import cell, holds, same

GUEST = (
    WIRE
    + """
w = wire()
end = time.monotonic() + 1000
while time.monotonic() < end:
    w.send(KIND)
    w.recv(64)
"""
)


def check(box):
    for kind in (
        "packet(MSG_CLEAR, number(2, 0))",
        "packet(MSG_DISPLAY, field(TAG_MIME, b'text/plain') + field(TAG_DATA, b'x'))",
    ):
        run = box.run(
            cell(GUEST.replace("KIND", kind)),
            flags=["--timeout", "2", "--grace", "0.3"],
            alone=True,
        )
        same([run.exit, run.status()], [124, "timeout"], "outcome")
        holds(run.peak_kb < 100_000, f"the program held {run.peak_kb} kB")
        holds(len(run[0]["events"]) < 20_000, f"{len(run[0]['events'])} events")
