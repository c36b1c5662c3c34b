"""Makes files without contents, directories, links and names until there are no more inodes.

The file systems have a number of inodes too: ENOSPC.
"""

from outside import cell, holds, plain, same

GUEST = """
def fill(place, make):
    made = 0
    try:
        while made < 400_000:
            make(f"{place}/{made}")
            made += 1
        return "ok"
    except OSError as e:
        return name_of(e.errno)
    finally:
        counts.append(made)


counts = []
os.mkdir("/tmp/d")
report(
    files=fill("/tmp/d", lambda p: os.close(os.open(p, os.O_CREAT))),
    links=fill("/dev/shm", lambda p: os.symlink("x", p)),
    more=attempt(os.mkdir, "/tmp/more"),
)
"""


def check(box):
    run = box.run(
        cell(GUEST), plain("print('alive')"), flags=["--tmp", "16M", "--timeout", "100"]
    )
    holds(run.exit == 0, run.brief())
    same(run.report, {"files": "ENOSPC", "links": "ENOSPC", "more": "ENOSPC"})
    same(run.text(1), "alive\n", "the next cell")
