"""`retort serve` from outside: starts it, talks HTTP to it, ends it and looks at what it leaves.

Server is one run on a state directory; Client one kept connection to it; Session a session made by
a client; Stream an answer that comes piece by piece. raw() sends whatever bytes a test likes.
"""

import contextlib
import http.client
import json
import os
import re
import secrets
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from urllib.parse import quote

from support import retort

# Small, so that a limit is soon reached and a start is quick.
SMALL = ["--ready", "1", "--preload", "", "--memory", "300M", "--timeout", "30", "--pids", "64",
         "--disk", "64M", "--tmp", "16M", "--drain", "5"]
ERROR_TYPES = {400: "invalid_request", 401: "unauthorized", 403: "forbidden", 404: "not_found",
               405: "method_not_allowed", 408: "timeout", 409: "conflict", 413: "too_large", 414: "too_large",
               415: "unsupported_media_type", 416: "range_not_satisfiable", 429: "busy",
               431: "too_large", 500: "internal", 503: "unavailable", 507: "insufficient_storage"}
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
REQUEST_ID = re.compile(r"req_[a-z0-9]{28}")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def folder():
    """A new directory that everybody may enter: the server need not be who we are."""
    path = Path(tempfile.mkdtemp(prefix="retort-test-serve-"))
    path.chmod(0o755)
    return path


def refusal(*flags):
    """A `retort serve` that should not start: its exit status and what it says."""
    place = folder()
    try:
        (place / "retort.ini").write_text("")
        code, _, err = retort.call("serve", "--state", place / "state", "--config", place / "retort.ini",
                                   *flags)
        return code, err
    finally:
        shutil.rmtree(place, ignore_errors=True)


def birth(pid):
    """Tells two processes with the same number apart; None when it is gone."""
    words = retort.read_proc(pid, "stat").rpartition(b")")[2].split()
    return words[19] if words else None


def family(pid):
    return {(p, birth(p)) for p in (pid, *retort.below(pid))}


def living(members):
    return [p for p, born in members if born and birth(p) == born and retort.is_alive(p)]


def mounts():
    """Those of ours; but not what another suite may have just now: the small disk of bench/chaos.py, the network
    namespaces of tests/nodes."""
    others = ("retort-chaos ", "nsfs /run/netns/retort-test-")
    return {line for line in Path("/proc/mounts").read_text().splitlines()
            if "retort" in line and str(retort.REPO) not in line and not line.startswith(others)}


# How a suite has its servers keep their rows: a function that returns the URL of a new database, or None.
new_database = None


class Server:
    """with Server(flag, ...) as server. Further runs on the same state: stop(), then start().

    files: the state directory and whatever else belongs to it; config: text of an ini file.
    """

    def __init__(self, *flags, config="", listen=None, tls=None, env=None, small=True,
                 program=None):
        self.program = program or retort.PROGRAM
        self.files = folder()
        self.state = self.files / "state"
        self.port = None if listen else free_port()
        self.listen = listen or f"127.0.0.1:{self.port}"
        self.flags = [*(SMALL if small else ()), *map(str, flags)]
        # After a rush more would be parked than a test asked for.
        self.env = {**os.environ, "RETORT_READY_MAX": "0", **(env or {})}
        self.tls = tls
        self.store = ["--store", new_database()] if new_database else []
        self.process, self.family, self.instances, self.mounts = None, set(), set(), mounts()
        self.notice = None
        self.config = self.files / "retort.ini"
        self.config.write_text(config)

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.discard()
            raise
        return self

    def __exit__(self, kind, *exc):
        try:
            if self.process is not None and kind is None:
                self.stop()
        finally:
            self.discard()

    # --- life ---

    def command(self):
        return [self.program, "serve", "--listen", self.listen, "--state", str(self.state),
                "--config", str(self.config), *self.store, *self.flags]

    def launch(self):
        """It is told of a socket for its READY=1, as a service manager's; that of an earlier run has old words."""
        self.stop_listening()
        self.notice = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        path = self.files / "notify"
        path.unlink(missing_ok=True)
        self.notice.bind(str(path))
        path.chmod(0o777)
        with open(self.files / "log", "ab") as log:
            self.process = subprocess.Popen(self.command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            env={**self.env, "NOTIFY_SOCKET": str(path)}, start_new_session=True)

    def stop_listening(self):
        if self.notice:
            self.notice.close()
            self.notice = None

    def start(self, seconds=retort.SECONDS):
        self.launch()
        self.wait_ready(seconds)

    def wait_ready(self, seconds=retort.SECONDS):
        """Asks when it has said that it is. A question each 40 ms, while eight start at a time, was a twentieth of
        what a start takes."""
        until = time.monotonic() + seconds
        while True:
            self.wait_for_word(0.5)  # one that ends says nothing, nor does one that cannot see the socket
            status = self.process.poll()
            assert status is None, f"the server ended with {status}:\n{self.log()}"
            with contextlib.suppress(OSError, http.client.HTTPException), self.client() as c:
                if c.get("/ready").status == 200:
                    return
            assert time.monotonic() < until, f"not ready after {seconds} s:\n{self.log()}"

    def wait_for_word(self, seconds):
        """Its next word, or so long; once it has said that it is ready, or where nobody listens, a moment."""
        if self.notice:
            self.notice.settimeout(seconds)
            with contextlib.suppress(TimeoutError):
                if self.notice.recv(100) == b"READY=1":
                    self.stop_listening()
        else:
            time.sleep(0.04)

    def log(self, last=6000):
        with contextlib.suppress(OSError):
            return (self.files / "log").read_text(errors="replace")[-last:]
        return ""

    @property
    def pid(self):
        return self.process.pid

    def remember(self):
        """Whoever lives below the server now must be gone when it is."""
        now = family(self.pid)
        self.family |= now
        self.instances |= retort.instances(p for p, _ in now)

    def kill(self):
        self.remember()
        self.process.kill()
        self.process.wait()
        self.process = None

    def stop(self, seconds=retort.SECONDS):
        """SIGTERM, and everything it should leave behind: nothing."""
        self.remember()
        process, self.process = self.process, None
        process.send_signal(signal.SIGTERM)
        try:
            status = process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise AssertionError(f"no end {seconds} s after SIGTERM:\n{self.log()}") from None
        assert status == 0, f"it ended with {status}:\n{self.log()}"
        self.check_clean()

    def check_clean(self, seconds=retort.SOON):
        retort.wait_until(lambda: not living(self.family), "the end of every process", seconds)
        retort.wait_until(lambda: not retort.groups_of(self.instances), "the end of every cgroup", seconds)
        assert mounts() <= self.mounts

    def discard(self):
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
            self.process.wait()
            self.process = None
        self.stop_listening()
        shutil.rmtree(self.files, ignore_errors=True)

    def resident(self):
        """Kilobytes of memory the server itself holds."""
        return int(retort.field(self.pid, "VmRSS")[0])

    def keys(self, *words):
        """`retort keys ...` on the same state: what it prints."""
        code, out, err = retort.call("keys", *words, "--state", self.state, "--config", self.config, *self.store)
        assert code == 0, err
        return out.decode()

    # --- talking ---

    def connect(self, seconds=retort.SECONDS):
        if self.listen.startswith("unix:"):
            s = socket.socket(socket.AF_UNIX)
            s.settimeout(seconds)
            s.connect(self.listen[5:])
            return s
        s = socket.create_connection(("127.0.0.1", self.port), timeout=seconds)
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return self.tls.wrap_socket(s, server_hostname="localhost") if self.tls else s

    def client(self, key=None, **headers):
        return Client(self, key, headers)

    def raw(self, *pieces, pause=0, half_close=False):
        """Sends the pieces and returns everything until the server closes."""
        with self.connect() as s:
            for piece in pieces:
                try:
                    s.sendall(piece)
                except (BrokenPipeError, ConnectionResetError, ssl.SSLError):
                    break
                time.sleep(pause)
            if half_close:
                s.shutdown(socket.SHUT_WR)
            return drain(s)

    def check_alive(self):
        """It still answers, and a cell still runs."""
        with self.client() as c:
            assert c.get("/health").status == 200
            assert c.post("/v1/execute", {"code": "6 * 7"}).expect(200).json["result"] == "42"


def drain(s):
    got = b""
    with contextlib.suppress(ConnectionResetError, ssl.SSLError):
        while piece := s.recv(65536):
            got += piece
    return got


def answers(received):
    """The status lines and bodies of whole answers in what raw() returned."""
    found = []
    while received.startswith(b"HTTP/1."):
        head, _, rest = received.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in lines[1:])}
        status = int(lines[0].split()[1])
        length = int(headers.get("content-length", 0))
        found.append(Answer(status, headers, rest[:length]))
        received = rest[length:]
    return found


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        return json.loads(self.body.decode("utf-8", "strict"))

    @property
    def text(self):
        return self.body.decode("utf-8", "strict")

    def expect(self, status):
        assert self.status == status, self
        return self

    def refused(self, status, param=..., type=None):
        """Checks the one shape of errors; returns the error."""
        assert self.status == status, self
        assert set(self.json) == {"error"}, self
        error = self.json["error"]
        assert set(error) == {"type", "message", "param", "request_id"}, error
        assert error["type"] == (type or ERROR_TYPES[status]), error
        assert error["message"] and isinstance(error["message"], str)
        assert error["request_id"] == self.headers["x-request-id"]
        if param is not ...:
            assert error["param"] == param, error
        return error

    def __repr__(self):
        return f"<{self.status} {self.headers} {self.body[:1500]!r}>"


class Client:
    """One connection, kept; made when it is needed."""

    def __init__(self, server, key=None, headers=None):
        self.server, self.connection = server, None
        self.headers = dict(headers or {})
        if key:
            self.headers["Authorization"] = "Bearer " + key

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    def close(self):
        if self.connection:
            self.connection.close()
            self.connection = None

    def begin(self, method, path, json_body=None, body=None, headers=None):
        """Sends a request and returns the response with its headers read."""
        headers = {**self.headers, **(headers or {})}
        if json_body is not None:
            body = json.dumps(json_body).encode()
            headers.setdefault("Content-Type", "application/json")
        if self.connection is None:
            self.connection = http.client.HTTPConnection("localhost", self.server.port)
            self.connection.sock = self.server.connect()
        self.connection.request(method, path, body=body, headers=headers)
        return self.connection.getresponse()

    def request(self, method, path, json_body=None, **more):
        try:
            response = self.begin(method, path, json_body, **more)
            body = response.read()
        except BaseException:
            self.close()
            raise
        headers = {k.lower(): v for k, v in response.getheaders()}
        assert REQUEST_ID.fullmatch(headers.get("x-request-id", "")), headers
        if response.will_close:
            self.close()
        return Answer(response.status, headers, body)

    def get(self, path, **more):
        return self.request("GET", path, **more)

    def post(self, path, json_body=None, **more):
        return self.request("POST", path, json_body, **more)

    def put(self, path, body, **more):
        return self.request("PUT", path, body=body, **more)

    def delete(self, path, **more):
        return self.request("DELETE", path, **more)

    def form(self, path, *parts, **more):
        body, kind = form(*parts)
        return self.request("POST", path, body=body, headers={"Content-Type": kind}, **more)

    def stream(self, path, body, **more):
        """A stream in whichever of its two forms."""
        return Stream(self, self.begin("POST", path, {"stream": True, **body}, **more))

    def session(self, **spec):
        return Session(self, self.post("/v1/sessions", spec).expect(201).json)

    def all(self, path):
        """Every page of a list."""
        found, after = [], ""
        while True:
            page = self.get(f"{path}{'&' if '?' in path else '?'}limit=100{after}").expect(200).json
            found += page["data"]
            if not page["has_more"]:
                return found
            after = "&after=" + page["last_id"]


def form(*parts):
    """multipart/form-data of (field, file name or None, bytes): body and content type."""
    boundary = "----" + secrets.token_hex(12)
    body = b""
    for field, name, data in parts:
        head = f'form-data; name="{field}"'.encode()
        if name is not None:
            name = name.encode() if isinstance(name, str) else name
            head += b'; filename="' + name + b'"'
        body += b"--%s\r\nContent-Disposition: %s\r\n\r\n%s\r\n" % (boundary.encode(), head, data)
    return body + b"--%s--\r\n" % boundary.encode(), "multipart/form-data; boundary=" + boundary


class Session:
    def __init__(self, client, info):
        self.client, self.info, self.id = client, info, info["id"]
        self.path = "/v1/sessions/" + self.id

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        with contextlib.suppress(OSError, http.client.HTTPException, AssertionError):
            self.client.delete(self.path)

    def get(self):
        return self.client.get(self.path).expect(200).json

    def ask(self, code, **more):
        return self.client.post(self.path + "/execute", {"code": code, **more})

    def run(self, code, **more):
        return self.ask(code, **more).expect(200).json

    def shell(self, line, **more):
        return self.run(line, language="shell", **more)

    def background(self, code, **more):
        return self.ask(code, background=True, **more).expect(202).json

    def stream(self, code, **more):
        """On a connection of its own, so that the session can be asked meanwhile."""
        return self.client.server.client(**{}).stream(self.path + "/execute",
                                                      {"code": code, **more})

    def file(self, path):
        """The URL of a file: a path as text or bytes."""
        return f"{self.path}/files/{quote(path)}"

    def put(self, path, data):
        return self.client.put(self.file(path), data).expect(201).json

    def read(self, path):
        return self.client.get(self.file(path)).expect(200).body

    def files(self):
        return {f["path"]: f for f in self.client.get(self.path + "/files").expect(200).json["data"]}

    def wait(self, execution, seconds=retort.SECONDS):
        """Until an execution has ended: its record."""
        return wait_for(self.client, execution, seconds)


def wait_for(client, execution, seconds=retort.SECONDS):
    until = time.monotonic() + seconds
    while True:
        record = client.get("/v1/executions/" + execution["id"]).expect(200).json
        if record["status"] not in ("queued", "running"):
            return record
        assert time.monotonic() < until, record
        time.sleep(0.02)


class Stream:
    """Objects of a stream as they come: next() or for; each has "type". Pings are counted."""

    def __init__(self, client, response):
        self.client, self.response, self.pings = client, response, 0
        self.status = response.status
        self.headers = {k.lower(): v for k, v in response.getheaders()}

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    def close(self):
        self.client.close()
        self.response.close()

    def __iter__(self):
        return self

    def __next__(self):
        found = self._sse() if self.headers["content-type"] == "text/event-stream" else self._line()
        if found is None:
            raise StopIteration
        return found

    def _readline(self):
        line = self.response.readline()
        assert line.isascii(), line
        return line.decode()

    def _line(self):
        while line := self._readline():
            found = json.loads(line)
            if found["type"] != "ping":
                return found
            self.pings += 1
        return None

    def _sse(self):
        name = data = None
        while line := self._readline():
            line = line.rstrip("\n")
            if line.startswith(":"):
                self.pings += 1
            elif line.startswith("event: "):
                name = line[7:]
            elif line.startswith("data: "):
                data = line[6:]
            elif line == "" and name:
                found = json.loads(data)
                assert found.setdefault("type", name) == name
                return found
            else:
                assert line == "", line
        return None

    def until(self, **want):
        """The first object that has these members; what came before it is dropped."""
        for found in self:
            if all(found.get(k) == v for k, v in want.items()):
                return found
        raise AssertionError(f"never came: {want}")

    def until_said(self, text, kind="stdout"):
        said = ""
        for found in self:
            if found["type"] == kind:
                said += found["text"]
                if text in said:
                    return said
        raise AssertionError(f"never said {text!r}: {said!r}")


def together(*calls):
    """Each call in a thread of its own: their results; the first exception is raised."""
    results, wrong = [None] * len(calls), []

    def one(i, call):
        try:
            results[i] = call()
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=one, args=(i, call), daemon=True)
               for i, call in enumerate(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(2 * retort.SECONDS)
        assert not thread.is_alive(), "a call hangs"
    if wrong:
        raise wrong[0]
    return results
