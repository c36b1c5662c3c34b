"""Overwrites the program that runs it through /proc/self/exe (CVE-2019-5736).

The interpreter lies on a read-only mount and belongs to someone else; init's link cannot be
followed.
"""

import hashlib
import os
from pathlib import Path

from outside import PROGRAM, cell, same

GUEST = """
path = os.open("/proc/self/exe", os.O_PATH)
report(
    write=reopen("/proc/self/exe", os.O_WRONLY),
    truncate=reopen("/proc/self/exe", os.O_WRONLY | os.O_TRUNC),
    again=reopen(f"/proc/self/fd/{path}", os.O_WRONLY),
    by_name=reopen(os.path.realpath(sys.executable), os.O_RDWR),
    init=reopen("/proc/1/exe", os.O_WRONLY),
    mapped=sorted(
        {
            reopen("/proc/self/map_files/" + n, os.O_WRONLY)
            for n in os.listdir("/proc/self/map_files")
        }
        - {"ENOENT"}
    ),
)
"""


def digest(path):
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def check(box):
    files = [PROGRAM, os.path.realpath("/usr/bin/python3")]
    before = [digest(f) for f in files]
    same(
        box.ok(box.run(cell(GUEST))),
        {
            "write": "EACCES",
            "truncate": "EROFS",
            "again": "EACCES",
            "by_name": "EACCES",
            "init": "EACCES",
            "mapped": ["EPERM"],
        },
    )
    same([digest(f) for f in files], before, "programs of the host")
