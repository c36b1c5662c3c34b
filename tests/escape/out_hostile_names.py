"""Names files so that whoever prints, parses or copies the names is led astray.

In JSON a name is a string, in text it is one line without control characters, and on the host a
file of that name or none; never one outside the output directory.
"""

import os

from outside import cell, holds, same

GUEST = r"""
names = [
    b"new\nline.txt",
    b"\x1b[2J\x1b]0;owned\x07.txt",
    b"\xff\xfe\xed\xa0\x80.bin",
    b"n" * 255,
    b"-rf",
    b"--help",
    b"...",
    b"a\\..\\b",
    b"%s%n%x",
    b"tab\there",
    b"\r\rcarriage",
    b"quote\"'`$(touch x)`",
    b"\xe2\x80\xaegnp.exe",
    b" ",
    b"C:",
    b"\x7f",
    b'{"version":1}',
    b"..\xc0\xaf..\xc0\xafetc",
]
for n in names:
    open(b"/workspace/" + n, "wb").write(b"x")
report(made=len(os.listdir("/workspace")))
"""


def check(box):
    out = box.dir("out")
    run = box.run(cell(GUEST), flags=["--out", out])
    made = run.report["made"]
    same([run.exit, len(run.files())], [0, made], "exit status and files reported")
    held = os.listdir(os.fsencode(out))
    holds(len(held) == made, f"{len(held)} of {made} on the host: {held}")
    same(sorted(os.listdir(box.tmp)), ["out"], "what lies beside the output directory")
    text = box.run(cell(GUEST), json=False)
    shown = text.stdout + text.stderr
    holds(
        not any(c in shown for c in (b"\x1b", b"\x07", b"\r", b"\x7f")),
        f"control characters reach the terminal: {shown!r}",
    )
    shown.decode("utf-8")
