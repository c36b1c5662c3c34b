"""Displays pictures without end, in the way that is provided for.

What is kept of an execution has a size, whatever it is made of.
"""

from outside import holds, plain

GUEST = """
from IPython.display import HTML, display, clear_output

while True:
    display(HTML("<b>" + "x" * 1_000_000))
    clear_output(wait=True)
"""


def check(box):
    run = box.run(
        plain(GUEST), flags=["--timeout", "2", "--grace", "0.5", "--output", "1M"]
    )
    holds(run.exit == 124, f"exit {run.exit}: {run.brief()}")
    holds(run.peak_kb < 300_000, f"the program held {run.peak_kb} kB")
    holds(len(run.stdout) < 32 << 20, f"the document has {len(run.stdout)} bytes")
