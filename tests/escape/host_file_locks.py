"""Locks a file of the system (flock), which is the same one for every session and for the host: to learn that
somebody else has locked it, to be seen by another session, to hold up a program of the host.

Init answers flock(): a file that the session cannot change is locked for nobody. The session's own are locked
as ever, by init on the caller's own descriptor, so that a number which leads elsewhere a moment later gains nothing.
So are those of a folder that the user shows to the session, and there a lock is one inside and outside.
"""

import fcntl
import os

from outside import cell, same

SHARED = ["/usr/bin/env", "/usr/lib", "/dev/null"]

HOLDER = """
import fcntl
held = [os.open(path, os.O_RDONLY) for path in SHARED]
for fd in held:
    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
print("held", flush=True)
time.sleep(60)
"""

GUEST = """
import fcntl

def lock(path, how=fcntl.LOCK_EX | fcntl.LOCK_NB, flags=os.O_RDONLY):
    fd = os.open(path, flags)
    try:
        return attempt(fcntl.flock, fd, how)
    finally:
        os.close(fd)

def race(path):
    own, end = os.open(path, os.O_RDWR | os.O_CREAT), time.monotonic() + 1
    shared = os.open("/usr/bin/env", os.O_RDONLY)
    number, seen = os.dup(own), set()
    def swap():
        while time.monotonic() < end:
            os.dup2(shared, number)
            os.dup2(own, number)
    other = threading.Thread(target=swap)
    other.start()
    while time.monotonic() < end:
        seen.add(attempt(fcntl.flock, number, fcntl.LOCK_EX | fcntl.LOCK_NB))
        seen.add(attempt(fcntl.flock, number, fcntl.LOCK_UN))
    other.join()
    return sorted(seen)

report(shared=[lock(path) for path in SHARED], waiting=lock("/usr/bin/env", fcntl.LOCK_EX), raced=race("/workspace/race"),
       raced_shown=race("/mnt/shown/" + os.urandom(4).hex()), shown=lock("/mnt/shown/held"))
"""

OWN = """
import fcntl
EX, SH, NB, UN = fcntl.LOCK_EX, fcntl.LOCK_SH, fcntl.LOCK_NB, fcntl.LOCK_UN
os.chdir("/workspace")
one, two = (os.open("own", os.O_RDWR | os.O_CREAT) for _ in range(2))
place = os.open("own", os.O_PATH)
out = {"first": attempt(fcntl.flock, one, EX), "second": attempt(fcntl.flock, two, EX | NB),
       "of a copy": attempt(fcntl.flock, os.dup(one), EX | NB),
       "of a folder": attempt(fcntl.flock, os.open("/tmp", os.O_RDONLY), EX | NB)}
in_thread = []
thread = threading.Thread(target=lambda: in_thread.append(attempt(fcntl.flock, two, SH | NB)))
thread.start()
thread.join()
out["in a thread"] = in_thread[0]

order = []
def wait():
    fcntl.flock(two, EX)
    order.append("second")
thread = threading.Thread(target=wait)
thread.start()
attempt(os.stat, "own")
order.append("first")
fcntl.flock(one, UN)
thread.join()
out["turns"] = order

def interrupted(number, frame):
    raise InterruptedError(errno.EINTR, "by a signal")
signal.signal(signal.SIGALRM, interrupted)
signal.setitimer(signal.ITIMER_REAL, 0.2)
out["a signal"] = attempt(fcntl.flock, one, EX)
fcntl.flock(two, UN)

# More that wait than anybody could: each of them gets its turn, or hears a no.
fcntl.flock(one, EX)
said, crowd = [], []
def queue():
    fd = os.open("own", os.O_RDWR)
    said.append(attempt(fcntl.flock, fd, EX))
    os.close(fd)
for _ in range(80):
    crowd.append(threading.Thread(target=queue))
    crowd[-1].start()
fcntl.flock(one, UN)
for thread in crowd:
    thread.join()
out["a crowd"] = len(said) == 80 and set(said) <= {"ok", "ENOLCK"} and said.count("ok") >= 60

child = os.fork()
if child == 0:
    fcntl.flock(os.open("own", os.O_RDWR), EX)
    os.kill(os.getpid(), signal.SIGKILL)
os.waitpid(child, 0)
out["after a death"] = attempt(fcntl.flock, one, EX | NB)
FLOCK = 32 if platform.machine() == "aarch64" else 73
out["wrong"] = [syscall(FLOCK, 999, EX), syscall(FLOCK, -1, EX), syscall(FLOCK, place, EX), syscall(FLOCK, one, 0),
                syscall(FLOCK, one, EX | SH), syscall(FLOCK, one, 16)]
report(**out)
"""


def check(box):
    host, shown = [os.open(path, os.O_RDONLY) for path in SHARED], box.dir("shown")
    shown.chmod(0o777)
    mine = os.open(shown / "held", os.O_RDWR | os.O_CREAT, 0o666)
    for fd in [*host, mine]:
        fcntl.flock(fd, fcntl.LOCK_SH)
    free = {"shared": ["ok"] * len(SHARED), "waiting": "ok", "raced": ["ok"], "raced_shown": ["ok"]}
    flags = ["--folder", str(shown)]
    same(box.ok(box.run(cell(GUEST, SHARED=SHARED), flags=flags)), {**free, "shown": "EAGAIN"},
         "while the host has locks, the guest")
    holder = box.start(cell(HOLDER, SHARED=SHARED))
    holder.wait_for("held")
    os.close(mine)
    same(box.ok(box.run(cell(GUEST, SHARED=SHARED), flags=flags)), {**free, "shown": "ok"},
         "while another session has locks, the guest")
    for fd in host:
        fcntl.flock(fd, fcntl.LOCK_UN)
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)  # raises while a guest has it to itself
        os.close(fd)
    same(box.ok(box.run(cell(OWN))), {
        "first": "ok", "second": "EAGAIN", "of a copy": "ok", "of a folder": "ok", "in a thread": "EAGAIN",
        "turns": ["first", "second"], "a signal": "EINTR", "a crowd": True, "after a death": "ok",
        "wrong": ["EBADF", "EBADF", "EBADF", "EINVAL", "EINVAL", "EINVAL"]}, "of its own files the guest")
