"""Leaves a core dump, of its own memory or of what it was forked from.

The limit is zero and cannot be raised; no process of the sandbox leaves one anywhere. Whatever else
crashes on the host may leave its own: one of ours would hold the guest's mark.
"""

import os
import secrets
from pathlib import Path

from outside import cell, same

GUEST = """
def crash(how):
    pid = os.fork()
    if pid == 0:
        os.chdir("/workspace")
        how()
        os._exit(0)
    status = os.waitpid(pid, 0)[1]
    return [signal.Signals(os.WTERMSIG(status)).name, os.WCOREDUMP(status)]


report(
    abort=crash(os.abort),
    segv=crash(lambda: ctypes.string_at(0)),
    quit=crash(lambda: os.kill(os.getpid(), signal.SIGQUIT)),
    files=[n for d in ("/workspace", "/tmp") for n in os.listdir(d) if n.startswith("core")],
)
"""


def holds_mark(path, mark):
    """Whether the mark is in a file, however long, that may be gone by now or not be ours to read."""
    kept = b""
    try:
        with open(path, "rb") as file:
            while chunk := file.read(1 << 20):
                if mark in kept + chunk:
                    return True
                kept = chunk[-len(mark):]
    except OSError:
        pass
    return False


def check(box):
    mark = secrets.token_hex(16)
    same(
        box.ok(box.run(cell(GUEST, mark=mark))),
        {
            "abort": ["SIGABRT", False],
            "segv": ["SIGSEGV", False],
            "quit": ["SIGQUIT", False],
            "files": [],
        },
    )
    found = [p for p in Path("/").glob("core*") if p.is_file() and holds_mark(p, mark.encode())]
    same(found, [], "core dumps on the host")
    same(os.listdir(box.tmp), [], "files where it was started")
