"""Poisons what sessions share: patches modules that were loaded before it was forked.

The pages are copied on writing: another session, and the next interpreter of the same one, have
the module as it was.
"""

from outside import plain, same

POISON = """
import json, os, builtins, IPython

json.dumps = lambda *a, **k: "poisoned"
builtins.poisoned = True
IPython.poisoned = True
os.getcwd = lambda: "/poisoned"
print("done")
"""

LOOK = """
import json, os, builtins, IPython

print(json.dumps([hasattr(builtins, "poisoned"), hasattr(IPython, "poisoned"), os.getcwd()]))
"""


def check(box):
    other = box.start(plain(POISON + "\nimport time; time.sleep(20)"))
    other.wait_for("done")
    same(box.run(plain(LOOK)).text(), '[false, false, "/workspace"]\n', "another session")
    run = box.run(
        plain(POISON), plain("import os; os._exit(0)"), plain(LOOK), flags=["--keep-going"]
    )
    same(run.statuses(), ["ok", "died", "ok"], "outcomes")
    same(run.text(2), '[false, false, "/workspace"]\n', "the next interpreter of the same session")
