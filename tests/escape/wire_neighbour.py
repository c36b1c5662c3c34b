"""Attacks the server with everything at once while another session works.

The neighbour's every cell answers.
"""

from guest import WIRE
from outside import cell, plain, same

GUEST = (
    WIRE
    + """
w = wire()
end = time.monotonic() + 3
import random

while time.monotonic() < end:
    try:
        w.send(
            packet(
                random.randrange(0x100),
                os.urandom(random.randrange(4000)),
                flags=random.randrange(4),
            ),
            socket.MSG_DONTWAIT,
        )
        os.write(1, os.urandom(5000))
    except OSError:
        break
"""
)


def check(box):
    attackers = [box.start(cell(GUEST)) for _ in range(2)]
    run = box.run(*[plain(f"print({n})") for n in range(50)])
    same(run.text(), "".join(f"{n}\n" for n in range(50)), "the neighbour's answers")
    for a in attackers:
        same(a.end(), 3, "exit status of an attacker")
