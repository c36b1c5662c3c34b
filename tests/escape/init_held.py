"""Stops each new process before it has become a command, while init waits for it to.

A stopped child must not hold init, or there is nobody left to end it: the time limit holds all
the same.
"""

from outside import cell, holds, processes_with, shell, until

GUEST = """
code = '''
import os, signal, time
end = time.monotonic() + 1000
while time.monotonic() < end:
    n = max(int(p) for p in os.listdir("/proc") if p.isdigit())
    for pid in range(n + 1, n + 8):
        try:
            os.kill(pid, signal.SIGSTOP)
        except OSError:
            pass
'''
for _ in range(2):
    subprocess.Popen([sys.executable, "-c", code, MARK], start_new_session=True)
time.sleep(0.3)
"""


def check(box):
    mark = f"hold-{box.tmp.name}"
    run = box.run(
        cell(GUEST, MARK=mark),
        *[shell("true") for _ in range(20)],
        flags=["--timeout", "1", "--grace", "0.3", "--keep-going"],
    )
    holds(
        set(run.statuses()[1:]) <= {"ok", "timeout", "died", "raised", "session_lost"},
        f"outcomes: {run.statuses()}",
    )
    until(lambda: not processes_with(mark), "the guest's processes to be gone")
