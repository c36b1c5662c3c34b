"""Hands out a second name of a file it may not change, or keeps one of a file of the host.

Links do not cross mounts, and everything of the host's lies on another one.
"""

from outside import cell, same

GUEST = """
sources = ("/etc/passwd", os.__file__, "/usr/bin/su", "/proc/version", "/dev/null", "/opt/retort")
path = os.open("/etc/passwd", os.O_PATH)
open("/workspace/a.txt", "w").write("mine")
os.link("/workspace/a.txt", "/workspace/b.txt")
report(
    answers=sorted({attempt(os.link, s, f"/workspace/link{i}") for i, s in enumerate(sources)}),
    by_fd=attempt(os.link, f"/proc/self/fd/{path}", "/workspace/fd", follow_symlinks=True),
)
"""


def check(box):
    out = box.dir("out")
    run = box.run(cell(GUEST), flags=["--out", out])
    same(box.ok(run), {"answers": ["EXDEV"], "by_fd": "EXDEV"})
    same(sorted(p.name for p in out.iterdir()), ["a.txt", "b.txt"], "what the host has")
    same(
        [p.stat().st_nlink for p in sorted(out.iterdir())], [1, 1], "names of each file on the host"
    )
