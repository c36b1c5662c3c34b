"""Nothing a sandbox does to its own /proc rules out branches of a session: a user namespace inside
the sandbox's, with processes and a /proc of its own, in a copy of the pool's mounts."""

import subprocess
import sys

from support import retort
from test_kill import Busy

# The kernel mounts a proc in a user namespace only where it sees one that nothing covers.
BRANCH = """
import ctypes, os, sys

NEWNS, NEWUSER, NEWPID, USER = 0x20000, 0x10000000, 0x20000000, 1000
libc = ctypes.CDLL(None, use_errno=True)

def must(rc, what):
    if rc < 0:
        sys.exit(f"{what}: {os.strerror(ctypes.get_errno())}")

def in_a_child():
    child = os.fork()
    if child:
        os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

zygote, init = sys.argv[1:]
spaces = [os.open(f"/proc/{pid}/ns/{name}", os.O_RDONLY)
          for pid, name in ((zygote, "user"), (zygote, "mnt"), (init, "user"), (init, "pid"))]
for fd in spaces:
    must(libc.setns(fd, 0), "setns")
must(libc.setresgid(USER, USER, USER), "setresgid")
must(libc.setresuid(USER, USER, USER), "setresuid")
in_a_child()  # a pid namespace is entered by a fork
must(libc.unshare(NEWUSER), "a user namespace")
must(libc.unshare(NEWNS | NEWPID), "a mount and a pid namespace")
in_a_child()
must(libc.mount(b"proc", b"/proc", b"proc", 0, None), "mount proc")
print(os.readlink("/proc/self"), flush=True)
"""


def test_a_branch_has_its_own_proc():
    with Busy() as busy:
        done = subprocess.run(
            [sys.executable, "-c", BRANCH, str(busy.chain["zygote"]), str(busy.chain["init"])],
            capture_output=True, text=True, timeout=retort.SECONDS)
        assert (done.stdout, done.stderr, done.returncode) == ("1\n", "", 0)
