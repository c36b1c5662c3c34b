"""Takes all rights from its files and directories, also from the workspace, so that the host
stumbles.

The host says what it could not read, and goes on.
"""

from outside import cell, holds, plain, same

GUEST = """
open("/workspace/none.txt", "w").write("x")
os.chmod("/workspace/none.txt", 0)
os.makedirs("/workspace/d/e")
open("/workspace/d/e/f.txt", "w").write("x")
os.chmod("/workspace/d", 0)
open("/workspace/real.txt", "w").write("real")
"""


def check(box):
    out = box.dir("out")
    run = box.run(
        cell(GUEST),
        plain("import os; os.chmod('/workspace', 0); print('alive')"),
        plain("print('still')"),
        flags=["--out", out, "--keep-going"],
    )
    same(run.statuses(), ["ok", "ok", "ok"], "outcomes")
    same([run.text(1), run.text(2)], ["alive\n", "still\n"], "the next cells")
    holds("real.txt" in run.files(0), f"files reported: {run.files()}")
