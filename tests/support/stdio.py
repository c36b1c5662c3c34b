"""`retort mcp` from outside: a client of both eras on its standard input and output.

    with Local() as client:                 legacy once initialize() was called
        client.call("run_code", code="6 * 7")
        client.modern("tools/list")         the same process, a request of the modern era

A thread reads every line as it comes: responses by their id, the rest in `heard`. Whatever is no
message of JSON-RPC fails the test. At the end nothing may be left: leave() looks.
"""

import contextlib
import itertools
import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading
from pathlib import Path

from support import retort
from support.mcp import CAPABILITIES_KEY, LEGACY, MODERN, VERSION_KEY, RpcError
from support.server import birth, living, mounts

NOBODY = 65534
SMALL = ["--preload", "", "--ready", "0", "--memory", "300M", "--timeout", "30", "--pids", "64", "--disk", "64M",
         "--tmp", "16M"]


def below(pid):
    return {(p, birth(p)) for p in retort.below(pid)}


def users():
    """Who is to start it: as we are; from root an ordinary user, too, where one can reach us."""
    if os.geteuid() != 0:
        return ["self"]
    seen = subprocess.run(["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "test", "-x",
                           retort.PROGRAM])
    return ["self", "user"] if seen.returncode == 0 else ["self"]


class Local:
    def __init__(self, *flags, user="self", env=None, small=True, reads=True, through=(), capabilities=None):
        self.flags = [*(SMALL if small else ()), *flags]
        self.user, self.through = user, through  # what runs our command
        self.place = Path(tempfile.mkdtemp(prefix="retort-test-mcp-"))
        self.place.chmod(0o1777)
        self.env = {**os.environ, "TMPDIR": str(self.place), **(env or {})}
        self.env = {k: v for k, v in self.env.items() if v is not None}
        self.capabilities = capabilities or {}
        self.reads = reads
        self.ids = itertools.count(1)
        self.lock = threading.Condition()
        self.answers, self.heard, self.broken = {}, [], []
        self.closed = False
        self.family, self.instances, self.mounts = set(), set(), mounts()

    # --- life ---

    def command(self):
        as_user = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--"]
        return [*(as_user if self.user == "user" else ()), *self.through, retort.PROGRAM, "mcp",
                *self.flags]

    def start(self):
        self.log = open(self.place / "log", "w+b")
        here = self.place / "here"  # where images land unless a flag says otherwise
        here.mkdir(exist_ok=True)
        here.chmod(0o1777)
        self.process = subprocess.Popen(self.command(), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=self.log, env=self.env, cwd=here)
        self.reader = threading.Thread(target=self._read, daemon=True)
        if self.reads:
            self.reader.start()
        return self

    def __enter__(self):
        return self.start()

    def __exit__(self, kind, *exc):
        try:
            if kind is None:
                self.leave()
        finally:
            if self.process.poll() is None:
                self.process.kill()
            self.process.wait()
            self.process.stdout.close()
            with contextlib.suppress(OSError):
                self.process.stdin.close()
            self.log.close()
            shutil.rmtree(self.place, ignore_errors=True)

    def read_slowly(self):
        """For a client that was started without reading: now it does."""
        self.reader.start()

    def said(self):
        """Its log."""
        return (self.place / "log").read_text(errors="replace")

    def remember(self):
        now = below(self.process.pid)
        self.family |= now
        self.instances |= retort.instances(p for p, _ in now)

    def left(self):
        """What is in the folder for temporary files."""
        return sorted(p.name for p in self.place.iterdir() if p.name not in ("log", "here"))

    def leave(self, how=None, seconds=retort.SECONDS):
        """Ends it by the end of its input, or by a signal; nothing may be left behind."""
        if self.process.poll() is not None:
            return
        self.remember()
        if how is None:
            self.process.stdin.close()
        else:
            self.process.send_signal(how)
        try:
            status = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"no end within {seconds} s:\n{self.said()}") from None
        assert status == (-how if how == signal.SIGKILL else 0), self.said()
        self.check_clean()

    def check_clean(self, seconds=retort.SOON):
        retort.wait_until(lambda: not living(self.family), "the end of every process", seconds)
        retort.wait_until(lambda: not retort.groups_of(self.instances), "the end of every cgroup", seconds)
        retort.wait_until(lambda: not self.left(), "the end of every temporary file", seconds)
        assert mounts() <= self.mounts
        assert not self.broken, self.broken

    # --- lines ---

    def _read(self):
        for line in self.process.stdout:
            try:
                message = json.loads(line.decode("utf-8", "strict"))
                parts = message if isinstance(message, list) else [message]
                assert line.endswith(b"\n") and all(m["jsonrpc"] == "2.0" for m in parts)
            except (ValueError, KeyError, TypeError, AssertionError):
                self.broken.append(line[:300])
                continue
            with self.lock:
                if isinstance(message, dict) and "method" not in message and "id" in message:
                    self.answers[message["id"]] = message
                else:
                    self.heard.append(message)
                self.lock.notify_all()
        with self.lock:
            self.closed = True
            self.lock.notify_all()

    def write(self, data):
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, message):
        self.write(json.dumps(message).encode() + b"\n")

    def wait(self, holds, what, seconds=retort.SECONDS):
        with self.lock:
            done = self.lock.wait_for(lambda: holds() or self.broken or self.closed, seconds)
            assert holds(), f"waited for {what}: {done} {self.broken} {self.heard[-3:]}\n{self.said()}"

    def answer(self, id, seconds=retort.SECONDS):
        """The response to a request, whole; waits for it."""
        self.wait(lambda: id in self.answers, f"an answer to {id}", seconds)
        return self.answers.pop(id)

    def errors(self):
        """Those that belong to no request."""
        return [m["error"] for m in self.heard if isinstance(m, dict) and "error" in m]

    def of(self, method):
        return [m.get("params") for m in self.heard if isinstance(m, dict) and m.get("method") == method]

    # --- requests ---

    def begin(self, method, params=None, id=None):
        id = next(self.ids) if id is None else id
        self.send({"jsonrpc": "2.0", "id": id, "method": method, **({} if params is None else {"params": params})})
        return id

    def begin_modern(self, method, params=None, id=None, **meta):
        params = dict(params or {})
        params["_meta"] = {VERSION_KEY: MODERN, CAPABILITIES_KEY: self.capabilities, **meta,
                           **params.get("_meta", {})}
        return self.begin(method, params, id)

    def result(self, id, seconds=retort.SECONDS):
        answer = self.answer(id, seconds)
        if "error" in answer:
            raise RpcError(answer["error"])
        return answer["result"]

    def request(self, method, params=None):
        return self.result(self.begin(method, params))

    def modern(self, method, params=None, **meta):
        return self.result(self.begin_modern(method, params, **meta))

    def notify(self, method, params=None):
        self.send({"jsonrpc": "2.0", "method": method, **({} if params is None else {"params": params})})

    def cancel(self, id):
        self.notify("notifications/cancelled", {"requestId": id, "reason": "enough"})

    def initialize(self, version=LEGACY):
        info = self.request("initialize", {"protocolVersion": version, "capabilities": self.capabilities,
                                           "clientInfo": {"name": "tests", "version": "1"}})
        self.notify("notifications/initialized")
        return info

    def begin_call(self, tool, _meta=None, **arguments):
        return self.begin("tools/call", {"name": tool, "arguments": arguments, **({"_meta": _meta} if _meta else {})})

    def call(self, tool, **arguments):
        return self.result(self.begin_call(tool, **arguments))
