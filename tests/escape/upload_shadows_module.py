"""An upload, or the directory the program is started in, holds a module by the name of one we
import.

Preloading ran before the filter in dify-sandbox (its issue 27); here neither the workspace nor
the caller's directory is on the path of anything that runs outside the box.
"""

from outside import plain, same

EVIL = b"""
import os
open(os.path.join(os.environ.get("MARK", "/tmp"), "ran-" + str(os.getpid())), "w")
raise SystemExit("owned")
"""
NAMES = (
    "json.py",
    "IPython.py",
    "sitecustomize.py",
    "usercustomize.py",
    "_retort.py",
    "retort_guest.py",
    "numpy.py",
    "random.py",
    "encodings.py",
)


def check(box):
    here, marks = box.dir("here"), box.dir("marks")
    for name in NAMES:
        (here / name).write_bytes(EVIL)
    (here / "python3").write_text("#!/bin/sh\ntouch " + str(marks) + "/python3\nexit 1\n")
    (here / "python3").chmod(0o755)
    uploads = [word for name in NAMES for word in ("-f", here / name)]
    env = {
        "MARK": str(marks),
        "PYTHONPATH": str(here),
        "PYTHONSTARTUP": str(here / "json.py"),
        "PYTHONHOME": "",
        "PYTHONINSPECT": "1",
    }
    run = box.run(
        plain("import sys; print(sys.flags.isolated or sys.path[0] in ('', '/workspace'))"),
        flags=["--preload", "json,random", *uploads],
        cwd=here,
        env=env,
    )
    same(run.statuses(), ["ok"], "outcomes")
    same(sorted(p.name for p in marks.iterdir()), [], "what ran on the host")
