"""Hands out a link named like a picture; the host copies what it points to (Judge0,
CVE-2024-28185).

The host follows no link below the workspace: a link is not an artifact.
"""

from outside import cell, holds, same

GUEST = """
for name, target in (
    ("plot.png", "/etc/passwd"),
    ("shadow.csv", "/etc/shadow"),
    ("decoy.txt", DECOY),
    ("self.txt", "/proc/self/environ"),
    ("root.txt", "/proc/self/root" + DECOY),
    ("up.txt", "../../../../../../.." + DECOY),
    ("loop", "loop"),
    ("out.txt", "/dev/stdin"),
):
    os.symlink(target, "/workspace/" + name)
open("/workspace/real.txt", "w").write("real")
"""


def check(box):
    decoy, secret = box.decoy()
    out = box.dir("out")
    run = box.run(cell(GUEST, DECOY=str(decoy)), flags=["--out", out])
    same(run.exit, 0, "exit status")
    same(sorted(p.name for p in out.iterdir()), ["real.txt"], "what the host has")
    holds(not any(p.is_symlink() for p in out.rglob("*")), "a link was copied as a link")
    holds(secret not in run.stdout.decode(), "the secret is in the document")
