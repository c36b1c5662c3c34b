"""Sends messages that are cut off: half a head, a length that lies, fields past the end, numbers
of seven bytes.

Each is refused; the session that sent it is over.
"""

from guest import WIRE
from outside import cell, same

PACKETS = [
    "packet(MSG_RESULT)[:7]",
    "packet(MSG_RESULT, b'x' * 100, length=50)",
    "packet(MSG_RESULT, b'x' * 10, length=0xffffffff)",
    "packet(MSG_DISPLAY, field(TAG_MIME, b'text/plain', length=0xfffffff0))",
    "packet(MSG_DONE, field(TAG_STATUS, b'1234567'))",
]


def check(box):
    guests = {p: WIRE + f"wire().send({p})\ntime.sleep(60)" for p in PACKETS}
    same(box.outcomes(guests), dict.fromkeys(PACKETS, "session_lost"), "outcomes")
    run = box.run(cell(guests[PACKETS[0]]))
    same([run.status(0), run.exit], ["session_lost", 3], "outcome and exit status")
