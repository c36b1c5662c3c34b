"""Makes a tree so deep that a path of it fits in no buffer and a walk of it in no stack.

The walk has a bottom; what lies below is left out, and everything else is still found.
"""

from harness import cell, holds, plain, same

GUEST = """
open("/workspace/before.txt", "w").write("x")
made = 0
os.chdir("/workspace")
try:
    for made in range(10_000):
        os.mkdir("d")
        os.chdir("d")
    open("bottom.txt", "w").write("x")
except OSError as e:
    pass
os.chdir("/workspace")
report(deep=made > 1000)
"""


def check(box):
    out = box.dir("out")
    run = box.run(cell(GUEST), plain("open('/workspace/after.txt', 'w').write('x')"), flags=["--out", out], seconds=25)
    same(run.report, {"deep": True})
    same(run.statuses(), ["ok", "ok"], "outcomes")
    holds({"before.txt", "after.txt"} <= set(run.files()), f"files reported: {sorted(run.files())[:20]}")
    same(sorted(p.name for p in out.iterdir() if p.is_file()), ["after.txt", "before.txt"], "what the host has")
