"""Makes a file of 8 TB that takes no room, for the host to copy.

Longer than the sandbox's files may be: EFBIG. What is allowed and still past the size of an
artifact is reported as too large and not copied.
"""

from outside import cell, holds, same

GUEST = """
fd = os.open("/workspace/huge.bin", os.O_CREAT | os.O_WRONLY, 0o644)
refused = attempt(os.ftruncate, fd, 8 << 40)
size = 200 << 20
os.ftruncate(fd, size)
report(
    refused=refused,
    seek=attempt(os.pwrite, fd, b"x", 8 << 40),
    size=os.fstat(fd).st_size,
    blocks=os.fstat(fd).st_blocks,
)
"""


def check(box):
    out = box.dir("out")
    run = box.run(
        cell(GUEST), flags=["--out", out, "--disk", "256M", "--artifact-size", "1M"]
    )
    same(run.report, {"refused": "EFBIG", "seek": "EFBIG", "size": 200 << 20, "blocks": 0})
    found = run.files()["huge.bin"]
    same([found["size"], found.get("too_large")], [200 << 20, True], "what is said of the file")
    same([p.stat().st_size for p in out.iterdir()], [], "what the host has")
    holds(run.peak_kb < 200_000, f"the program held {run.peak_kb} kB")
