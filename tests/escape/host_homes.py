"""Looks into the home directories of root and of whoever runs the program.

They are not in the sandbox's root.
"""

from outside import cell, same

GUEST = """
report(
    root=attempt(os.listdir, "/root"),
    homes=os.listdir("/home"),
    own=attempt(os.listdir, HOME),
    file=attempt(open, SECRET),
    expanded=os.path.expanduser("~"),
)
"""


def check(box):
    secret, _ = box.decoy(box.user.pw_dir)
    run = box.run(cell(GUEST, HOME=box.user.pw_dir, SECRET=str(secret)))
    same(
        box.ok(run),
        {
            "root": "ENOENT",
            "homes": ["uploaded_files"],  # a link into the workspace
            "own": "ENOENT",
            "file": "ENOENT",
            "expanded": "/tmp",
        },
    )
