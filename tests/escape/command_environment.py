"""Leads commands astray by what a cell leaves behind: LD_PRELOAD, PATH, BASH_ENV, shell
functions, PYTHONSTARTUP.

Commands are started by init, which has an environment of its own; what a cell sets is for its own
children.
"""

from outside import cell, same, shell

GUEST = """
os.makedirs("/workspace/bin", exist_ok=True)
open("/workspace/evil.so", "w").write("x")
open("/workspace/rc", "w").write("echo planted\\n")
open("/workspace/bin/id", "w").write("#!/bin/sh\\necho planted\\n")
os.chmod("/workspace/bin/id", 0o755)
os.environ.update(
    {
        "LD_PRELOAD": "/workspace/evil.so",
        "PATH": "/workspace/bin:" + os.environ["PATH"],
        "BASH_ENV": "/workspace/rc",
        "ENV": "/workspace/rc",
        "PYTHONSTARTUP": "/workspace/rc",
        "BASH_FUNC_id%%": "() { echo planted; }",
    }
)
own = subprocess.run(["id", "-u"], capture_output=True, text=True)
report(own=own.stdout)
"""


def check(box):
    run = box.run(
        cell(GUEST),
        shell("id -u; env | grep -c -e LD_PRELOAD -e planted -e BASH_ENV"),
        flags=["--keep-going"],
    )
    same(run.report, {"own": "planted\n"})
    same(run.text(1), "1000\n0\n", "the command")
    same(run.text(1, "stderr"), "", "what the command said on stderr")
