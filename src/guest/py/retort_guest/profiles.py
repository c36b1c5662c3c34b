"""What a door adds to plain cells: predefined names, a list of modules that may be imported.

The server names a profile with each cell, as the variable RETORT_PROFILE; the variable is
removed here, because the user's code has no use for it. A kernel has one profile for life, that
of its first cell.
"""

from . import profile_anthropic, profile_prisme, profile_qwen

_NAME = b"RETORT_PROFILE="
_IMPORTS = b"RETORT_IMPORTS="
_TOOLS = b"RETORT_TOOLS="

_MAKERS = {b"anthropic": profile_anthropic.Profile, b"qwen": profile_qwen.Profile,
           b"prisme": profile_prisme.Profile}


class _None:
    def before(self, shell, code):
        pass

    def after(self, shell, status):
        pass


none = _None()
_chosen = None


def choose(env):
    """(profile, the variables that are left)."""
    global _chosen
    if not any(line.startswith(_NAME) for line in env):
        return none, env
    named = dict(line.partition(b"=")[::2] for line in env
                 if line.startswith((_NAME, _IMPORTS, _TOOLS)))
    if _chosen is None:
        make = _MAKERS.get(named[_NAME[:-1]])
        _chosen = make(named.get(_IMPORTS[:-1], b"").decode("utf-8", "replace")) if make else none
    if _TOOLS[:-1] in named and hasattr(_chosen, "offer"):
        _chosen.offer(named[_TOOLS[:-1]].decode("utf-8", "replace"))
    return _chosen, [line for line in env if not line.startswith((_NAME, _IMPORTS, _TOOLS))]
