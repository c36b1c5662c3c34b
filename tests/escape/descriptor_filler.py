"""Opens files without end.

EMFILE at the limit; the outcome names it, and the next cell works.
"""

from outside import cell, holds, plain, same

GUEST = """
held, why = [], "ok"
try:
    for _ in range(5000):
        held.append(os.open("/dev/null", os.O_RDONLY))
except OSError as e:
    why = name_of(e.errno)
count = len(held)
for fd in held:
    os.close(fd)
report(why=why, held=count < 256)
raise OSError(24, "Too many open files")
"""


def check(box):
    run = box.run(
        cell(GUEST), plain("print('alive')"), flags=["--open-files", "256", "--keep-going"]
    )
    same(run.report, {"why": "EMFILE", "held": True})
    holds("open_files" in run.outcome(0)["limits_hit"], f"limits hit: {run.outcome(0)}")
    same(run.text(1), "alive\n", "the next cell")
