"""Makes a hundred thousand files, for the host to list, report and copy.

The disk has a number of files too, and the answer a number of artifacts; the outcome names it.
"""

from outside import cell, holds, same

GUEST = """
made, why = 0, "ok"
os.chdir("/workspace")
try:
    for made in range(100_000):
        os.close(os.open(f"f{made}", os.O_CREAT | os.O_WRONLY))
except OSError as e:
    why = name_of(e.errno)
report(many=made > 1000, why=why)
"""


def check(box):
    out = box.dir("out")
    run = box.run(cell(GUEST), flags=["--out", out, "--artifacts", "50"])
    said = run.report
    holds(said.get("many") and said["why"] in ("ok", "ENOSPC"), f"reported {said}")
    holds("artifact_count" in run.outcome()["limits_hit"], f"limits hit: {run.outcome()}")
    same([len(run.files()), len(list(out.iterdir()))], [50, 50], "files reported, and on the host")
    holds(run.peak_kb < 300_000, f"the program held {run.peak_kb} kB")
