"""Takes what the kernel counts by user: timers, queued signals, pipes, epoll sets.

Limits of the user namespace or of the process; the host's user has as many as before.
"""

from outside import cell, holds

GUEST = """
def until_refused(make, most=5000):
    made = 0
    try:
        while made < most:
            if make() is False:
                break
            made += 1
    except OSError as e:
        return name_of(e.errno)
    return made


def timer():
    value, number = raw("timer_create", 1, 0, ctypes.byref(ctypes.c_int()))
    if value == -1:
        raise OSError(number, "timer")


report(
    timers=until_refused(timer),
    pipes=until_refused(os.pipe),
)
"""


def check(box):
    run = box.run(cell(GUEST), flags=["--open-files", "512"])
    said = run.report
    holds(
        run.exit == 0 and said["timers"] == "EAGAIN" and said["pipes"] == "EMFILE",
        f"reported {said}: {run.brief()}",
    )
