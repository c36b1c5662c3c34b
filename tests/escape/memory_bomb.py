"""Takes memory without end, all of it touched.

Held by the cgroup or by init's watch; the outcome is memory, and files survive it.
"""

from outside import cell, holds, plain, same

GUEST = """
open("/workspace/kept.txt", "w").write("kept")
blocks = []
for _ in range(64):
    blocks.append(b"x" * (32 << 20))
"""


def check(box):
    run = box.run(
        cell(GUEST),
        plain("print(open('/workspace/kept.txt').read())"),
        flags=["--memory", "256M", "--keep-going", "--timeout", "20"],
    )
    held_by_cgroup = run.status(0) == "memory"
    same(
        [run.status(0), run.exit],
        ["memory", 137] if held_by_cgroup else ["raised", 1],
        "outcome and exit status",
    )
    holds("memory" in run.outcome(0)["limits_hit"], f"limits hit: {run.outcome(0)}")
    same(run.text(1), "kept\n", "the next cell")
