"""Ends with the status it would like to be seen with.

The outcome is that of the execution; an interpreter that ends by itself has died.
"""

from outside import plain, same

CELLS = [
    "import os; os._exit(0)",
    "import sys; sys.exit(0)",
    "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
    "quit()",
    "import os; os.execv('/bin/true', ['true'])",
    "print('alive')",
]


def check(box):
    run = box.run(*[plain(c) for c in CELLS], flags=["--keep-going"])
    statuses = run.statuses()
    same(
        [statuses[0], statuses[2], statuses[4], statuses[5]],
        ["died", "died", "died", "ok"],
        "outcomes",
    )
    same([run.outcome(i)["state_lost"] for i in (0, 2, 4)], [True, True, True], "state lost")
    same(set(statuses) & {"session_lost"}, set(), "sessions lost")
    same(run.exit, 1, "exit status")
