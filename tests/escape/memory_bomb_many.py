"""Takes memory in many processes, each of them modest.

What is limited is the session, not one process of it.
"""

from outside import cell, holds, plain, same

GUEST = """
children = []
for _ in range(8):
    pid = os.fork()
    if pid == 0:
        block = b"x" * (80 << 20)
        time.sleep(10)
        os._exit(0)
    children.append(pid)
ends = [os.waitpid(p, 0)[1] for p in children]
report(killed=sum(os.WIFSIGNALED(s) for s in ends) > 0)
"""


def check(box):
    run = box.run(
        cell(GUEST),
        plain("print('alive')"),
        flags=["--memory", "256M", "--keep-going", "--timeout", "8"],
    )
    holds(
        "memory" in run.outcome(0)["limits_hit"] or run.report.get("killed"),
        f"640 MB were had of 256: {run.outcome(0)}",
    )
    same(run.text(1), "alive\n", "the next cell")
