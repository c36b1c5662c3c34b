"""Signals everything it can reach: every process, its group, the group of init.

The pid namespace ends at init, and init is out of reach; what is left is the guest's own.
"""

from outside import cell, plain, same

GUEST = """
kept = "still here"
sleeper = subprocess.Popen(["sleep", "30"], start_new_session=True)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
attempt(os.kill, -1, signal.SIGKILL)
report(
    sleeper=sleeper.wait(),
    group_of_init=attempt(os.killpg, 1, signal.SIGKILL),
    term=attempt(os.kill, 0, signal.SIGTERM),
)
"""


def check(box):
    run = box.run(cell(GUEST), plain("print(kept)"))
    same(run.report, {"sleeper": -9, "group_of_init": "ESRCH", "term": "ok"})
    same(run.statuses(), ["ok", "ok"], "outcomes")
    same(run.text(1), "still here\n", "the next cell")
