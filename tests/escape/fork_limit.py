"""Counts how many processes it gets.

EAGAIN at the limit; the outcome names it.
"""

from outside import cell, same

GUEST = """
made, why = [], "ok"
try:
    for _ in range(500):
        pid = os.fork()
        if pid == 0:
            signal.pause()
            os._exit(0)
        made.append(pid)
except OSError as e:
    why = name_of(e.errno)
for pid in made:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
report(held=8 <= len(made) <= 32, why=why)
raise BlockingIOError(errno.EAGAIN, "no more processes")
"""


def check(box):
    run = box.run(cell(GUEST), flags=["--pids", "32"])
    same(run.report, {"held": True, "why": "EAGAIN"})
    same([run.status(), run.outcome()["limits_hit"]], ["raised", ["processes"]], "outcome")
