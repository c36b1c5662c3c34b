"""Says that it has imported what is no module of anybody's: a path, options, a list without end.

The names of modules are letters, digits and dots, and each list has an end. A session that sends anything
else is over, and no interpreter is asked for it.
"""

from guest import WIRE
from outside import cell, holds

LISTS = ["b'../../etc/passwd'", "b'--preload,os'", "b'os; import x'", "b'os,,sys'", "b''", "b'\\0'",
         "'\\u0435val'.encode()", "b'a' * 97", "b','.join([b'os'] * 2000)"]
GUEST = (
    WIRE
    + """
wire().send(packet(MSG_DONE, number(TAG_STATUS, 0) + field(6, %s)))
time.sleep(5)
"""
)


def check(box):
    for modules in LISTS:
        run = box.run(cell(GUEST % modules), flags=["--timeout", "10"])
        holds(run.statuses() == ["session_lost"], f"{modules}: {run.brief()}")
