"""Outlives its session: double fork, setsid, closed descriptors, another name, ignored signals.

Everything of a session dies with its pid namespace. Seen from the host, nothing is left a second
later.
"""

from outside import cell, holds, processes_with, until

GUEST = """
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for n in range(1, 65):
            attempt(signal.signal, n, signal.SIG_IGN)
        os.closerange(0, 256)
        os.execv("/bin/sleep", ["sleep", SECONDS])
    os._exit(0)
print("up", flush=True)
time.sleep(1.5)
"""


def check(box):
    word = f"8{box.tmp.stat().st_ino}.25"
    live = box.start(cell(GUEST, SECONDS=word))
    live.wait_for("up")
    until(lambda: processes_with(word), "the daemon to start")
    holds(live.end() == 0, f"exit {live.process.returncode}: {live.output[-800:]!r}")
    until(lambda: not processes_with(word), "the daemon to be gone")
