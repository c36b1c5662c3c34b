"""Stops itself, so that no signal but one is ever delivered.

The time limit ends in SIGKILL, which stopping does not hold off; the next cell has a new
interpreter.
"""

from outside import plain, same

GUEST = """
kept = 1
import os, signal

os.kill(os.getpid(), signal.SIGSTOP)
"""


def check(box):
    run = box.run(
        plain(GUEST),
        plain("print('kept' in globals())"),
        flags=["--timeout", "1", "--grace", "0.3", "--keep-going"],
    )
    same([run.status(0), run.outcome(0)["state_lost"], run.exit], ["timeout", True, 124], "outcome")
    same(run.outcome(0)["limits_hit"], ["wall_time"], "limits hit")
    same(run.text(1), "False\n", "the next cell")
