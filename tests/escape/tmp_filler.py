"""Fills /tmp and /dev/shm, which are memory.

Each has its size, and what is past it fails with ENOSPC; the outcome names the limit.
"""

from outside import cell, same

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


report(
    tmp=fill("/tmp"),
    shm=fill("/dev/shm"),
    workspace=attempt(lambda: open("/workspace/ok", "w").write("x")),
)
open("/tmp/more", "wb").write(bytes(1 << 20))
"""


def check(box):
    run = box.run(cell(GUEST), flags=["--tmp", "16M", "--memory", "512M"])
    same(run.report, {"tmp": "ENOSPC", "shm": "ENOSPC", "workspace": "ok"})
    same([run.status(), run.outcome()["limits_hit"]], ["raised", ["tmp"]], "outcome")
