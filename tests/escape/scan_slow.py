"""Makes the host's look at the workspace slow: sixty thousand directories, then many small cells.

The scan is bounded; a cell that does nothing answers in well under a second all the same.
"""

from outside import cell, holds, plain

GUEST = """
os.chdir("/workspace")
try:
    for a in range(60):
        os.mkdir(str(a))
        for b in range(1000):
            os.mkdir(f"{a}/{b}")
except OSError:
    pass
"""


def check(box):
    run = box.run(cell(GUEST), *[plain("pass") for _ in range(5)], seconds=30)
    holds(run.exit == 0, run.brief())
    holds(run.seconds < 8, f"took {run.seconds:.1f} s")
