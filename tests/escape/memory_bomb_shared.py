"""Takes memory that belongs to no process: shared pages, files in memory, deleted ones, pipes,
sockets.

Files in memory have their file systems' sizes, anonymous files and System V are refused, and what
is left counts to the session.
"""

from outside import cell, holds, plain, same

GUEST = """
import mmap

held, why = 0, "ok"
blocks = []
try:
    for _ in range(40):
        block = mmap.mmap(-1, 16 << 20)  # shared and anonymous
        for at in range(0, len(block), 4096):
            block[at] = 1
        blocks.append(block)
        held += 16
except (OSError, MemoryError) as e:
    why = type(e).__name__
report(held=held, why=why)
"""


def check(box):
    run = box.run(
        cell(GUEST),
        plain("print('alive')"),
        flags=["--memory", "256M", "--keep-going", "--timeout", "10"],
    )
    said = run.report
    holds(
        said.get("held", 0) <= 256 and (run.status(0) == "memory" or said["why"] != "ok"),
        f"{said}, {run.outcome(0)}",
    )
    same(run.text(1), "alive\n", "the next cell")
