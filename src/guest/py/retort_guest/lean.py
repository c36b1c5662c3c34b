"""IPython without its terminal.

IPython imports IPython.terminal.embed for the sake of one function, and with it prompt_toolkit and
jedi: 250 modules that no cell needs, and two fifths of what a zygote spends on imports. An empty
module stands in during that import. Code that asks for IPython.embed or IPython.terminal gets them
then, as it does with versions of IPython that do this themselves.
"""

import sys
import types

_TERMINAL = "IPython.terminal.embed"


def load():
    """Imports IPython, unless the Python has done so in its own start."""
    if "IPython" in sys.modules:
        return
    stand_in = types.ModuleType(_TERMINAL)
    stand_in.embed = None
    sys.modules[_TERMINAL] = stand_in
    try:
        import IPython
    finally:
        del sys.modules[_TERMINAL]
    if vars(IPython).pop("embed", stand_in) is None:
        IPython.__getattr__ = _find


def _find(name):
    """What IPython would have had of its terminal."""
    import IPython
    if name not in ("embed", "terminal"):
        raise AttributeError("module 'IPython' has no attribute %r" % name)
    from IPython.terminal.embed import embed
    IPython.embed = embed
    return getattr(IPython, name)
