"""Lets a file grow, and shrink to nothing, while the host copies it.

A copy ends at the size that was seen; a file that shrinks meanwhile is short, and no fault of
ours.
"""

from outside import cell, holds

GUEST = """
for name in "grows.bin", "shrinks.bin":
    open("/workspace/" + name, "wb").write(bytes(1 << 20))
if os.fork() == 0:
    os.setsid()
    grows, shrinks = (
        os.open("/workspace/" + n, os.O_WRONLY | os.O_APPEND) for n in ("grows.bin", "shrinks.bin")
    )
    end = time.monotonic() + 1000
    block = bytes(1 << 16)
    while time.monotonic() < end:
        if os.fstat(grows).st_size < 64 << 20:
            os.write(grows, block)
        os.ftruncate(shrinks, 0)
        os.ftruncate(shrinks, 1 << 20)
    os._exit(0)
time.sleep(0.1)
"""


def check(box):
    out = box.dir("out")
    run = box.run(cell(GUEST), flags=["--out", out, "--artifact-size", "8M"])
    holds(run.exit == 0, run.brief())
    holds(
        all(p.stat().st_size <= 8 << 20 for p in out.iterdir()),
        "a copy is longer than an artifact may be",
    )
