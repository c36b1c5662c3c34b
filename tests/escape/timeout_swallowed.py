"""Catches every exception, restores the handler, blocks the signal, and never ends.

The limit holds: after the grace comes the kill. Files are kept, variables are said to be lost.
"""

from outside import plain, same

GUEST = """
import signal

open("/workspace/kept.txt", "w").write("kept")
signal.signal(signal.SIGINT, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
while True:
    try:
        while True:
            pass
    except BaseException:
        pass
"""


def check(box):
    run = box.run(
        plain(GUEST),
        plain("print(open('kept.txt').read())"),
        flags=["--timeout", "1", "--grace", "0.3", "--keep-going"],
    )
    same([run.status(0), run.outcome(0)["state_lost"], run.exit], ["timeout", True, 124], "outcome")
    same(run.text(1), "kept\n", "the next cell")
