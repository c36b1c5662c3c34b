"""A server that strangers have taken over: it speaks to the real warden, byte by byte."""

import array
import os
import re
import select
import socket
import struct
import subprocess
import tempfile
from pathlib import Path

from support.retort import BUILD, driver

HOST = driver("warden/warden-host", shipped=True)
PATIENCE = 120  # past this something hangs, however slow the machine

LIMITS = {"disk_bytes": 1 << 20, "tmp_bytes": 1 << 20, "inodes": 1024, "pids": 16, "open_files": 64,
          "memory_bytes": 256 << 20, "cpu_percent": 100}


class Ended(Exception):
    """The warden has closed its socket."""


def packet(type_, id_=1, body=b"", flags=0, length=None):
    return struct.pack("<HHIQ", type_, flags, len(body) if length is None else length, id_) + body


def field(tag, data):
    data = struct.pack("<Q", data) if isinstance(data, int) else data
    return struct.pack("<HHI", tag, 0, len(data)) + data


class Warden:
    """One warden, with the socket that its server would have."""

    def __init__(self, cache=None, dirs=()):
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.errors = tempfile.TemporaryFile("w+")
        command = [HOST, BUILD / "guest", cache or "-", *dirs]
        self.process = subprocess.Popen(
            # The socket as descriptor 3, whatever its number is here.
            ["bash", "-c", f'exec "$@" 3<&{theirs.fileno()} {theirs.fileno()}<&-', "-",
             *map(str, command)],
            pass_fds=[theirs.fileno()], stdout=subprocess.PIPE, stderr=self.errors, text=True)
        theirs.close()
        self.at = {}
        for line in iter(self.process.stdout.readline, ".\n"):
            name, number = line.split()
            self.at[name] = int(number)
        _, fds, _, _ = socket.recv_fds(ours, 64, 1)
        ours.close()
        self.socket = socket.socket(fileno=fds[0])
        self.socket.settimeout(PATIENCE)
        self.kept = []
        self.pid = self.find_pid()

    def find_pid(self):
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return int(children.read_text().split()[0])

    def __getattr__(self, name):
        if name in self.__dict__.get("at", {}):
            return self.at[name]
        raise AttributeError(name)

    # --- saying ---

    def send(self, bytes_, fds=()):
        self.socket.sendmsg([bytes_], [(socket.SOL_SOCKET, socket.SCM_RIGHTS,
                                        array.array("i", fds))] if fds else [])

    def plan(self, **over):
        blob = bytearray(self.at["plan"])
        for name, value in {**LIMITS, **over}.items():
            wide = name in LIMITS
            struct.pack_into("<Q" if wide else "<I", blob, self.at[f"plan.{name}"], value)
        return bytes(blob)

    def start(self, id_, environment=0):
        self.send(packet(self.MSG_POOL_START, id_, field(self.TAG_NUMBER, environment)))

    def spawn(self, id_, zygote, fds=None, **over):
        """With a control socket of its own unless fds are given; ours is kept."""
        body = field(self.TAG_ZYGOTE, zygote) + field(self.TAG_BLOB, self.plan(**over))
        if fds is not None:
            return self.send(packet(self.MSG_SPAWN, id_, body), fds)
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.settimeout(PATIENCE)
        self.kept.append(ours)
        self.send(packet(self.MSG_SPAWN, id_, body), [theirs.fileno()])
        theirs.close()
        return ours

    # --- hearing ---

    def hear(self, sock=None):
        """(type, id, fields, fds) of the next message."""
        try:
            data, fds, _, _ = socket.recv_fds(sock or self.socket, 1 << 17, 8)
        except ConnectionResetError:
            raise Ended from None
        if not data:
            raise Ended
        type_, _, _, id_ = struct.unpack_from("<HHIQ", data)
        fields, at = {}, 16
        while at < len(data):
            tag, _, size = struct.unpack_from("<HHI", data, at)
            fields[tag] = data[at + 8:at + 8 + size]
            at += 8 + size
        return type_, id_, fields, fds

    def answer(self, *types):
        """The next message of one of these types."""
        while True:
            said = self.hear()
            if said[0] in types:
                return said

    def text(self, said):
        return said[2][self.TAG_TEXT].decode()

    def is_silent(self):
        return not select.select([self.socket], [], [], 0)[0]

    def lives(self):
        """Everything said before has been heard when this is answered."""
        self.send(packet(self.MSG_USAGE, 77))
        while True:
            type_, id_, _, _ = self.hear()
            if (type_, id_) == (self.MSG_USED, 77):
                return True

    # --- looking ---

    def descriptors(self):
        """How many it has open. The warden is nobody's to look into but root's: without that, the
        size of its table, which grows when descriptors are lost by the dozen."""
        try:
            return len(os.listdir(f"/proc/{self.pid}/fd"))
        except PermissionError:
            return re.search(r"^FDSize:\s+(\d+)", Path(f"/proc/{self.pid}/status").read_text(),
                             re.M)[1]

    def capabilities(self):
        status = Path(f"/proc/{self.pid}/status").read_text()
        return {name: int(value, 16) for name, value in re.findall(r"^(Cap\w+):\s+(\w+)", status, re.M)}

    def descendants(self):
        found, todo = [], [self.pid]
        while todo:
            try:
                tasks = list(Path(f"/proc/{todo.pop()}/task").iterdir())
                new = [int(p) for t in tasks for p in (t / "children").read_text().split()]
            except OSError:
                new = []
            found += new
            todo += new
        return found

    # --- the end ---

    def end(self):
        """How the warden ended: (exited by itself, status), and what it said."""
        self.socket.close()
        for one in self.kept:
            one.close()
        out, _ = self.process.communicate(timeout=PATIENCE)
        self.errors.seek(0)
        _, exited, status = out.split()
        return (exited == "1", int(status)), self.errors.read()

    def __enter__(self):
        return self

    def __exit__(self, *what):
        if self.process.poll() is None:
            self.end()
