"""Floods the other stream, from a process that outlives its parent, one byte at a time.

Both streams count to the same size, and the time limit holds whoever prints.
"""

from outside import cell, holds, shell

GUEST = """
subprocess.Popen(["sh", "-c", "yes >&2"], start_new_session=True)
while True:
    os.write(2, b"z")
"""


def check(box):
    run = box.run(
        cell(GUEST),
        shell("yes 1>&2"),
        flags=["--timeout", "1", "--grace", "0.3", "--output", "256K", "--keep-going"],
    )
    holds(
        run.statuses() == ["timeout", "timeout"] and run.exit == 124, f"{run.statuses()} {run.exit}"
    )
    holds(len(run.stdout) < 4 << 20, f"the document has {len(run.stdout)} bytes")
    holds(run.peak_kb < 150_000, f"the program held {run.peak_kb} kB")
