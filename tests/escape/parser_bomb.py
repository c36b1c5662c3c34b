"""Crashes the compiler: nesting, giant literals, null bytes, a cell of brackets alone.

Compiling happens inside (CVE-2025-3248 was a server that only wanted to validate code). A dead
interpreter is an outcome.
"""

from outside import holds, plain, same

CELLS = [
    "(" * 5000 + ")" * 5000,
    "-" * 60_000 + "1",
    "x = " + "[" * 2000,
    "@(lambda f: f)\n" * 300 + "def f(): pass",
    "f'" + "{" * 60 + "'",
    "print('alive')",
]


def check(box):
    run = box.run(*[plain(c) for c in CELLS], flags=["--keep-going", "--timeout", "5"])
    holds(run.exit == 1, f"exit {run.exit}: {run.brief()}")
    holds(set(run.statuses()) <= {"ok", "raised", "died"}, f"outcomes: {run.statuses()}")
    same(run.text(5), "alive\n", "the last cell")
