"""Walks everything that can be reached from the root, looking for what it should not see.

The top of the tree is a fixed list, and nothing of the host's is anywhere below. /home holds no
home, but a link into the workspace.
"""

import os

from outside import cell, same

GUEST = """
found = []
for top, dirs, files in os.walk("/"):
    if top == "/":
        listed = sorted(dirs + files)
        dirs[:] = [d for d in dirs if d not in ("proc", "usr")]
    found += [os.path.join(top, n) for n in dirs + files if n.startswith("decoy-")]
report(top=listed, found=found, home={n: os.readlink("/home/" + n) for n in os.listdir("/home")})
"""

OWN = ["dev", "etc", "home", "mnt", "opt", "proc", "run", "skills", "tmp", "usr", "var", "workspace"]


def check(box):
    box.decoy()
    box.decoy(box.user.pw_dir)
    links = [
        n for n in ("bin", "sbin", "lib", "lib32", "lib64", "libx32") if os.path.exists("/" + n)
    ]
    home = {"uploaded_files": "/workspace/uploaded_files"}
    same(box.ok(box.run(cell(GUEST))), {"top": sorted(OWN + links), "found": [], "home": home})
