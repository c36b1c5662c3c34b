"""Hands out a FIFO, on which a reader waits for ever, and a socket.

Only regular files are artifacts, and they are opened without waiting.
"""

from outside import cell, same

GUEST = """
os.mkfifo("/workspace/out.csv")
s = socket.socket(socket.AF_UNIX)
s.bind("/workspace/plot.png")
s.listen()
open("/workspace/real.txt", "w").write("real")
"""


def check(box):
    out = box.dir("out")
    run = box.run(cell(GUEST), flags=["--out", out])
    same(run.exit, 0, "exit status")
    same(sorted(p.name for p in out.iterdir()), ["real.txt"], "what the host has")
    same(sorted(run.files()), ["real.txt"], "files reported")
