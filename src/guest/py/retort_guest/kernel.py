"""The life of one kernel: forked from the zygote's image, it takes cells until the server goes."""

import _signal  # the signal module's enums would cost each kernel thirty pages
import builtins
import getpass
import os
import pdb
import sys

from . import fonts, fresh, packages, profiles, streams
from .imports import finder
from .link import CHILD, link
from .shell import NO_DEBUGGER

NOBODY = "%s is not available here: nobody can answer. Put the value into the code."


def _input(prompt=""):
    """Fails: there is nobody to ask."""
    raise EOFError(NOBODY % "input()")


def _getpass(prompt="Password: ", stream=None):
    """Fails: there is nobody to ask."""
    raise EOFError(NOBODY % "getpass()")


def _no_debugger(*args, **kwargs):
    raise RuntimeError(NO_DEBUGGER)


def refuse_questions():
    """Whatever would wait for a person fails at once and says why."""
    builtins.input = _input
    getpass.getpass = _getpass
    sys.breakpointhook = _no_debugger
    pdb.Pdb.set_trace = pdb.Pdb._cmdloop = _no_debugger


def lend(env):
    """Sets variables for one cell: what they were before, for take_back()."""
    before = {}
    for line in env:
        name, _, value = line.partition(b"=")
        before[name] = os.environb.get(name)
        os.environb[name] = value
    return before


def take_back(before):
    for name, value in before.items():
        if value is None:
            os.environb.pop(name, None)
        else:
            os.environb[name] = value


def main(shell, hooks):
    """Never returns."""
    link.open()  # first of all: what follows is done while the server prepares a cell
    hooks.release()
    fonts.share()
    fresh.reseed()
    shell.arrive(os.getcwd())
    finder.begin()
    for number in (_signal.SIGHUP, _signal.SIGTERM):
        # Ignored by the processes we come from; multiprocessing ends its workers with it.
        _signal.signal(number, _signal.SIG_DFL)
    while True:
        cell = link.next_cell(shell.event_loop())
        if cell is None:
            os._exit(0)
        code, number, env = cell
        profile, env = profiles.choose(env) if env else (profiles.none, env)
        before = lend(env) if env else None
        packages.refresh()
        link.begin()
        profile.before(shell, code)
        status = shell.run(code, number)
        streams.flush()
        profile.after(shell, status)
        if before:
            take_back(before)
        if link.mode == CHILD:
            os._exit(status)  # the cell forked and the child came out at its end
        link.end(status, finder.told())
