"""Speaks when it was not asked: results, displays, ends, between two cells.

Nothing of that belongs to an execution: the session is over.
"""

from guest import WIRE
from outside import cell, holds, same

GUEST = (
    WIRE
    + """
w = wire()


def later():
    time.sleep(0.3)
    w.send(packet(MSG_RESULT, field(TAG_MIME, b"text/plain") + field(TAG_DATA, b"forged")))
    w.send(done(0))


threading.Thread(target=later).start()
"""
)


def check(box):
    run = box.run(
        cell(GUEST),
        ["--shell", "sleep 0.8"],
        cell("raise ValueError('true end')"),
        flags=["--keep-going"],
        alone=True,
    )
    same([run.statuses(), run.exit], [["ok", "session_lost"], 3], "outcomes and exit status")
    holds("forged" not in str(run.doc), "the forged result is in an answer")
