"""Outlives a signal that whoever started the program had ignored.

An ignored signal stays ignored across an exec, and scripts ignore some (nohup, a job in the
background). Code in a session and its children meet the ordinary ones all the same.
"""

import signal

from outside import cell, same

IGNORED = [signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGCHLD,
           signal.SIGALRM, signal.SIGUSR1, signal.SIGUSR2, signal.SIGRTMIN]

GUEST = """
def ignored(status):
    bits = int(next(l for l in status.splitlines() if l.startswith("SigIgn")).split()[1], 16)
    # Python's own; bash ignores none.
    return sorted(n for n in range(1, 65) if bits >> n - 1 & 1 and n not in (13, 25))


report(
    cell=ignored(open("/proc/self/status").read()),
    child=ignored(subprocess.run(["cat", "/proc/self/status"], capture_output=True, text=True).stdout),
    quit=subprocess.run(["sh", "-c", "kill -QUIT $$"]).returncode,
)
"""


def ignore():
    for number in IGNORED:
        signal.signal(number, signal.SIG_IGN)


def check(box):
    same(box.ok(box.run(cell(GUEST), preexec_fn=ignore)), {"cell": [], "child": [], "quit": -3})
