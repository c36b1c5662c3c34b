"""A leaked descriptor as working directory, then "..": CVE-2024-21626, step by step.

There is no such descriptor: each is no directory or is not there.
"""

from outside import cell, same, shell

GUEST = """
answers = {attempt(os.chdir, f"/proc/self/fd/{n}") for n in range(512)}
reads = {attempt(open, f"/proc/self/fd/{n}/../../../../../..{DECOY}") for n in range(512)}
report(
    chdir=sorted(answers),
    read=sorted(reads),
    cwd=os.getcwd(),
    command=attempt(open, "/proc/self/cwd/../../.." + DECOY),
)
"""


def check(box):
    decoy, secret = box.decoy()
    read = f"cat /proc/self/fd/$n/../../../../..{decoy} && echo found"
    search = f"for n in $(seq 0 63); do {read}; done 2>/dev/null; true"
    run = box.run(cell(GUEST, DECOY=str(decoy)), shell(search))
    same(
        box.ok(run),
        {
            "chdir": ["ENOENT", "ENOTDIR"],
            "read": ["ENOENT", "ENOTDIR"],
            "cwd": "/workspace",
            "command": "ENOENT",
        },
    )
    same(run.text(1), "", "what a command read")
