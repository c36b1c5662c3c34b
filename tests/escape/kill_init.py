"""Ends init, and with it the session's pristine interpreter and its watchdog.

As root init has another uid. Rootless it has the same, and the signal is sent and dropped: the
first process of a pid namespace hears from inside only what it has a handler for.
"""

from outside import cell, plain, same

GUEST = """
kept = "still here"
pidfd, _ = raw("pidfd_open", 1, 0)
report(
    signals=sorted({attempt(os.kill, 1, n) for n in range(1, 65)}),
    pidfd=syscall("pidfd_send_signal", pidfd, 9, 0, 0),
    thread=syscall("tgkill", 1, 1, 9),
    queued=syscall(
        "rt_sigqueueinfo",
        1,
        9,
        ctypes.create_string_buffer(struct.pack("<iii", 9, 0, -1) + bytes(116)),
    ),
    parent=attempt(os.kill, os.getppid(), signal.SIGSTOP),
)
"""


def check(box):
    run = box.run(cell(GUEST), plain("print(kept)"))
    said = "EPERM" if box.has_own_users else "ok"
    same(
        run.report,
        {"signals": [said], "pidfd": said, "thread": said, "queued": said, "parent": said},
    )
    same(run.statuses(), ["ok", "ok"], "outcomes")
    same(run.text(1), "still here\n", "the next cell")
