"""A guest takes everything that the kernel counts by user, for as long as it can.

As an ordinary user without subordinate ids the server, its sandboxes and the guest are one user to the
kernel. While the guest holds what it has taken, a neighbour computes, a new session is made, and the
server is ready.
"""

import contextlib
import os
import shutil
import subprocess
import sys

import pytest

from support import retort
from support.server import Server, folder

HELP = """
import ctypes, errno, os, signal, socket
libc = ctypes.CDLL(None, use_errno=True)
held = []

def until_refused(make, most):
    try:
        while len(held) < most:
            held.append(make())
    except OSError as e:
        return errno.errorcode[e.errno]
    return "as many as wanted"

def call(name, *arguments):
    value = getattr(libc, name)(*arguments)
    if value < 0:
        raise OSError(ctypes.get_errno(), name)
    return value
"""

# name: (what the guest does, what stops it). Where several may come first, they are all named.
TAKERS = {
    "inotify instances": ("""
print(until_refused(lambda: call("inotify_init1", 0), 5000), len(held))
""", {"ENOSYS 0"}),
    "epoll watches": ("""
import select
pipes = [os.pipe() for _ in range(100)]
def watch_all():
    e = select.epoll()
    for read, _ in pipes:
        e.register(read)
    return e
print(until_refused(watch_all, 5000))
""", {"EMFILE"}),
    "pipes and their pages": ("""
import fcntl
def pipe():
    both = os.pipe()
    try:
        fcntl.fcntl(both[0], 1031, 1 << 20)  # F_SETPIPE_SZ
    except PermissionError:
        pass
    return both
print(until_refused(pipe, 5000))
""", {"EMFILE"}),
    "pending signals": ("""
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGRTMIN])
def queue():
    if libc.sigqueue(os.getpid(), signal.SIGRTMIN, 0) < 0:
        raise OSError(ctypes.get_errno(), "sigqueue")
print(until_refused(queue, 100000), len(held) <= 1024)
""", {"EAGAIN True"}),
    "timers": ("""
def timer():
    if libc.timer_create(1, None, ctypes.byref(ctypes.c_void_p())) < 0:
        raise OSError(ctypes.get_errno(), "timer_create")
print(until_refused(timer, 100000), len(held) <= 1024)
""", {"EAGAIN True"}),
    "descriptors in flight": ("""
import array
def fly():
    a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    for _ in range(4):
        a.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0] * 250))])
    return a, b
print(until_refused(fly, 5000))
""", {"ETOOMANYREFS", "EMFILE"}),
    "message queues": ("""
class attr(ctypes.Structure):
    _fields_ = [(n, ctypes.c_long) for n in ("flags", "maxmsg", "msgsize", "cur")] + [("pad", ctypes.c_long * 4)]
def queue():
    return call("mq_open", f"/q{len(held)}".encode(), os.O_CREAT | os.O_RDWR, 0o600,
                ctypes.byref(attr(0, 10, 8192)))
print(until_refused(queue, 5000), len(held))
""", {"EPERM 0", "ENOSYS 0", "EMFILE 0"}),
    "keys": ("""
def key():
    value = libc.syscall({"x86_64": 248, "aarch64": 217}[os.uname().machine], b"user", f"k{len(held)}".encode(),
                         b"x" * 1000, 1000, -3)
    if value < 0:
        raise OSError(ctypes.get_errno(), "add_key")
print(until_refused(key, 5000), len(held))
""", {"EPERM 0", "ENOSYS 0"}),
    "locks": ("""
import fcntl, struct
fd = os.open("/tmp/locks", os.O_CREAT | os.O_RDWR)
def lock():
    at = 2 * len(held)
    fcntl.lockf(fd, fcntl.LOCK_EX, 1, at)
print(until_refused(lock, 2000))
""", {"as many as wanted", "ENOLCK"}),
    "shared memory": ("""
def segment():
    value = libc.shmget(0, 4096, 0o600 | 0o1000)
    if value < 0:
        raise OSError(ctypes.get_errno(), "shmget")
print(until_refused(segment, 10000))
""", {"ENOSPC", "ENOMEM", "EPERM", "ENOSYS"}),
}


@pytest.fixture(scope="module", params=retort.sandbox_users())
def server(request):
    with Server("--sandbox-users", request.param) as one:
        yield one


@pytest.fixture(scope="module")
def neighbour(server):
    with server.client() as client, client.session() as made:
        yield made


@pytest.mark.parametrize("what", TAKERS)
def test_others_go_on(server, neighbour, what):
    code, stops = TAKERS[what]
    with server.client() as client, client.session() as guest:
        said = guest.run(HELP + code)
        assert said["stdout"].strip() in stops, said
        # It holds them all: the variable is kept between cells.
        assert guest.run("print(len(held) >= 0)")["stdout"] == "True\n"
        assert neighbour.run("print(6 * 7)")["stdout"] == "42\n"
        with client.session() as other:
            assert other.shell("echo new | cat")["stdout"] == "new\n"
        assert client.get("/ready").expect(200)
    server.check_alive()


MANY = """import ctypes
while ctypes.CDLL(None).timer_create(1, None, ctypes.byref(ctypes.c_void_p())) == 0:
    pass
"""
TIMER = """import ctypes, resource
resource.setrlimit(resource.RLIMIT_SIGPENDING, (4000, 4000))
print(ctypes.CDLL(None).timer_create(1, None, ctypes.byref(ctypes.c_void_p())))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="an ordinary user's namespaces are that user's own")
def test_many_sandboxes_take_nothing_of_roots(server):
    """The timers of five guests are more than this process of root's may have, and it still gets one."""
    with server.client() as client, contextlib.ExitStack() as stack:
        for _ in range(5):
            stack.enter_context(client.session()).run(MANY)
        done = subprocess.run([sys.executable, "-c", TIMER], capture_output=True, text=True)
        assert done.stdout == "0\n", done


# --- a server that is started when everything is used up ---

def starts(argv):
    """Whether it does. Else it says why in one sentence, and is not ended by a signal."""
    done = subprocess.run(argv, capture_output=True, text=True, timeout=retort.SECONDS, stdin=subprocess.DEVNULL)
    said = [line for line in done.stderr.splitlines() if line.startswith("retort: ")]
    assert (done.returncode, len(said)) in ((0, 0), (3, 1)), done
    return done.returncode == 0, said


STARTS = {"run": ["run", "-c", "1"], "mcp": ["mcp"], "serve": ["serve", "--listen", "127.0.0.1:0", "--state"]}


def start(command, state):
    return [retort.PROGRAM, *STARTS[command], *([str(state)] if command == "serve" else [])]


@pytest.fixture
def place():
    made = folder()
    yield made
    shutil.rmtree(made, ignore_errors=True)


@pytest.mark.parametrize("command", STARTS)
def test_a_start_without_epoll_watches(command, place):
    """libuv ends the process when it is refused one."""
    without = retort.REPO / "tests/doctor/without.py"
    argv = [sys.executable, without, "epoll_ctl=ENOSPC", "--", *start(command, place / "state")]
    started, said = starts(argv)
    assert not started and "epoll watches are used up" in said[0]


@pytest.mark.parametrize("command, most", [("run", 40), ("serve", 27)])
def test_a_start_with_few_descriptors(command, most, place):
    for n in range(16, most, 3):
        argv = start(command, place / str(n))
        started, _ = starts(["bash", "-c", f'ulimit -n {n}; exec "$@"', "bash", *argv])
        assert not started or n > 16
