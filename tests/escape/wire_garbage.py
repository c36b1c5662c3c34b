"""Sends random bytes to the server by its own socket.

A packet that is none ends the sender's session and nothing else.
"""

from guest import WIRE
from outside import cell, same

GUEST = (
    WIRE
    + """
wire().send(bytes(range(256)) * 16)
time.sleep(5)
"""
)


def check(box):
    run = box.run(cell(GUEST), cell("print('alive')"), flags=["--keep-going"])
    same([run.statuses(), run.exit], [["session_lost"], 3], "outcome and exit status")
