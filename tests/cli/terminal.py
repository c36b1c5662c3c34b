"""`retort serve` as one sees it who types it: with Server(...) as server. Has what it prints."""

import http.client
import json
import os
import pwd
import shutil
import signal
import socket
import ssl
import subprocess
import threading
import time
from pathlib import Path

from support import retort
from support.server import folder


def service_id():
    """Who serves."""
    if os.geteuid() != 0:
        return os.geteuid()
    try:
        return pwd.getpwnam("retort").pw_uid
    except KeyError:
        return 1879048191


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=retort.SECONDS)
        self.path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(retort.SECONDS)
        self.sock.connect(self.path)


class Answer:
    def __init__(self, response):
        self.status, self.headers, self.body = response.status, response.headers, response.read()

    @property
    def json(self):
        return json.loads(self.body)


class Server:
    """Runs until the block ends. Listens on a port of its own unless told where."""

    def __init__(self, *args, state=None, listen="127.0.0.1:0", wait=True, key=None, **options):
        self.own = None if state else folder()
        self.state, self.key = state or self.own / "state", key
        words = ["serve", "--state", self.state, "--ready", "1", "--preload", ""]
        if listen:
            words += ["--listen", listen]
        self.process = retort.start(*words, *args, **options)
        self.pid, self.out, self.log = self.process.pid, "", ""
        self.grew = threading.Condition()
        self.readers = [threading.Thread(target=self._pump, args=a, daemon=True)
                        for a in (("out", self.process.stdout), ("log", self.process.stderr))]
        for reader in self.readers:
            reader.start()
        if wait:
            try:
                self.wait_for("out", "Try")
            except BaseException:
                self.__exit__()
                raise

    def _pump(self, name, pipe):
        for line in iter(pipe.readline, b""):
            with self.grew:
                setattr(self, name, getattr(self, name) + line.decode("utf-8", "replace"))
                self.grew.notify_all()
        with self.grew:
            self.grew.notify_all()

    def wait_for(self, name, word, seconds=retort.SECONDS):
        until = time.monotonic() + seconds
        with self.grew:
            while word not in getattr(self, name):
                left = until - time.monotonic()
                assert left > 0 and any(r.is_alive() for r in self.readers), \
                    f"never said {word!r}: {self.out[-1000:]}{self.log[-3000:]}"
                self.grew.wait(min(left, 0.2))

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(retort.SECONDS)
            except subprocess.TimeoutExpired:
                pass
        for reader in self.readers:
            reader.join(1)
        retort.end(self.process)
        if self.own:
            shutil.rmtree(self.own, ignore_errors=True)

    @property
    def addresses(self):
        """Where it says that it serves."""
        return [line.split()[-1] for line in self.out.split("\n\n")[0].splitlines() if line.strip()]

    @property
    def commands(self):
        """What it says that one may try."""
        return [line.strip() for line in self.out.splitlines() if line.startswith("  curl")]

    def connect(self, address=None):
        scheme, _, rest = (address or self.addresses[0]).partition(":")
        if scheme == "unix":
            return UnixConnection(rest)
        host, _, port = rest.strip("/").rpartition(":")
        host = {"0.0.0.0": "127.0.0.1"}.get(host, host.strip("[]"))
        if scheme == "https":
            trusted = ssl.create_default_context(cafile=Path(__file__).parent / "tls/cert.pem")
            return http.client.HTTPSConnection(host, int(port), timeout=retort.SECONDS,
                                               context=trusted)
        return http.client.HTTPConnection(host, int(port), timeout=retort.SECONDS)

    def ask(self, method, path, body=None, address=None, key=None):
        connection = self.connect(address)
        headers = {"authorization": f"Bearer {key or self.key}"} if key or self.key else {}
        if body is not None:
            body, headers["content-type"] = json.dumps(body), "application/json"
        try:
            connection.request(method, path, body, headers)
            return Answer(connection.getresponse())
        finally:
            connection.close()

    def get(self, path, **options):
        return self.ask("GET", path, **options)

    def run(self, code, **options):
        """One cell in a session of its own."""
        return self.ask("POST", "/v1/execute", {"code": code}, **options)

    def end(self, signum=signal.SIGTERM, seconds=retort.SECONDS):
        """The exit status after a signal."""
        self.process.send_signal(signum)
        return self.process.wait(seconds)


def keys(*args, state):
    status, out, err = retort.call("keys", *args, "--state", state)
    assert status == 0, err
    return out.decode()


def make_key(state, *args, tenant="acme"):
    return keys("create", "--quiet", "--tenant", tenant, *args, state=state).strip()


def is_root():
    return os.geteuid() == 0
