"""Hangs, floods and forks when its interpreter ends: atexit, __del__, threads that never join.

A session is ended with SIGKILL; nothing of the guest is waited for.
"""

from outside import holds, plain

GUEST = """
import atexit, threading, time, os


def hang():
    while True:
        os.write(1, b"bye\\n")


atexit.register(hang)


class D:
    def __del__(self):
        time.sleep(1000)


d = D()
threading.Thread(target=time.sleep, args=(1000,)).start()
"""


def check(box):
    run = box.run(plain(GUEST), plain("print('alive')"))
    holds(run.exit == 0 and run.text(1) == "alive\n", run.brief())
