"""Splices a read-only file into a pipe and writes over the page it shares (CVE-2022-0847).

A kernel with the bug is out of our hands; one without it leaves the file as it was.
"""

import os
from pathlib import Path

from outside import cell, same

GUEST = """
r, w = os.pipe()
size = libc.fcntl(w, 1032)
for _ in range(size // 4096):
    os.write(w, bytes(4096))
for _ in range(size // 4096):
    os.read(r, 4096)
fd = os.open(os.__file__, os.O_RDONLY)
moved = os.splice(fd, w, 1, offset_src=4)
os.write(w, b"PWNED")
report(moved=moved, changed=b"PWNED" in open(os.__file__, "rb").read(64), path=os.__file__)
"""


def check(box):
    said = box.ok(box.run(cell(GUEST)))
    path = said.pop("path")
    same(said, {"moved": 1, "changed": False})
    same(
        b"PWNED" in Path(os.path.realpath(path)).read_bytes()[:64], False, "the host's copy changed"
    )
