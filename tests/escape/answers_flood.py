"""Keeps init busy with the calls that it answers, so that it has no time for its other work.

One answer in each round of its loop: the time limit holds, and the next cell runs.
"""

from outside import cell, plain, same

GUEST = """
SYSINFO = 179 if platform.machine() == "aarch64" else 99

def ask():
    info = ctypes.create_string_buffer(128)
    while True:
        raw(SYSINFO, info)

for _ in range(6):
    threading.Thread(target=ask, daemon=True).start()
for _ in range(2):
    if os.fork() == 0:
        ask()
ask()
"""


def check(box):
    run = box.run(
        cell(GUEST),
        plain("print('alive')"),
        ["--shell", "echo shell"],
        flags=["--timeout", "1", "--grace", "0.3", "--keep-going"],
    )
    same(run.statuses(), ["timeout", "ok", "ok"], "outcomes")
    same(run.text(1) + run.text(2), "alive\nshell\n", "what came after it")
