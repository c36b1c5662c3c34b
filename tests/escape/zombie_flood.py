"""Leaves dead children unburied, its own and orphans that init inherits.

Init buries what it inherits; the guest's own count against its processes.
"""

from outside import cell, plain, same

GUEST = """
orphans = 0
for _ in range(200):
    pid = os.fork()
    if pid == 0:
        try:
            if os.fork() == 0:
                os._exit(0)
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    orphans += 1
why, own = "ok", 0
try:
    for own in range(500):
        if os.fork() == 0:
            os._exit(0)
except OSError as e:
    why = name_of(e.errno)
time.sleep(0.2)
states = [
    open(f"/proc/{p}/stat").read().rsplit(") ", 1)[1].split()[:2]
    for p in os.listdir("/proc")
    if p.isdigit()
]
report(
    orphans=orphans,
    why=why,
    unburied_by_init=sum(s == "Z" and parent == "1" for s, parent in states),
)
"""


def check(box):
    run = box.run(
        cell(GUEST),
        plain("[os.waitpid(-1, 0) for _ in range(own)]; print('alive')"),
        flags=["--pids", "40"],
    )
    same(box.ok(run), {"orphans": 200, "why": "EAGAIN", "unburied_by_init": 0})
    same(run.text(1), "alive\n", "the next cell")
