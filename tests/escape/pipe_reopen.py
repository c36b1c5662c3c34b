"""Turns its output pipes around: reads what it wrote, makes them packet pipes, shrinks and blocks
them.

They are the guest's to spoil. The server reads what is left and waits for nothing else.
"""

from outside import cell, holds, plain, same

GUEST = """
import fcntl

F_SETPIPE_SZ = 1031
try:
    reader = os.open("/proc/self/fd/1", os.O_RDONLY | os.O_NONBLOCK)
except PermissionError:
    reader = -1  # a pipe of root's
fcntl.fcntl(1, fcntl.F_SETFL, os.O_NONBLOCK | os.O_DIRECT)
attempt(fcntl.fcntl, 1, F_SETPIPE_SZ, 4096)
for n in range(200):
    attempt(os.write, 1, b"x" * 4096)
    attempt(os.read, reader, 1 << 20)
fcntl.fcntl(1, fcntl.F_SETFL, 0)
os.write(2, b"end of it\\n")
"""


def check(box):
    run = box.run(cell(GUEST), plain("print('alive')"), flags=["--timeout", "5"])
    holds(run.exit == 0, run.brief())
    same("end of it" in run.text(0, "stderr"), True, "stderr came through")
    same(run.text(1), "alive\n", "the next cell")
