"""Leaves a core dump, of its own memory or of what it was forked from.

The limit is zero and cannot be raised; no process of the sandbox leaves one anywhere.
"""

import os
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


def check(box):
    cores = {p for p in Path("/").glob("core*")} | set(box.tmp.glob("core*"))
    same(
        box.ok(box.run(cell(GUEST))),
        {
            "abort": ["SIGABRT", False],
            "segv": ["SIGSEGV", False],
            "quit": ["SIGQUIT", False],
            "files": [],
        },
    )
    same(
        {p for p in Path("/").glob("core*")} | set(box.tmp.glob("core*")),
        cores,
        "core dumps on the host",
    )
    same(os.listdir(box.tmp), [], "files where it was started")
