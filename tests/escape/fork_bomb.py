"""Forks without end, each child as well.

Held by the number of processes; the time limit ends it, and the session goes on.
"""

from outside import holds, plain, same, shell


def check(box):
    live = box.start(
        *[plain(f"print('beat', {n}); import time; time.sleep(0.1)") for n in range(25)]
    )
    live.wait_for("beat 1")
    run = box.run(
        shell("bomb() { bomb | bomb & }; bomb; sleep 30"),
        plain("print('alive')"),
        flags=["--pids", "64", "--timeout", "1.5", "--grace", "0.5", "--keep-going"],
    )
    holds(run.status(0) in ("timeout", "raised"), f"outcomes: {run.statuses()}")
    same([run.status(1), run.text(1)], ["ok", "alive\n"], "the next cell")
    holds(run.exit in (1, 124), f"exit {run.exit}")
    same(live.end(), 0, "exit status of the neighbour")
