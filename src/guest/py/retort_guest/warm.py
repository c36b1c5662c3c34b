"""Warming up: the paths that first cells take, taken before the fork.

Code that has run is specialised, its caches are filled and its imports done. Twenty rounds are
enough for CPython to specialise bytecode; more do not help. Everything said meanwhile is thrown
away, and the shell forgets that it ran.
"""

import os
import sys

from . import fresh, streams
from .link import ZYGOTE, link

ROUNDS = 20

_PLAIN = ["x = 1", "print(2 + 2)", "x", "def f(n):\n    return n + 1\nf(x);", "1 / 0", "x = = 1",
          "import sys\nprint('a', file=sys.stderr)", "display(x)"]
_MAGIC = ["!true", "%time x", "y = !true"]
_PANDAS = ["import pandas as pd", "d = pd.DataFrame({'a': [1, 2, 3], 'b': list('xyz')})", "d",
           "d.describe()", "d.groupby('b').a.sum()", "d['c']"]
_PLOT = ["import matplotlib.pyplot as plt\nfigure, axes = plt.subplots()\naxes.plot([1, 2])\n"
         "axes.set_title('t')"]


def up(shell):
    assert link.mode == ZYGOTE
    null = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    real = sys.stdout.fd, sys.stderr.fd
    _aim(null, null)
    try:
        for _ in range(ROUNDS):
            fresh.reseed()
        _cells(shell, _PLAIN, ROUNDS)
        _cells(shell, _MAGIC, 2)
        if "pandas" in sys.modules:
            _cells(shell, _PANDAS, ROUNDS)
        if "matplotlib" in sys.modules:
            _cells(shell, _PLOT, 2)  # a figure is slow, and its code mostly C
            _drop_fonts()
    finally:
        _aim(*real)
        os.close(null)
    streams.flush()
    shell.forget()


def _aim(out, err):
    for stream, fd in ((sys.stdout, out), (sys.stderr, err)):
        stream.fd = stream.buffer.fd = fd


def _cells(shell, cells, rounds):
    for number in range(rounds):
        for code in cells:
            shell.run(code, number + 1)


def _drop_fonts():
    # Open font files: every child would share the file's offset with all the others.
    manager = sys.modules.get("matplotlib.font_manager")
    cached = getattr(manager, "_get_font", None)
    if hasattr(cached, "cache_clear"):
        cached.cache_clear()
