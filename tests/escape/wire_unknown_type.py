"""Sends what only others may say: messages of init, of the warden, of the server itself, and of
nobody.

The table of what an interpreter may say has no such row.
"""

from guest import WIRE
from outside import cell, same

TYPES = [0x11, 0x40, 0x44, 0x52, 0x62, 0xFFFF]


def check(box):
    guests = {hex(kind): WIRE + f"wire().send(packet({kind}, number(TAG_STATUS, 0)))\ntime.sleep(60)"
              for kind in TYPES}
    same(box.outcomes(guests), dict.fromkeys(guests, "session_lost"), "outcomes")
    run = box.run(cell(guests[hex(TYPES[0])]))
    same([run.status(0), run.exit], ["session_lost", 3], "outcome and exit status")
