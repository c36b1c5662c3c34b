"""Begins one long message and goes on with another.

A piece that does not continue what was begun is refused.
"""

from guest import WIRE
from outside import cell, same

GUEST = (
    WIRE
    + """
w = wire()
w.send(packet(MSG_RESULT, b"x" * 100, flags=MORE))
w.send(packet(MSG_DISPLAY, b"y" * 100, flags=MORE))
w.send(done())
time.sleep(5)
"""
)


def check(box):
    run = box.run(cell(GUEST))
    same([run.status(0), run.exit], ["session_lost", 3], "outcome and exit status")
