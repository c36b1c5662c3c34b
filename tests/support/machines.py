"""A network of machines of our own: each is a network namespace with one cable to a switch in another.

with Network() as lan: a, b = lan.machine(), lan.machine(). What is begun within a.inside() has the network of a, and
so has every socket made there. lan.cut(a, b): what one sends to the other is lost, and nobody is told. Only root can
make one. Nothing of it is left when this process ends, however it ends, and what runs in it has ended.
"""

import contextlib
import ctypes
import os
import socket
import subprocess
import threading

CLONE_NEWNET = 0x40000000
NOBODY = "02:00:00:00:00:ff"  # the switch sends it to everyone, and it is for no one
libc = ctypes.CDLL(None, use_errno=True)


def must(status):
    if status != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def own():
    return os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)


def new():
    """A namespace that lives as long as its descriptor. A thread of its own makes it: it stays in there."""
    made = []

    def make():
        with contextlib.suppress(OSError):
            must(libc.unshare(CLONE_NEWNET))
            made.append(own())

    thread = threading.Thread(target=make)
    thread.start()
    thread.join()
    if not made:
        raise PermissionError("only root can make network namespaces")
    return made[0]


class Space:
    def __init__(self):
        self.fd = new()

    def close(self):
        os.close(self.fd)

    @contextlib.contextmanager
    def inside(self):
        """For this thread, and what it begins."""
        before = own()
        try:
            must(libc.setns(self.fd, CLONE_NEWNET))
            yield self
        finally:
            must(libc.setns(before, CLONE_NEWNET))
            os.close(before)

    def connect(self, address, port, seconds):
        with self.inside():
            s = socket.create_connection((address, port), timeout=seconds)
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return s

    def ip(self, *words):
        with self.inside():
            done = subprocess.run(["ip", *map(str, words)], capture_output=True, text=True)
        assert done.returncode == 0, f"ip {words}: {done.stderr}"


class Machine(Space):
    def __init__(self, switch, number):
        super().__init__()
        self.address = f"10.77.0.{number}"
        cable = f"cable{number}"
        switch.ip("link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns",
                  f"/proc/{os.getpid()}/fd/{self.fd}")
        switch.ip("link", "set", cable, "master", "switch", "up")
        self.ip("address", "add", f"{self.address}/24", "dev", "eth0")
        for device in "lo", "eth0":
            self.ip("link", "set", device, "up")


class Network:
    RANGE = "10.77.0.0/24"

    def __init__(self):
        self.machines = []

    def __enter__(self):
        self.switch = Space()
        self.switch.ip("link", "add", "switch", "type", "bridge")
        self.switch.ip("link", "set", "switch", "up")
        return self

    def __exit__(self, *exc):
        for space in (*self.machines, self.switch):
            space.close()

    def machine(self):
        self.machines.append(Machine(self.switch, len(self.machines) + 1))
        return self.machines[-1]

    def cut(self, one, *others):
        """Both ways. Each takes the other for a machine that is not there, and no packet tells it otherwise."""
        for other in others:
            for here, there in (one, other), (other, one):
                here.ip("neighbour", "replace", there.address, "lladdr", NOBODY, "dev", "eth0", "nud", "permanent")

    def mend(self, one, *others):
        for other in others:
            for here, there in (one, other), (other, one):
                here.ip("neighbour", "delete", there.address, "dev", "eth0")
