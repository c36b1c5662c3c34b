"""Fills /tmp and /dev/shm, which are memory.

Each has its size, and what is past it fails with ENOSPC.
"""

from harness import cell, holds, same

GUEST = """
def fill(path):
    try:
        for n in range(64):
            with open(f"{path}/fill{n}", "wb", buffering=0) as f:
                for _ in range(4):
                    f.write(bytes(1 << 20))
        return "ok"
    except OSError as e:
        return name_of(e.errno)

report(tmp=fill("/tmp"), shm=fill("/dev/shm"), workspace=attempt(lambda: open("/workspace/ok", "w").write("x")))
"""


def check(box):
    run = box.run(cell(GUEST), flags=["--tmp", "16M", "--memory", "512M"])
    same(box.ok(run), {"tmp": "ENOSPC", "shm": "ENOSPC", "workspace": "ok"})
    holds("tmp" in run.outcome()["limits_hit"], f"limits hit: {run.outcome()}")
