"""Lists the processes of the host, the zygote and other sessions.

The pid namespace holds init and what it started; /proc is that of this namespace.
"""

from outside import cell, same

GUEST = """
listed = sorted(int(p) for p in os.listdir("/proc") if p.isdigit())
answers = {p: attempt(os.kill, p, 0) for p in range(3, 40000)}
report(
    listed=listed == [1, os.getpid()],
    parent=os.getppid(),
    alive=[p for p, a in answers.items() if a != "ESRCH" and p != os.getpid()],
)
"""


def check(box):
    other = box.start(cell("print('up', flush=True); time.sleep(20)"))
    other.wait_for("up")
    same(box.ok(box.run(cell(GUEST))), {"listed": True, "parent": 1, "alive": []})
