"""IPython without its terminal, and without what only some of its commands need.

IPython imports IPython.terminal.embed for the sake of one function, and with it prompt_toolkit; its
completer imports jedi. That is 250 modules that no cell needs, and two fifths of what a zygote spends
on imports. An empty module stands in during the import, and the completer does without jedi. Code that
asks for IPython.embed or IPython.terminal gets them then, as it does with versions of IPython that do
this themselves.

What IPython imports for a traceback in colours, for %load of a URL, for a terminal's programs or a
profile is imported when it is asked for: an eighth of a start, and 4 MB, for what most sessions never do.
"""

import functools
import importlib.util
import sys
import types

_PACKAGE = "IPython.terminal"
_EMBED = "IPython.terminal.embed"
# Modules, and the functions that IPython takes out of them at once.
_LATER = {"stack_data": (), "pydoc": (), "pexpect": (), "pstats": (), "cProfile": (),
          "logging.config": ("dictConfig",), "urllib.request": ("Request", "urlopen")}


def load():
    """Imports IPython, unless the Python has done so in its own start."""
    if "IPython" in sys.modules:
        return
    stand_in = types.ModuleType(_EMBED)
    stand_in.embed = None
    sys.modules[_EMBED] = stand_in
    has_jedi = "jedi" in sys.modules
    if not has_jedi:
        sys.modules["jedi"] = None  # to import it fails
    later = [_Later(name) for name in _LATER if name not in sys.modules]
    sys.modules.update((module.__name__, module) for module in later)
    try:
        import IPython
        import IPython.core.completer  # noqa: F401
        import IPython.core.magics  # noqa: F401
    finally:
        del sys.modules[_EMBED]
        if not has_jedi:
            del sys.modules["jedi"]
        for module in later:
            module.leave()
    if vars(IPython).pop("embed", stand_in) is None:
        IPython.__getattr__ = _find
        sys.meta_path.insert(0, _Terminal)


def _find(name):
    """What IPython would have had of its terminal."""
    import IPython
    if name not in ("embed", "terminal"):
        raise AttributeError("module 'IPython' has no attribute %r" % name)
    IPython.embed = importlib.import_module(_EMBED).embed
    return getattr(IPython, name)


class _Later(types.ModuleType):
    """Stands in for a module of this name while IPython is imported. Whoever has it then gets the
    names of the module, which the first of them imports; everybody else gets the module."""

    def __init__(self, name):
        super().__init__(name)
        for function in _LATER[name]:
            setattr(self, function, functools.partial(_call, name, function))

    def __getattr__(self, name):
        if name == "__path__" and _LATER[self.__name__]:
            raise AttributeError(name)  # `from ... import` asks whether it is a package
        self.leave()
        return getattr(importlib.import_module(self.__name__), name)

    def leave(self):
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]


def _call(module, function, *args, **kwargs):
    return getattr(importlib.import_module(module), function)(*args, **kwargs)


class _Terminal:
    """Finds the package, and has embed imported first: its modules import each other, which works in
    that order alone."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name != _PACKAGE:
            return None
        sys.meta_path.remove(_Terminal)
        spec = importlib.util.find_spec(name)
        run = spec.loader.exec_module

        def run_and_embed(module):
            run(module)
            importlib.import_module(_EMBED)

        spec.loader.exec_module = run_and_embed
        return spec
