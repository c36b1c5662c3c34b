"""Speaks when it was not asked: results, displays, ends, between two cells.

Nothing of that belongs to an execution; it is dropped or ends the session, and the next cell's answer is its own.
"""

from guest import WIRE
from harness import cell, holds

GUEST = WIRE + """
w = wire()

def later():
    time.sleep(0.3)
    w.send(packet(MSG_RESULT, field(TAG_MIME, b"text/plain") + field(TAG_DATA, b"forged")))
    w.send(done(0))

threading.Thread(target=later).start()
"""


def check(box):
    run = box.run(cell(GUEST), ["--shell", "sleep 0.8"], cell("raise ValueError('true end')"), flags=["--keep-going"])
    holds(run.exit == 1, f"exit {run.exit}: {run.brief()}")
    holds(run.status(0) == "ok", f"outcomes: {run.statuses()}")
    holds(run.status(-1) in ("raised", "session_lost"), f"the forged end was believed: {run.statuses()}")
    holds("forged" not in str(run[-1]), "the forged result is in another cell's answer")
