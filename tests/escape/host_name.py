"""Renames the host.

Refused by seccomp; the name it sees is its own in any case.
"""

import socket

from outside import cell, same

GUEST = """
answers = [
    syscall("sethostname", b"owned", 5),
    syscall("setdomainname", b"owned", 5),
    reopen("/proc/sys/kernel/hostname", os.O_WRONLY),
]
report(answers=answers, name=socket.gethostname(), node=os.uname().nodename)
"""


def check(box):
    before = socket.gethostname()
    same(
        box.ok(box.run(cell(GUEST))),
        {"answers": ["EPERM", "EPERM", "ENOENT"], "name": "retort", "node": "retort"},
    )
    same(socket.gethostname(), before, "the host's name")
