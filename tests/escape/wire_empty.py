"""Sends packets without a byte, which a reader could take for the end of the line.

It is taken for the end of that interpreter, which is replaced.
"""

from guest import WIRE
from outside import cell, same

GUEST = (
    WIRE
    + """
for _ in range(100):
    wire().send(b"")
time.sleep(5)
"""
)


def check(box):
    run = box.run(cell(GUEST), flags=["--keep-going"])
    same([run.status(0), run.exit], ["died", 1], "outcome and exit status")
