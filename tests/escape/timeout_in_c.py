"""Computes in C, where no Python signal handler ever runs.

The same: after the grace comes the kill.
"""

from outside import plain, same


def check(box):
    run = box.run(
        plain("import re; re.match(r'(a+)+$', 'a' * 64 + 'b')"),
        plain("print('alive')"),
        flags=["--timeout", "1", "--grace", "0.3", "--keep-going"],
    )
    same([run.status(0), run.exit], ["timeout", 124], "outcome")
    same(run.text(1), "alive\n", "the next cell")
