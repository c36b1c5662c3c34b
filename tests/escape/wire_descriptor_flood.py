"""Sends descriptors along: thousands of them, to fill the server's table, or one it might use by
mistake.

The server takes none from a guest; the kernel throws them away with the packet.
"""

from pathlib import Path

from guest import WIRE
from outside import cell, holds, same

GUEST = (
    WIRE
    + """
import array

w = wire()
spare = [os.open("/dev/null", os.O_RDONLY) for _ in range(200)]
rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", spare))]
valid = packet(MSG_CLEAR, number(2, 0))
for _ in range(50):
    try:
        w.sendmsg([valid], rights, socket.MSG_DONTWAIT)
    except OSError:
        time.sleep(0.01)
print("sent", flush=True)
time.sleep(1.5)
"""
)


def check(box):
    live = box.start(cell(GUEST), flags=["--timeout", "6"])
    live.wait_for("sent")
    try:
        held = len(list(Path(f"/proc/{live.process.pid}/fd").iterdir()))
    except OSError:
        held = 0  # it has ended the session and itself already
    holds(held < 100, f"the program holds {held} descriptors")
    holds(live.end() in (0, 1), f"exit {live.process.returncode}: {live.output[-1500:]!r}")
    same(box.run(cell("print(1)")).exit, 0, "the next run")
