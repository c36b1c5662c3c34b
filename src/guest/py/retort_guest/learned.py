"""Imports beforehand what sessions have imported: see src/engine/learn.c.

Nobody has looked at these modules, and whoever runs code has a vote. So each is tried in a child
first, and imported here only if it did nothing there but to be imported: it is quick and small, says
nothing, starts nothing, and leaves alone what belongs to all code. Its generators of random numbers are
noted, or all sessions would draw the same (fresh.py).
"""

import builtins
import gc
import importlib
import locale
import os
import resource
import select
import signal
import socket
import sys
import time
import warnings

from . import fresh

CPU_S = 3            # of one import
WALL_S = 20          # by then one hangs
ALL_S = 40           # for all of them
MEMORY = 256 << 20   # of all of them
GENERATORS_MAX = 16  # each session takes some microseconds for each

_PROGRAMS = {"__main__", "conftest", "idlelib", "test", "tests"}  # do something when they are imported
_OURS = {"_retort", "retort_guest"}


def load(names):
    """The names that are there now: of those that stood the trial."""
    rest = [name for name in names if not (_PROGRAMS | _OURS).intersection(name.split("."))]
    good, there, end = [], [], time.monotonic() + ALL_S
    while rest and time.monotonic() < end:
        passed = _try(good, rest)
        good += rest[:passed]
        del rest[:passed + 1]  # the one that did not, too
    gc.freeze()  # so that only what is new is looked through
    for name in good:
        try:
            importlib.import_module(name)
            there.append(name)
        except BaseException:
            pass
    fresh.note_numpy()
    gc.unfreeze()
    return there


def _try(good, rest):
    """How many of the rest can be imported, one after the other, after the good ones."""
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.setsid()
        try:
            _in_child(good, rest, theirs)
        finally:
            os._exit(0)
    os.close(theirs)
    passed = 0
    while passed < len(rest) and select.select([ours], [], [], WALL_S)[0] and os.read(ours, 1):
        passed += 1
    os.close(ours)
    for kill in (os.killpg, os.kill):  # with what it has started; or it may not have got that far
        try:
            kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    os.waitpid(pid, 0)
    return passed


def _in_child(good, rest, out):
    said = os.memfd_create("said")
    for fd in (1, 2):
        os.dup2(said, fd)
    for name in good:
        importlib.import_module(name)
    memory = _memory()
    for name in rest:
        if not _is_harmless(name, said) or _memory() - memory > MEMORY:
            return
        os.write(out, b"y")


def _memory():
    with open("/proc/self/statm") as text:
        return int(text.read().split()[1]) * resource.getpagesize()


def _is_harmless(name, said):
    before, used = _state(), time.process_time()
    gc.freeze()  # as in load()
    with fresh.noted(), warnings.catch_warnings(record=True) as warned:
        filters = list(warnings.filters)
        importlib.import_module(name)
        wide = [f for f in warnings.filters if f not in filters and _is_wide(*f)]
    fresh.note_numpy()
    return not (warned or wide or len(fresh.generators) > GENERATORS_MAX or _has_said(said)
                or time.process_time() - used > CPU_S or _differs(before, _state()))


def _has_said(said):
    """What was printed may be in a buffer yet."""
    for stream in (sys.stdout, sys.stderr):
        if stream:
            stream.flush()
    return os.fstat(said).st_size > 0


def _is_wide(action, message, category, module, line):
    """A filter for warnings of all code. What a module does with its own is its affair."""
    return message is None and module is None and category.__module__ == "builtins"


def _differs(before, after):
    """Variables of the environment may come; whatever was there stays as it was."""
    return any(old != ({key: new.get(key) for key in old} if isinstance(old, dict) else new)
               for old, new in zip(before, after))


def _state():
    """What is the same for all code, whatever it has imported."""
    return (dict(os.environ), vars(builtins).copy(), list(sys.path), sys.stdin, sys.stdout, sys.stderr,
            sys.excepthook, sys.displayhook, sys.gettrace(), sys.getprofile(), sys.getrecursionlimit(),
            sys.getswitchinterval(), gc.isenabled(), os.getcwd(), locale.setlocale(locale.LC_ALL),
            socket.getdefaulttimeout(), socket.socket,
            [signal.getsignal(number) for number in signal.valid_signals()],
            os.listdir("/proc/self/task"), os.listdir("/proc/self/fd"), _children(),
            _shared_memory(), _own_crypto())


def _children():
    try:
        return os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return None


def _shared_memory():
    """What each session could write to, and all would read."""
    with open("/proc/self/maps") as text:
        return [line for line in text if line.split()[1][1::2] == "ws"]


def _own_crypto():
    """Libraries that come with a package and may have a generator of their own. That of the Python's own
    OpenSSL is seeded anew (fresh.py)."""
    with open("/proc/self/maps") as text:
        files = {line.split(None, 5)[5].strip() for line in text if "-packages/" in line}
    return sorted(path for path in files if "crypto" in path.lower() or "ssl" in path.lower())
