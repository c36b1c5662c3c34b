"""Which modules the code of a session imports beyond what its interpreter has.

The server counts them over many sessions, and the pool's next interpreter imports beforehand what
many have imported (learned.py). Told are the names that no other import has asked for: of
`import sklearn.svm` those are sklearn and sklearn.svm, and not the six hundred that follow. A module
of the session's own, in its workspace or from pip, is nobody else's affair, and is not told.
"""

import re
import sys

MODULES_MAX = 64  # of one session
NAME_MAX = 96
LIST_MAX = 4000

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*")


class Finder:
    """Stands first in sys.meta_path, and finds nothing: it is asked for every module that is new."""

    def __init__(self):
        self.places = ()
        self.room = 0
        self.names = []
        self.last = None

    def install(self):
        """In the zygote, when all is imported: what is on the path now belongs to this Python."""
        self.places = tuple(path + "/" for path in sys.path if path)
        sys.meta_path.insert(0, self)

    def begin(self):
        """In a new kernel."""
        self.room = MODULES_MAX

    def find_spec(self, name, path=None, target=None):
        if self.room > 0 and not self._is_inside():
            self.last = name
            self.room -= 1
            self.names.append(name)
        return None

    def _is_inside(self):
        """Whether the last import that counts is still going on."""
        spec = getattr(sys.modules.get(self.last), "__spec__", None)
        return getattr(spec, "_initializing", False)

    def _is_ours(self, name):
        spec = getattr(sys.modules.get(name), "__spec__", None)
        origin = getattr(spec, "origin", None)
        return (isinstance(origin, str) and origin.startswith(self.places) and len(name) <= NAME_MAX
                and _NAME.fullmatch(name) is not None)

    def told(self):
        """After a cell: the names since the last time, with commas between them."""
        if not self.names:
            return b""
        names, self.names = self.names, []
        try:
            said = ",".join(filter(self._is_ours, names)).encode()
        except Exception:  # code may have put anything into sys.modules
            return b""
        return said if len(said) <= LIST_MAX else b""


finder = Finder()
