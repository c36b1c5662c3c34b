"""Kills every interpreter, some of them before they are up.

Its own processes are the guest's to kill: the session stays, and a later cell has an interpreter.
"""

from outside import plain, same, shell


def check(box):
    # A kill may also find the next command, and the interpreter of the first cell.
    run = box.run(plain("open('kept', 'w').write('here')"), *[shell("kill -9 -1")] * 20, plain("pass"), plain("print(open('kept').read())"), flags=["--keep-going"])
    same([run.status(), run.text(-1)], ["ok", "here\n"], "a new interpreter")
