"""Reads host paths, user names and disk layout from the list of mounts.

What is shown comes from the system's directories and the program's own two: its guest files and
its cache. The latter's path names whoever runs it, and is all that does.
"""

from outside import PROGRAM, cell, same

GUEST = """
rows = [line.split() for line in open("/proc/self/mountinfo")]
report(
    sources=sorted({r[3] for r in rows if r[3] != "/"}),
    options=sorted({o.split("=")[0] for r in rows for o in r[-1].split(",")}),
)
"""

SYSTEM = ("/usr", "/etc/", "/bin", "/sbin", "/lib", "/opt/retort", "/var/lib/ghostscript")
VIEW = ("/1/", "/none")  # of the files that tell the session its size


def own_root():
    """Where the system's own root lies in its file system: "" but in a container or a chroot."""
    rows = [line.split() for line in open("/proc/self/mountinfo")]
    return next(r[3] for r in rows if r[4] == "/").rstrip("/")


def check(box):
    ours = (
        str(PROGRAM.parent),
        str(PROGRAM.parent.parent),
        f"{box.user.pw_dir}/.cache/retort/",
        "/var/cache/retort/",
    )
    devices = ("/null", "/zero", "/full", "/random", "/urandom", "/dev/")
    said = box.ok(box.run(cell(GUEST)))
    above = own_root()
    said["sources"] = [s[len(above):] if s.startswith(above) else s for s in said["sources"]]
    same(
        [s for s in said["sources"] if not s.startswith((*SYSTEM, *ours, *devices, *VIEW))],
        [],
        "places of the host that mounts come from",
    )
    same(
        [o for o in said["options"] if o in ("upperdir", "lowerdir", "workdir", "fd", "user_id")],
        [],
        "options that tell of more",
    )
