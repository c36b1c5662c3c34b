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
    for expression in PACKETS:
        run = box.run(cell(WIRE + f"wire().send({expression})\ntime.sleep(5)"))
        same(
            [expression, run.status(0), run.exit],
            [expression, "session_lost", 3],
            "outcome and exit status",
        )
