"""The server's side of a kernel, as small as a test needs it."""

import os
import pathlib
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import _retort

TOP = pathlib.Path(__file__).resolve().parents[2]
GUEST = TOP / "src" / "guest" / "py"
PYTHON = os.environ.get("RETORT_TEST_PYTHON", "/usr/bin/python3")

sys.path.insert(0, str(GUEST))
from retort_guest import wire  # noqa: E402
from support.retort import SECONDS  # noqa: E402


def ignore():
    """As the warden does, so that it ends with its server and not before."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


class Zygote:
    """A real zygote.py with the stand-in for the C extension."""

    def __init__(self, preload="", flags=(), before="", learned=""):
        self.home = tempfile.mkdtemp(prefix="retort-guest-")
        os.symlink(GUEST / "retort_guest", self.home + "/retort_guest")
        shutil.copy(pathlib.Path(__file__).parent / "_retort.py", self.home)
        os.mkdir(self.home + "/mpl")
        self.sock, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.log = open(self.home + "/log", "w+b")
        self.process = subprocess.Popen(
            [PYTHON, "-I", "-B", *flags, self.start(before), str(theirs.fileno()),
             "--preload", preload, "--learned", learned],
            pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, stdout=self.log,
            stderr=self.log, preexec_fn=ignore,
            env=dict(os.environ, MPLCONFIGDIR=self.home + "/mpl"))
        theirs.close()
        self.said = self.sock.recv(65536).decode()

    def start(self, before):
        """The script to start: zygote.py, or one that does something first."""
        script = self.home + "/retort_guest/zygote.py"
        if not before:
            return script
        with open(self.home + "/first.py", "w") as first:
            first.write("%s\nimport runpy\nrunpy.run_path(%r, run_name='__main__')"
                        % (before, script))
        return first.name

    def logged(self):
        self.log.seek(0)
        return self.log.read().decode()

    def close(self):
        self.sock.close()
        self.process.wait()
        self.log.close()
        shutil.rmtree(self.home)


class Cell:
    """What one cell gave: events in order, its status, and the modules that it is said to have imported."""

    def __init__(self, events, status, seconds, modules):
        self.modules = modules
        self.events = events
        self.status = status
        self.seconds = seconds

    def of(self, kind):
        return [data for name, data in self.events if name == kind]

    @property
    def out(self):
        return "".join(self.of("stdout"))

    @property
    def err(self):
        return "".join(self.of("stderr"))

    @property
    def error(self):
        errors = self.of("error")
        assert len(errors) == 1, self.events
        return errors[0]

    @property
    def result(self):
        results = self.of("result")
        assert len(results) == 1, self.events
        return results[0]

    @property
    def value(self):
        return self.result["text/plain"]


class Kernel:
    def __init__(self, zygote):
        self.home = tempfile.mkdtemp(prefix="retort-cell-")
        self.folder = self.home + "/space"
        os.mkdir(self.folder)
        self.sock, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        out, out_theirs = os.pipe()
        err, err_theirs = os.pipe()
        fds = [theirs.fileno(), out_theirs, err_theirs]
        socket.send_fds(zygote.sock, [self.folder.encode()], fds)
        self.pid = int(zygote.sock.recv(64))
        theirs.close()
        os.close(out_theirs)
        os.close(err_theirs)
        self.pipes = {out: "stdout", err: "stderr"}
        for fd in self.pipes:
            os.set_blocking(fd, False)
        self.number = 0
        self.lag = 0  # seconds the server is late with everything
        message = _retort.get(self.sock)
        assert message and message[0] == wire.MSG_IDLE, zygote.logged()

    def close(self):
        self.sock.close()
        for fd in self.pipes:
            os.close(fd)
        try:
            os.kill(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        shutil.rmtree(self.home)

    def start(self, code):
        self.number += 1
        self.began = time.perf_counter()
        self.events = []
        _retort.put(self.sock, wire.MSG_CELL, 1000 + self.number, [
            (wire.TAG_CODE, code.encode()), (wire.TAG_CELL_NO, self.number), (wire.TAG_FLAGS, 0)])

    def run(self, code, timeout=SECONDS):
        self.start(code)
        return self.finish(timeout)

    def interrupt(self):
        os.kill(self.pid, signal.SIGINT)

    def drain(self, fd):
        """All there is in a pipe."""
        try:
            data = os.read(fd, 1 << 20)
        except BlockingIOError:
            return False
        if not data:
            return False
        name, text = self.pipes[fd], data.decode("utf-8", "replace")
        if self.events and self.events[-1][0] == name:
            self.events[-1] = (name, self.events[-1][1] + text)
        else:
            self.events.append((name, text))
        return True

    def drain_all(self):
        for fd in self.pipes:
            while self.drain(fd):
                pass

    def finish(self, timeout=SECONDS):
        until = time.monotonic() + timeout
        while True:
            ready, _, _ = select.select([*self.pipes, self.sock], [], [],
                                        max(0, until - time.monotonic()))
            assert ready, "no answer in time: %r" % self.events
            if self.lag:
                time.sleep(self.lag)
            # stdout first, always: the order must come from the kernel, not from luck here.
            for fd in self.pipes:
                if fd in ready:
                    self.drain(fd)
            if self.sock in ready:
                message = _retort.get(self.sock)
                assert message, "kernel died: %r" % self.events
                self.drain_all()
                if self.take(*message):
                    return Cell(self.events, self.status, time.perf_counter() - self.began, self.modules)

    def take(self, kind, ident, body):
        assert ident == 1000 + self.number
        fields = _retort.fields(body)
        if kind == wire.MSG_DONE:
            self.modules = dict(fields).get(wire.TAG_NAME, b"").decode()
            self.status = number(dict(fields)[wire.TAG_STATUS])
            return True
        if kind == wire.MSG_ERROR:
            self.events.append(("error", error(fields)))
        elif kind == wire.MSG_RESULT:
            self.events.append(("result", bundle(fields)))
        elif kind == wire.MSG_DISPLAY:
            data = bundle(fields)
            flags = number(dict(fields)[wire.TAG_FLAGS])
            ident = dict(fields).get(wire.TAG_DISPLAY_ID)
            if ident is not None:
                data["id"] = ident.decode()
            if flags:
                data["flags"] = flags
            self.events.append(("display", data))
        elif kind == wire.MSG_CLEAR:
            self.events.append(("clear", number(dict(fields)[wire.TAG_FLAGS])))
        else:
            assert kind == wire.MSG_SYNC, kind
        if kind in (wire.MSG_SYNC, wire.MSG_DISPLAY, wire.MSG_CLEAR):
            _retort.put(self.sock, wire.MSG_ACK, 1000 + self.number, [])
        return False


def number(data):
    assert len(data) == 8
    return int.from_bytes(data, "little")


def bundle(fields):
    data = {}
    for (tag, mime), (tag2, value) in zip(fields, fields[1:]):
        if tag == wire.TAG_MIME:
            assert tag2 == wire.TAG_DATA
            mime = mime.decode()
            text = mime.startswith("text/") or mime in ("application/json", "image/svg+xml")
            data[mime] = value.decode() if text else value
    return data


def error(fields):
    out = {"frames": []}
    for tag, value in fields:
        if tag == wire.TAG_NAME:
            out["name"] = value.decode()
        elif tag == wire.TAG_TEXT:
            out["text"] = value.decode()
        elif tag == wire.TAG_TRACE:
            out["trace"] = value.decode()
        elif tag == wire.TAG_ERRNO:
            out["errno"] = number(value)
        elif tag == wire.TAG_FRAME_FILE:
            out["frames"].append([value.decode()])
        elif tag == wire.TAG_FRAME_LINE:
            out["frames"][-1].append(number(value))
        elif tag in (wire.TAG_FRAME_NAME, wire.TAG_FRAME_TEXT):
            out["frames"][-1].append(value.decode())
        else:
            raise AssertionError("tag %d in an error" % tag)
    return out
