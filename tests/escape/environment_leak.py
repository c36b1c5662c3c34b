"""Finds the operator's secrets in the environment of cells, of commands and of their children.

The sandbox's environment is made by us, not inherited.
"""

from outside import cell, same, shell

GUEST = """
inherited = subprocess.run(["env"], capture_output=True, text=True).stdout
raw_block = open("/proc/self/environ", "rb").read()
report(
    cell=WORD in repr(os.environ),
    child=WORD in inherited,
    block=WORD.encode() in raw_block,
    paths=[k for k, v in os.environ.items() if "/home" in v or "/root" in v],
)
"""


def check(box):
    env = {
        "OPENAI_API_KEY": "kestrel-secret",
        "AWS_SECRET_ACCESS_KEY": "kestrel-secret",
        "RETORT_KEY": "kestrel-secret",
        "PYTHONPATH": "/tmp/kestrel-secret",
        "LD_LIBRARY_PATH": "/tmp/kestrel-secret",
        "BASH_ENV": "/tmp/kestrel-secret",
    }
    run = box.run(
        cell(GUEST, WORD="kestrel" + "-secret"),
        shell("env | grep -c kestrel; cat /proc/self/environ | grep -c kestrel; true"),
        env=env,
    )
    same(box.ok(run), {"cell": False, "child": False, "block": False, "paths": []})
    same(run.text(1), "0\n0\n", "lines with the secret in a command")
