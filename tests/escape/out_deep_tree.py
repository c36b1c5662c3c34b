"""Makes a tree so deep that a path of it fits in no buffer and a walk of it in no stack.

The walk has a bottom; what lies below is left out, and everything else is still found.
"""

from outside import cell, holds, plain, same

GUEST = """
open("/workspace/before.txt", "w").write("x")
os.chdir("/workspace")
os.mkdir("d")
open("d/bottom.txt", "w").write("x")
for _ in range(10_000):  # from the bottom up, so that no path is long while it is made
    os.mkdir("above")
    os.rename("d", "above/d")
    os.rename("above", "d")
fd, depth = os.open("d", os.O_PATH), 0
while depth < 20_000:
    try:
        fd, old = os.open("d", os.O_PATH, dir_fd=fd), fd
    except FileNotFoundError:
        break
    os.close(old)
    depth += 1
report(depth=depth)
"""


def check(box):
    out = box.dir("out")
    run = box.run(
        cell(GUEST),
        plain("open('/workspace/after.txt', 'w').write('x')"),
        flags=["--out", out],
    )
    same(run.report, {"depth": 10_000})
    same(run.statuses(), ["ok", "ok"], "outcomes")
    holds(
        {"before.txt", "after.txt"} <= set(run.files()),
        f"files reported: {sorted(run.files())[:20]}",
    )
    same(
        sorted(p.name for p in out.iterdir() if p.is_file()),
        ["after.txt", "before.txt"],
        "what the host has",
    )
