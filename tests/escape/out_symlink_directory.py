"""Hands out a file below a directory that is a link.

No component of the path may be a link (openat2 with RESOLVE_NO_SYMLINKS, RESOLVE_BENEATH).
"""

from outside import cell, same

GUEST = """
os.symlink("/etc", "/workspace/results")
os.symlink(FOLDER, "/workspace/more")
os.symlink("..", "/workspace/up")
os.makedirs("/workspace/real/deep")
os.symlink("../..", "/workspace/real/deep/up")
open("/workspace/real/deep/data.csv", "w").write("1,2")
"""


def check(box):
    decoy, _ = box.decoy()
    out = box.dir("out")
    run = box.run(cell(GUEST, FOLDER=str(decoy.parent)), flags=["--out", out])
    same(run.exit, 0, "exit status")
    same(
        sorted(str(p.relative_to(out)) for p in out.rglob("*")),
        ["real", "real/deep", "real/deep/data.csv"],
        "what the host has",
    )
