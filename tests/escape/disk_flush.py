"""Has the host's disk write out what it holds, again and again, by fsync on a file of the system.

The call succeeds and does nothing: a file of a sandbox is on no disk. That it does nothing shows in a descriptor
that is not there; sync and syncfs are refused.
"""

GUEST = """
system = os.open("/usr/bin/env", os.O_RDONLY)
report(
    file=syscall("fsync", system),
    nobody=syscall("fsync", 999),
    data=syscall("fdatasync", 999),
    range=syscall("sync_file_range", 999, 0, 0, 7),
    all=syscall("sync"),
    of_file=syscall("syncfs", system),
)
"""

EXPECT = {"file": "ok", "nobody": "ok", "data": "ok", "range": "ok", "all": "EPERM", "of_file": "EPERM"}
