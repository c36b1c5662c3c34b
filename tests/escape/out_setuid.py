"""Hands out a setuid program, in the hope that the host's copy is one and root's.

A copy has the mode of any new file and belongs to whoever runs the program.
"""

import stat

from outside import cell, same

GUEST = """
import shutil

shutil.copy("/usr/bin/id", "/workspace/tool")
os.chmod("/workspace/tool", 0o6777)
open("/workspace/open.txt", "w").write("x")
os.chmod("/workspace/open.txt", 0o666)
os.makedirs("/workspace/d")
os.chmod("/workspace/d", 0o7777)
open("/workspace/d/x.txt", "w").write("x")
"""


def check(box):
    out = box.dir("out")
    run = box.run(cell(GUEST), flags=["--out", out])
    same(run.exit, 0, "exit status")
    found = {str(p.relative_to(out)): p.stat() for p in out.rglob("*")}
    same(sorted(found), ["d", "d/x.txt", "open.txt", "tool"], "what the host has")
    same(
        [n for n, s in found.items() if stat.S_IMODE(s.st_mode) & 0o7022],
        [],
        "set bits, or writable by others",
    )
    same({s.st_uid for s in found.values()}, {box.user.pw_uid}, "owners")
