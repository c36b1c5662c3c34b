"""Makes the host's look at the workspace slow: sixty thousand directories, then many small cells.

The scan is bounded; cells that do nothing take hardly longer than they do in an empty workspace.
"""

from outside import SOON, cell, holds, plain

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
    cells = [plain("pass") for _ in range(5)]
    calm = box.run(plain("pass"), *cells)  # how fast this machine is just now
    run = box.run(cell(GUEST), *cells)
    holds(run.exit == 0, run.brief())
    holds(
        run.seconds < 3 * calm.seconds + SOON,
        f"took {run.seconds:.1f} s, and {calm.seconds:.1f} s with an empty workspace",
    )
