"""Prints one byte at a time, to each stream in turn, so that every byte becomes an event.

Bytes that come together are one event; and what is kept has a number as well as a size.
"""

from outside import cell, holds

GUEST = """
end = time.monotonic() + 1000
while time.monotonic() < end:
    os.write(1, b"o")
    os.write(2, b"e")
"""


def check(box):
    run = box.run(cell(GUEST), flags=["--timeout", "2", "--grace", "0.3"], alone=True)
    holds(run.exit == 124, f"exit {run.exit}: {run.brief()}")
    holds(run.peak_kb < 200_000, f"the program held {run.peak_kb} kB")
    holds(len(run[0]["events"]) < 20_000, f"{len(run[0]['events'])} events")
