"""Hangs up: closes its socket, or its output, in the middle of a cell and goes on computing.

Without its line the interpreter is lost to the server, which says so and does not wait for it.
"""

from guest import WIRE
from outside import cell, plain, same

GUEST = (
    WIRE
    + """
for s in own_sockets():
    s.shutdown(socket.SHUT_RDWR)
os.closerange(0, 256)
end = time.monotonic() + 1000
while time.monotonic() < end:
    pass
"""
)


def check(box):
    run = box.run(
        cell(GUEST),
        plain("print('alive')"),
        flags=["--keep-going", "--timeout", "3", "--grace", "0.5"],
    )
    same([run.exit, run.statuses(), run.text(1)], [1, ["died", "ok"], "alive\n"], "both cells")
