"""Goes on printing between cells and after the last one.

What comes late is bounded like everything else, and nobody waits for its end.
"""

from outside import cell, holds, plain, shell

GUEST = "subprocess.Popen(['yes', 'late'], start_new_session=True)"


def check(box):
    run = box.run(
        cell(GUEST),
        shell("sleep 0.5"),
        plain("print('answer')"),
        flags=["--output", "256K"],
    )
    holds(run.exit == 0, run.brief())
    holds(run.peak_kb < 150_000, f"the program held {run.peak_kb} kB")
    holds(len(run.stdout) < 4 << 20, f"the document has {len(run.stdout)} bytes")
