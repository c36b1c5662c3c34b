"""Learns how much memory the host has and how much of it is free.

/proc/meminfo has the session's own limit, and is not the session's to change.
"""

from outside import cell, same

GUEST = """
rows = dict(line.split(":") for line in open("/proc/meminfo"))
kb = {k: int(v.split()[0]) for k, v in rows.items()}
report(
    total=kb["MemTotal"], free=kb["MemFree"], available=kb["MemAvailable"],
    others=sorted({v for k, v in kb.items() if not k.startswith("Mem")}),
    opened=reopen("/proc/meminfo", os.O_WRONLY),
    removed=attempt(os.unlink, "/proc/meminfo"),
    behind=attempt(os.unlink, "/var/lib/retort/1/meminfo"),
    mode=attempt(os.chmod, "/var/lib/retort/1/meminfo", 0o666),
)
"""


def check(box):
    total = 192 << 10
    said = box.ok(box.run(cell(GUEST), flags=["--memory", "192M"]))
    same(
        said,
        {
            "total": total, "free": total, "available": total, "others": [0],
            "opened": "EACCES", "removed": "EROFS", "behind": "EROFS", "mode": "EROFS",
        },
    )
