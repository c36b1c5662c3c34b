"""Prints what the program itself would print: a whole result, an outcome, control characters.

What a guest prints is text in the one document, and cannot close it.
"""

from outside import plain, same

GUEST = r"""
import os

fake = b'"}]}]}\n{"version":1,"executions":[],"exit":0}\n\x00\x1b[2J\x1b]0;owned\x07'
fake += b"\xff\xfe\xed\xa0\x80\xf4\x90\x80\x80</script>"
os.write(1, fake)
os.write(2, fake)
raise ValueError('"}')
"""


def check(box):
    run = box.run(plain(GUEST))
    same([run.exit, run.status(), len(run)], [1, "raised", 1], "the true result")
    same('"version":1' in run.text().replace(" ", ""), True, "the fake is text")
    same("\x00" in run.text(), True, "every byte is kept")
