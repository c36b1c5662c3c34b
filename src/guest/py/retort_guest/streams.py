"""sys.stdout and sys.stderr: UTF-8 straight into fds 1 and 2.

Nothing is buffered here, so Python's output keeps its place among that of C code and child
processes, which write to the same fds. One print is still one write: print itself puts its
pieces together, so lines of several threads or processes do not mix and the server wakes once.
"""

import builtins
import functools
import io
import os
import sys

from .link import link

_print = builtins.print


class Bytes(io.RawIOBase):
    """sys.stdout.buffer"""

    def __init__(self, name, fd):
        self.name = name
        self.mode = "wb"
        self.fd = fd

    def write(self, data):
        data = bytes(data)
        link.write(self.fd, data)
        return len(data)

    def writable(self):
        return True

    def fileno(self):
        return self.fd

    def isatty(self):
        return False

    def close(self):
        """A TextIOWrapper around this closes it when it goes away; the fd must stay."""


class Stream(io.TextIOBase):
    encoding = "UTF-8"  # spelled as a Jupyter kernel does
    errors = "backslashreplace"  # a lone surrogate must not end a cell
    newlines = None
    line_buffering = True
    write_through = True

    def __init__(self, name, fd):
        self.name = name
        self.mode = "w"
        self.fd = fd
        self.buffer = Bytes(name, fd)

    def write(self, text):
        if not isinstance(text, str):
            raise TypeError("write() argument must be str, not " + type(text).__name__)
        if text:
            link.write(self.fd, text.encode("utf-8", "backslashreplace"))
        return len(text)

    def reconfigure(self, **options):
        """Scripts ask for UTF-8, which they have."""

    def writable(self):
        return True

    def fileno(self):
        return self.fd

    def isatty(self):
        return False

    def close(self):
        """As with Bytes: the fd must stay."""


@functools.wraps(_print)
def _print_once(*args, sep=" ", end="\n", file=None, flush=False):
    if file is None:
        file = sys.stdout
    if type(file) is not Stream or not (sep is None or type(sep) is str) \
            or not (end is None or type(end) is str):
        return _print(*args, sep=sep, end=end, file=file, flush=flush)
    text = (" " if sep is None else sep).join(map(str, args))
    file.write(text + ("\n" if end is None else end))


def install():
    sys.stdout = sys.__stdout__ = Stream("stdout", 1)
    sys.stderr = sys.__stderr__ = Stream("stderr", 2)
    try:
        sys.stdin = sys.__stdin__ = open(0, encoding="utf-8", closefd=False)
    except OSError:
        sys.stdin = sys.__stdin__ = open(os.devnull, encoding="utf-8")
    builtins.print = _print_once


def flush():
    """At the end of a cell: user code may have put a buffering file in their place."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BaseException:  # of whatever kind: the cell is over
            pass
