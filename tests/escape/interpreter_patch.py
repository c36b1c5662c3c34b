"""Rewrites the interpreter's own machinery: our guest modules, IPython, the builtins, sys.

All of it is the guest's to break, for itself: the server relies on none of it, and the next
interpreter has it as it was.
"""

from outside import cell, holds, plain, same, shell

GUEST = """
import builtins, gc, types

for name, module in list(sys.modules.items()):
    if "retort" in name or name.startswith("IPython.core.interactiveshell"):
        for key, value in list(vars(module).items()):
            if isinstance(value, types.FunctionType) and not key.startswith("__"):
                vars(module)[key] = lambda *a, **k: None
sys.stdout = sys.stderr = None
builtins.print = builtins.len = builtins.isinstance = lambda *a, **k: None
sys.excepthook = sys.displayhook = None
"""


def check(box):
    run = box.run(
        cell(GUEST),
        plain("print('whatever becomes of this')"),
        shell("kill -9 -1; sleep 5"),
        plain("print('alive')"),
        flags=["--keep-going", "--timeout", "2", "--grace", "0.3"],
    )
    holds(run.exit in (0, 1, 124), f"the program gave up: {run.brief()}")
    same([run.status(3), run.text(3)], ["ok", "alive\n"], "a new interpreter")
