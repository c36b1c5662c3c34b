"""Writes through a link that waits in the host's output directory under the name it will use.

The host writes no file through a link: the link is replaced or the file refused.
"""

from outside import cell, holds, same

GUEST = """
open("/workspace/plot.png", "w").write("owned")
os.makedirs("/workspace/sub")
open("/workspace/sub/data.csv", "w").write("owned")
"""


def check(box):
    victim = box.file("victim.txt", b"precious")
    folder = box.dir("elsewhere")
    out = box.dir("out")
    (out / "plot.png").symlink_to(victim)
    (out / "sub").symlink_to(folder)
    box.run(cell(GUEST), flags=["--out", out])
    same(victim.read_bytes(), b"precious", "the file that the link points to")
    same(list(folder.iterdir()), [], "the directory that the link points to")
    holds(
        not (out / "plot.png").is_symlink() or (out / "plot.png").readlink() == victim,
        "the link was changed",
    )
