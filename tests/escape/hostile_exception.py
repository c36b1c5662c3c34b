"""Raises errors that lie about themselves: huge, endless, unprintable, nested ten thousand deep.

Text is cut where it is made and checked where it arrives.
"""

from outside import holds, plain, same

CELLS = [
    "raise ValueError('x' * 50_000_000)",
    "class E(Exception):\n    def __str__(self): raise E\n    __repr__ = __str__\nraise E",
    "E = type('E' * 100_000, (Exception,), {})\nraise E('name')",
    "E = type('a\\nb\\x1b[2J', (Exception,), {})\nraise E('\\ud800\\x00\\x1b]0;owned\\x07')",
    "e = None\nfor i in range(10_000):\n    e, e.__cause__ = ValueError(i), e\nraise e",
]
# Ends one way or another: how far it gets in its time is the machine's affair.
DEEP = "import sys\nsys.setrecursionlimit(10**6)\ndef f(n):\n    return f(n + 1)\nf(0)"
ALIVE = "print('alive')"


def check(box):
    run = box.run(*[plain(c) for c in [*CELLS, ALIVE]], flags=["--keep-going", "--timeout", "60"], alone=True)
    holds(run.exit == 1, f"exit {run.exit}: {run.brief()}")
    same(run.statuses(), ["raised"] * len(CELLS) + ["ok"], "outcomes")
    same(run.text(len(CELLS)), "alive\n", "the last cell")
    holds(len(run.stdout) < 16 << 20, f"the document has {len(run.stdout)} bytes")
    holds(run.peak_kb < 300_000, f"the program held {run.peak_kb} kB")
    deep = box.run(plain(DEEP), plain(ALIVE), flags=["--keep-going", "--timeout", "2"])
    holds(deep.statuses()[0] != "ok", f"outcomes: {deep.statuses()}")
    same(deep.text(1), "alive\n", "the last cell")
