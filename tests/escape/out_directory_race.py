"""Swaps a directory on the path for a link while the host walks through it (CVE-2021-30465).

Paths are resolved beneath the workspace in one call, which fails when a component is a link.
"""

from outside import cell, holds, plain, same

GUEST = """
os.makedirs("/workspace/d")
open("/workspace/d/" + os.path.basename(DECOY), "w").write("mine")
if os.fork() == 0:
    os.setsid()
    os.chdir("/workspace")
    end = time.monotonic() + 1000
    os.symlink(os.path.dirname(DECOY), "link")
    while time.monotonic() < end:
        os.rename("d", "kept")
        os.rename("link", "d")
        os.rename("d", "link")
        os.rename("kept", "d")
        os.utime("d/" + os.path.basename(DECOY))
    os._exit(0)
"""


def check(box):
    decoy, secret = box.decoy()
    out = box.dir("out")
    steps = [plain("import time; time.sleep(0.02)") for _ in range(30)]
    run = box.run(cell(GUEST, DECOY=str(decoy)), *steps, flags=["--out", out])
    holds(run.exit == 0, run.brief())
    for p in out.rglob("*"):
        holds(not p.is_symlink(), f"{p} is a link")
        if p.is_file():
            same(p.read_text() in ("mine", ""), True, f"{p.name} is the guest's own")
