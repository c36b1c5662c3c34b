"""Reaches the terminal the program itself runs on: reads what is typed there, types, stops the job.

The guest's session has no controlling terminal and no descriptor of one.
"""

import os
import select
import termios

from outside import cell, same

GUEST = """
TIOCNOTTY, TIOCSPGRP = 0x5422, 0x5410
fields = open("/proc/self/stat").read().rsplit(") ", 1)[1].split()
report(
    terminal=fields[4],
    control=reopen("/dev/tty", os.O_RDWR),
    stdin=os.readlink("/proc/self/fd/0"),
    inject=[syscall("ioctl", fd, 0x5412, ctypes.create_string_buffer(b"x")) for fd in (0, 1, 2)],
    init_terminal=open("/proc/1/stat").read().rsplit(") ", 1)[1].split()[4],
    stopped=attempt(os.kill, os.getppid(), signal.SIGTTOU),
)
"""


def check(box):
    master, slave = os.openpty()
    quiet = termios.tcgetattr(slave)
    quiet[3] &= ~(termios.ICANON | termios.ECHO)
    termios.tcsetattr(slave, termios.TCSANOW, quiet)
    try:
        if os.geteuid() == 0:
            os.chown(os.ttyname(slave), box.user.pw_uid, -1)
        run = box.run(cell(GUEST), stdin=slave, prefix=["setsid", "--ctty", "--wait"])
        typed = select.select([slave], [], [], 0)[0]
        written = select.select([master], [], [], 0)[0]
    finally:
        os.close(slave)
        os.close(master)
    same(
        box.ok(run),
        {
            "terminal": "0",
            "control": "ENOENT",
            "stdin": "/dev/null",
            "inject": ["EPERM"] * 3,
            "init_terminal": "0",
            "stopped": "EPERM" if box.has_own_users else "ok",
        },
    )
    same([typed, written], [[], []], "what reached the terminal")
