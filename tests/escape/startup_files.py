"""Plants files that an interpreter runs when it starts: for the next one, for other sessions, for
the host.

Python looks at none of the places a guest can write to, and no session sees another's.
"""

from outside import cell, plain, same

PLANT = """
code = "open('/workspace/planted', 'a').write(__file__); print('planted')"
profile = "/tmp/.ipython/profile_default/startup"
site = "/tmp/.local/lib/python%d.%d/site-packages" % sys.version_info[:2]
for d in profile, site, "/workspace/IPython", "/tmp/.config/matplotlib":
    os.makedirs(d, exist_ok=True)
for path in (
    "/workspace/sitecustomize.py",
    "/workspace/usercustomize.py",
    "/workspace/json.py",
    "/workspace/IPython/__init__.py",
    "/workspace/retort_guest.py",
    "/workspace/_retort.py",
    profile + "/00.py",
    site + "/usercustomize.py",
    site + "/sitecustomize.py",
    "/tmp/sitecustomize.py",
):
    open(path, "w").write(code)
open(site + "/evil.pth", "w").write("import os; print('planted')\\n")
open("/tmp/.pythonrc.py", "w").write(code)
open("/tmp/.bashrc", "w").write("echo planted\\n")
open("/tmp/.profile", "w").write("echo planted\\n")
os._exit(0)
"""


def check(box):
    run = box.run(
        cell(PLANT),
        plain("import json, os; print(json.dumps(1), os.path.exists('/workspace/planted'))"),
        ["--shell", "echo command; ls /workspace/planted"],
        flags=["--keep-going"],
    )
    same(run.statuses()[:2], ["died", "ok"], "outcomes")
    same(run.text(1), "1 False\n", "the next interpreter")
    same(run.text(2), "command\n", "a command")
    other = box.run(
        plain("import os; print(os.listdir('/workspace'), os.path.exists('/tmp/.ipython'))")
    )
    same(other.text(), "[] False\n", "another session")
