"""Outlives the server: the program is killed with SIGKILL while guests run and ignore everything.

No sandbox process is left a second later.
"""

import os
import signal

from outside import cell, processes_with, until

GUEST = """
for n in range(1, 65):
    attempt(signal.signal, n, signal.SIG_IGN)
sleeper = subprocess.Popen(["sleep", SECONDS], start_new_session=True)
print("up", flush=True)
while True:
    try:
        sleeper.wait()
    except BaseException:
        pass
"""


def check(box):
    word = f"9{box.tmp.stat().st_ino}.25"
    live = box.start(cell(GUEST, SECONDS=word))
    live.wait_for("up")
    until(lambda: processes_with(word), "the guest's process to show up")
    os.kill(live.process.pid, signal.SIGKILL)
    live.process.wait()
    until(lambda: not processes_with(word), "every process of the guest to be gone")
