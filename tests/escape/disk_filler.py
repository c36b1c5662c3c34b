"""Fills the disk.

A write past the workspace's size fails with ENOSPC, and the outcome names the limit; the host's
disk is not touched.
"""

from outside import cell, holds, same

GUEST = """
written = 0
with open("/workspace/fill", "wb", buffering=0) as f:
    try:
        for _ in range(200):
            written += f.write(bytes(1 << 20))
        why = "ok"
    except OSError as e:
        why = name_of(e.errno)
report(
    why=why,
    megabytes=written >> 20,
    more=attempt(lambda: open("/workspace/two", "wb").write(bytes(1 << 20))),
)
open("/workspace/three", "wb").write(bytes(1 << 20))
"""


def check(box):
    run = box.run(cell(GUEST), flags=["--disk", "16M"])
    said = run.report
    holds(said["why"] in ("ENOSPC", "EFBIG") and 14 <= said["megabytes"] <= 16, f"reported {said}")
    same(
        [said["more"], run.status(), run.outcome()["limits_hit"]],
        ["ENOSPC", "raised", ["disk"]],
        "outcome",
    )
