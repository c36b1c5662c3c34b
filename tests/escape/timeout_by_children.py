"""Hands its work to children that ignore signals, and lets the cell end; a command does the same.

A command's time limit ends its whole group; what is left lives in the session and dies with it.
"""

from outside import processes_with, same, shell, until


def check(box):
    word = f"7{box.tmp.stat().st_ino}.25"
    run = box.run(
        shell(f"trap '' INT TERM HUP; setsid sleep {word} & sleep {word}"),
        flags=["--timeout", "1", "--grace", "0.3"],
    )
    same([run.status(), run.exit], ["timeout", 124], "outcome")
    until(lambda: not processes_with(word), "every process to be gone")
