"""Starts threads without end.

They count as processes; the interpreter gets an error it can handle.
"""

from outside import cell, plain, same

GUEST = """
stop = threading.Event()
why, threads = "ok", []
try:
    for _ in range(2000):
        t = threading.Thread(target=stop.wait, daemon=True)
        t.start()
        threads.append(t)
except RuntimeError as e:
    why = str(e)
stop.set()
for t in threads:
    t.join()
report(held=len(threads) < 64, why=why)
"""


def check(box):
    run = box.run(cell(GUEST), plain("print('alive')"), flags=["--pids", "64"])
    same(box.ok(run), {"held": True, "why": "can't start new thread"})
    same(run.text(1), "alive\n", "the next cell")
