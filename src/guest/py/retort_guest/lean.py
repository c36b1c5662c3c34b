"""IPython without its terminal.

IPython imports IPython.terminal.embed for the sake of one function, and with it prompt_toolkit; its
completer imports jedi. That is 250 modules that no cell needs, and two fifths of what a zygote spends
on imports. An empty module stands in during the import, and the completer does without jedi. Code that
asks for IPython.embed or IPython.terminal gets them then, as it does with versions of IPython that do
this themselves.
"""

import importlib.util
import sys
import types

_PACKAGE = "IPython.terminal"
_EMBED = "IPython.terminal.embed"


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
    try:
        import IPython
        import IPython.core.completer  # noqa: F401
    finally:
        del sys.modules[_EMBED]
        if not has_jedi:
            del sys.modules["jedi"]
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
