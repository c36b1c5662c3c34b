"""Sessions of the Qwen door: the predefined names that its tool promises, and charts with Chinese
text.

seaborn and sympy take seconds to import, so a module is imported when a cell first mentions its
name. A cell that makes up a name at run time imports the module itself, as anywhere else.
"""

import _signal  # as in kernel.py
import builtins
import importlib
import os
import re
import sys

from . import fonts, warm
from .wire import STATUS_INTERRUPTED

_MODULES = {
    "json": "json", "math": "math", "os": "os", "re": "re", "signal": "signal",
    "matplotlib": "matplotlib", "plt": "matplotlib.pyplot", "np": "numpy", "pd": "pandas",
    "sns": "seaborn",
}
_MEMBERS = {
    "FontProperties": "matplotlib.font_manager",
    "Eq": "sympy", "solve": "sympy", "symbols": "sympy",
}
_WORD = re.compile(r"[^\W\d]\w*")
_DRAWS = {"matplotlib", "plt", "sns", "FontProperties", "pylab", "seaborn", "plot", "hist"}

# The look of the tool's charts: white lines on grey, and colours that go with it.
_LOOK = {
    "axes.facecolor": "#eaeaf2", "axes.edgecolor": "white", "axes.grid": True,
    "axes.axisbelow": True, "axes.linewidth": 1.25, "grid.color": "white", "grid.linestyle": "-",
    "grid.linewidth": 1.0, "text.color": ".15", "axes.labelcolor": ".15", "xtick.color": ".15",
    "ytick.color": ".15", "xtick.bottom": False, "ytick.left": False, "patch.edgecolor": "w",
    "patch.force_edgecolor": True, "lines.linewidth": 1.5, "lines.solid_capstyle": "round",
}


def _no_input(prompt=""):
    """Fails: there is nobody to ask."""
    raise NotImplementedError("Python input() function is disabled.")


def _stat(pid):
    """(parent, session) of a process; None when it has ended."""
    try:
        with open("/proc/%d/stat" % pid, "rb") as stat:
            words = stat.read().rpartition(b")")[2].split()
        return int(words[1]), int(words[3])
    except (OSError, IndexError, ValueError):
        return None


def _writes_to(pid):
    """What a process's output streams are."""
    found = set()
    for number in (1, 2):
        try:
            found.add(os.readlink("/proc/%s/fd/%d" % (pid, number)))
        except OSError:
            pass
    return found - {"/dev/null"}


def _left_behind():
    """The processes that cells have started: those that come from this one, and those whose parent
    has ended (`sleep 60 &`), which share this one's session or its output."""
    own = os.getpid()
    alive = {int(name): _stat(int(name)) for name in os.listdir("/proc") if name.isdigit()}
    output = _writes_to("self")
    found = {pid for pid, stat in alive.items()
             if pid != 1 and stat and (stat[1] == own or output & _writes_to(pid))} | {own}
    grown = True
    while grown:
        grown = {pid for pid, stat in alive.items() if stat and stat[0] in found} - found
        found |= grown
    return found - {own}


class Profile:
    def __init__(self, imports):
        self._left = {**_MODULES, **_MEMBERS}
        self._drawn = False
        builtins.input = _no_input

    def before(self, shell, code):
        words = set(_WORD.findall(code))
        if not self._drawn and words & _DRAWS:
            self._drawn = True
            self._draw()
        for name in words & self._left.keys():
            self._fill(shell.user_ns, name)

    def after(self, shell, status):
        if status != STATUS_INTERRUPTED:
            return
        # What a cell without time left behind would run on for ever.
        for pid in _left_behind():
            try:
                os.kill(pid, _signal.SIGKILL)
            except OSError:
                pass

    def _fill(self, namespace, name):
        module = self._left.pop(name)
        try:
            value = importlib.import_module(module)
        except Exception:
            return  # this Python has no such thing: the cell says so when it needs it
        warm.allow_old_xlrd()
        namespace.setdefault(name, getattr(value, name) if name in _MEMBERS else value)

    def _draw(self):
        try:
            matplotlib = importlib.import_module("matplotlib")
        except Exception:
            return
        fonts.widen()
        matplotlib.rcParams.update(_LOOK)
        if "seaborn" in sys.modules:
            sys.modules["seaborn"].set_theme()
