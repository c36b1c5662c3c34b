"""Opens world-readable files of the host by their full names, wherever a host keeps such files.

None of those directories is in the sandbox's root; the ones that look the same are its own.
"""

import os

from outside import cell, same

GUEST = """
report(
    answers=sorted({attempt(open, p) for p in PATHS}),
    listed=[n for d in DIRS if os.path.isdir(d) for n in os.listdir(d) if n.startswith("decoy-")],
)
"""


def check(box):
    folders = [box.tmp, box.dir("cwd"), "/tmp", "/var/tmp", "/dev/shm"]
    if os.geteuid() == 0:
        folders += ["/run", "/srv", "/opt", "/etc", "/var/lib"]
    paths = [str(box.decoy(folder)[0]) for folder in folders]
    paths += [f"/proc/self/root{p}" for p in paths] + [f"/proc/1/root{p}" for p in paths[:1]]
    run = box.run(cell(GUEST, PATHS=paths, DIRS=[str(f) for f in folders]), cwd=box.tmp / "cwd")
    same(box.ok(run), {"answers": ["EACCES", "ENOENT"], "listed": []})
