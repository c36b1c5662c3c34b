"""Swaps a file for a link to a secret, a FIFO and back while the host looks and copies
(CVE-2018-15664).

The host opens without following and checks what it has opened; what it copies is the guest's own
file or nothing.
"""

from outside import cell, holds, plain, same

GUEST = """
if os.fork() == 0:
    os.setsid()
    os.chdir("/workspace")
    end = time.monotonic() + 1000
    n = 0
    while time.monotonic() < end:
        n += 1
        for name in "a.txt", "b.txt", "c.txt":
            open("new", "w").write("mine %d" % n)
            os.rename("new", name)
            os.symlink(DECOY, "link")
            os.rename("link", name)
            os.mkfifo("fifo")
            os.rename("fifo", name)
    os._exit(0)
time.sleep(0.2)
"""


def check(box):
    decoy, secret = box.decoy()
    out = box.dir("out")
    steps = [plain("import time; time.sleep(0.02)") for _ in range(30)]
    run = box.run(cell(GUEST, DECOY=str(decoy)), *steps, flags=["--out", out])
    holds(run.exit == 0, run.brief())
    for p in out.rglob("*"):
        holds(not p.is_symlink() and p.is_file(), f"{p.name} is not a plain file")
        holds(secret not in p.read_text(errors="replace"), f"{p.name} holds the host's secret")
    same(secret in run.stdout.decode(), False, "the secret is in the document")
