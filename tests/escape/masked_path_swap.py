"""Swaps /dev/null for a link, so that whoever mounts it next masks nothing (CVE-2025-31133,
CVE-2025-52565).

/dev is read-only, and nothing is ever mounted by path into a running sandbox.
"""

from outside import cell, same, shell

GUEST = """
report(
    removed=attempt(os.unlink, "/dev/null"),
    renamed=attempt(os.rename, "/dev/null", "/dev/x"),
    linked=attempt(os.symlink, "/proc/sys/kernel/core_pattern", "/dev/console"),
    moved_over=attempt(os.rename, "/workspace", "/tmp/w"),
    shm=attempt(os.rmdir, "/dev/shm"),
    mode=attempt(os.chmod, "/dev/null", 0),
)
"""


def check(box):
    run = box.run(cell(GUEST), shell("echo still >/dev/null && test -c /dev/null"))
    same(
        box.ok(run),
        {
            "removed": "EROFS",
            "renamed": "EROFS",
            "linked": "EROFS",
            "moved_over": "EXDEV",
            "shm": "EROFS",
            "mode": "EPERM",
        },
    )
