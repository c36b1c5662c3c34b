"""Which file a picture was saved to, or comes from, told in the metadata of its display.

Code often saves a figure and shows it, and just as often saves one and shows another. A client
that keeps pictures as files needs to know which of the two it was: {"retort": {"file":
"plot.png"}} is the path in the workspace.
"""

import functools
import importlib.util
import os
import sys

_SAVES = {"matplotlib.figure": ("Figure", "savefig"), "PIL.Image": ("Image", "save")}
_SAVED = "_retort_saved"
_WORKSPACE = "/workspace/"


def _path(name, kind=None):
    """In the workspace, or None."""
    path = os.path.realpath(os.fspath(name))
    if not os.path.splitext(path)[1] and "matplotlib" in sys.modules:
        path += "." + (kind or sys.modules["matplotlib"].rcParams["savefig.format"])
    return path[len(_WORKSPACE):] if path.startswith(_WORKSPACE) else None


def _watch(module):
    kind, name = _SAVES[module.__name__]
    kind = getattr(module, kind)
    save = getattr(kind, name)

    @functools.wraps(save)
    def watched(self, where, *args, **options):
        result = save(self, where, *args, **options)
        try:
            setattr(self, _SAVED, _path(where, options.get("format")))
        except Exception:  # no path but an open file, or another thing that can be written to
            pass
        return result

    setattr(kind, name, watched)


class _Finder:
    """Watches a module of _SAVES when a cell imports it."""

    def __init__(self, names):
        self.names = names

    def find_spec(self, name, path=None, target=None):
        if name not in self.names:
            return None
        self.names.remove(name)
        spec = importlib.util.find_spec(name)
        if spec is None:
            return None
        run = spec.loader.exec_module

        def exec_module(module):
            run(module)
            _watch(module)

        spec.loader.exec_module = exec_module
        return spec


def install():
    """In the zygote, after its imports."""
    there = [name for name in _SAVES if name in sys.modules]
    for name in there:
        _watch(sys.modules[name])
    sys.meta_path.insert(0, _Finder(set(_SAVES).difference(there)))


def add(shown, metadata):
    """Adds the file of a figure, or of IPython's Image or SVG, to the metadata of its display."""
    module, path = type(shown).__module__, None
    if module.startswith(("matplotlib.", "PIL.")):
        path = vars(shown).get(_SAVED)
    elif (module == "IPython.core.display" and type(shown).__name__ in ("Image", "SVG")
          and isinstance(shown.filename, str)):
        path = _path(shown.filename)
    if path:
        metadata["retort"] = {"file": path}
