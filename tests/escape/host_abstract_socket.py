"""Connects to a Unix socket without a file: containerd's was open to every container on the host's
network (CVE-2020-15257).

Abstract names belong to the network namespace; Landlock scopes them besides.
"""

import secrets
import select
import socket

from outside import cell, same

GUEST = """
def to(kind):
    return attempt(socket.socket(socket.AF_UNIX, kind).connect, "\\0" + NAME)


before = [to(kind) for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET)]
listed = [line for line in open("/proc/net/unix") if NAME in line]
own = socket.socket(socket.AF_UNIX)
own.bind("\\0" + NAME)
own.listen()
report(before=before, listed=listed, own=to(socket.SOCK_STREAM))
"""


def check(box):
    name = "retort-escape-" + secrets.token_hex(8)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("\0" + name)
        listener.listen()
        run = box.run(cell(GUEST, NAME=name))
        same(box.ok(run), {"before": ["ECONNREFUSED"] * 3, "listed": [], "own": "ok"})
        same(select.select([listener], [], [], 0.1)[0], [], "what arrived at the host's listener")
