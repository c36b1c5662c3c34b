"""A sibling instead of a child: with CLONE_PARENT, init becomes the parent of a process it did
not start.

Its exit, with any status the guest likes, must not be taken for that of the interpreter.
"""

from outside import cell, plain, same

GUEST = """
CLONE_PARENT, SIGCHLD = 0x8000, 17
made = 0
for status in 0, 1, 9, 137:
    value, number = raw("clone", CLONE_PARENT | SIGCHLD, 0, 0, 0, 0)
    if value == 0:
        os._exit(status)
    made += value > 0
time.sleep(0.3)
kept = 42
report(made=made)
"""


def check(box):
    run = box.run(cell(GUEST), plain("print(kept)"))
    same(run.statuses(), ["ok", "ok"], "outcomes")
    same(run.report, {"made": 4})
    same(run.text(1), "42\n", "the next cell")
