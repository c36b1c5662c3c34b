"""Takes every processor there is, in many processes, to starve the neighbours and the server.

The session's share is limited; a neighbour's cells go on answering, and the time limit holds.
"""

from outside import cell, plain, same

GUEST = """
for _ in range(16):
    if os.fork() == 0:
        while True:
            pass
while True:
    pass
"""


def check(box):
    hog = box.start(cell(GUEST), flags=["--timeout", "3", "--grace", "0.3", "--pids", "40"])
    run = box.run(*[plain(f"print({n})") for n in range(30)])
    same(run.text(), "".join(f"{n}\n" for n in range(30)), "the neighbour's answers")
    same(hog.end(), 124, "exit status of the hog")
