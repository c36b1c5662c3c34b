"""Rewrites the interpreter's own machinery: our guest modules, IPython, the builtins, sys.

All of it is the guest's to break. The server believes none of it: the next cell still answers, or
is told that the interpreter was replaced.
"""

from harness import cell, holds, plain, same

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
    run = box.run(cell(GUEST), plain("import os; os.write(1, b'alive\\n')"), plain("import os; os.write(1, b'alive\\n')"),
                  flags=["--keep-going", "--timeout", "2", "--grace", "0.3"])
    holds(run.exit != 3, f"the program gave up: {run.brief()}")
    same(len(run), 3, "executions")
    holds(run.status(2) == "ok" and "alive" in run.text(2), f"the session never recovered: {run.statuses()} {run.brief()}")
