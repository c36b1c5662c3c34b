"""Prints ten gigabytes.

What is kept has a size; the rest is read and thrown away. The program's memory stays what it is.
"""

from outside import cell, holds, same

GUEST = """
block = b"y" * (1 << 20)
for _ in range(10 * 1024):
    os.write(1, block)
"""


def check(box):
    run = box.run(cell(GUEST), flags=["--timeout", "2", "--output", "1M"])
    same([run.status(), run.exit], ["timeout", 124], "outcome and exit status")
    holds("output" in run.outcome()["limits_hit"], f"limits hit: {run.outcome()}")
    holds(len(run.stdout) < 4 << 20, f"the document has {len(run.stdout)} bytes")
    holds(run.outcome()["output_dropped"] > 0, f"nothing was dropped: {run.outcome()}")
    holds(run.peak_kb < 150_000, f"the program held {run.peak_kb} kB")
