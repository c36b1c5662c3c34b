"""Warming up: the paths that first cells take, taken before the fork.

up(): code that has run is specialised, its caches are filled and its imports done. Ten rounds
are enough for CPython to specialise bytecode: a first cell is no sooner done after twenty. The output
of these rounds is thrown away, and the shell forgets that it ran.

plug(): fills the free blocks in Python's small-object pools for good. A block freed while warming
up lies in a page full of live objects; a kernel that allocates it copies the page, while a fresh
pool is a zeroed page that holds nothing but the kernel's own. With pandas that is half a megabyte
less per kernel. malloc's holes are _retort.plug()'s affair.
"""

import os
import re
import sys

from . import fresh, streams
from .link import ZYGOTE, link

ROUNDS = 10

_PLAIN = ["x = 1", "print(2 + 2)", "x", "def f(n):\n    return n + 1\nf(x);", "1 / 0", "x = = 1",
          "import sys\nprint('a', file=sys.stderr)", "display(x)"]
_MAGIC = ["!true", "%time x", "y = !true"]
_PANDAS = ["import pandas as pd", "d = pd.DataFrame({'a': [1, 2, 3], 'b': list('xyz')})", "d",
           "d.describe()", "d.groupby('b').a.sum()", "d['c']"]
# What most first cells do; more would cost every session memory that few of them use.
_FIRST = ["x = 1", "print(2 + 2)", "x"]
_FIRST_PANDAS = ["import pandas as pd", "d = pd.DataFrame({'a': range(1000), 'b': range(1000)})",
                 "d.describe()"]
_PLOT = ["import matplotlib.pyplot as plt\nfigure, axes = plt.subplots()\naxes.plot([1, 2])\n"
         "axes.set_title('t')"]


def allow_old_xlrd():
    """Lets pandas read .xls with the xlrd of Debian, which is older than pandas asks for. Newer ones
    have lost .xlsx, for which there is openpyxl, and are the same otherwise."""
    optional = sys.modules.get("pandas.compat._optional")
    if "xlrd" in getattr(optional, "VERSIONS", ()):
        optional.VERSIONS["xlrd"] = "1.2.0"


def up(shell):
    assert link.mode == ZYGOTE
    null = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    real = sys.stdout.fd, sys.stderr.fd
    _aim(null, null)
    try:
        for _ in range(ROUNDS):
            fresh.reseed()
        _cells(shell, _PLAIN, ROUNDS)
        _cells(shell, _MAGIC, 1)  # for its imports: a program is started by most of them
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


def lesson(shell, teach):
    """In a child of the finished zygote: once through what first cells do, to see which pages
    they touch. Those that any cell touches are taught first, and then those of the packages."""
    null = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    _aim(null, null)
    fresh.reseed()
    shell.arrive("/")
    _cells(shell, _FIRST, 1)
    teach()
    if "pandas" in sys.modules:
        _cells(shell, _FIRST_PANDAS, 1)
    teach()


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


# --- plug ---

_ROW = re.compile(rb"^ +\d+ +(\d+) +\d+ +\d+ +(\d+)$", re.M)  # class, size, pools, used, free

_plugs = []


def _free_blocks():
    """(block size, how many are free) of each size class; empty with another allocator."""
    log = os.memfd_create("mallocstats")
    stderr = os.dup(2)
    os.dup2(log, 2)
    try:
        sys._debugmallocstats()  # prints, to the C library's stderr
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)
    text = os.pread(log, 1 << 20, 0)
    os.close(log)
    return [(int(size), int(free)) for size, free in _ROW.findall(text)]


def _block(size):
    """An object in a block of this size."""
    if size <= 16:
        return object()
    if size <= 32:
        return float(size)
    return bytes(size - sys.getsizeof(b""))


def plug():
    for size, free in _free_blocks():
        _plugs.append([_block(size) for _ in range(free)])
