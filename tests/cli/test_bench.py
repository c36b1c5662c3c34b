"""`retort bench`: what it says, and that it leaves nothing. Never how fast."""

import contextlib
import http.server
import json
import os
import signal
import socket
import subprocess
import tempfile
import threading
from pathlib import Path

import pytest

from support import retort
from support.server import Server

ROWS = ["pipe", "fork", "health", "cell", "create", "cold", "first", "plot", "one_shot", "throughput", "memory", "answers",
        "ready"]
BESIDE = {"cell": "ms_over", "create": "ms_over", "cold": "times", "first": "times", "plot": "times",
          "one_shot": "times"}


@pytest.fixture
def place():
    """Where its folder is made: a path short enough for a socket, that the server's user may enter."""
    with tempfile.TemporaryDirectory(prefix="rt-", dir="/tmp") as path:
        os.chmod(path, 0o777)
        yield Path(path)


def bench(*flags, place=None, **env):
    more = {"TMPDIR": str(place)} if place else {}
    done = subprocess.run([retort.PROGRAM, "bench", "--seconds", "0", *flags], capture_output=True, text=True,
                          env={**os.environ, **more, **env}, timeout=retort.SECONDS)
    return done.returncode, done.stdout, done.stderr


def check_document(text, missing=()):
    document = json.loads(text)
    assert document["version"] == 1 and document["machine"]["cores"] >= 1 and document["clients"] >= 1
    assert type(document["machine"]["busy"]) is bool
    rows = {row["name"]: row for row in document["rows"]}
    assert list(rows) == ROWS
    for name, row in rows.items():
        assert ("not_measured" in row) == (name in missing), row
        if name in missing:
            assert row["n"] == 0
            continue
        assert row["n"] > 0 and 0 < row["best"] <= row["p50"] <= row["p95"], row
        assert row.get("beside", {}).get("as") == BESIDE.get(name), row
    return document, rows


def test_on_a_server_of_its_own(place):
    # Settings of another server are not this one's: nobody answers there.
    code, out, err = bench("--json", place=place, RETORT_STORE="postgresql://nobody@127.0.0.1:1/none",
                           RETORT_STATE="/proc/none")
    assert code == 0, err
    document, rows = check_document(out, missing=() if retort.has_groups() else ("memory",))
    assert document["server"]["own"] is True and document["server"]["pool"] == "default"
    assert rows["throughput"]["unit"] == "a second" and rows["cell"]["unit"] == "ms"
    assert [line.split(": ")[0] for line in err.splitlines()] == ["retort bench"] * 3
    assert list(place.iterdir()) == []


def begun(place):
    """A bench whose server is up or on its way."""
    child = subprocess.Popen([retort.PROGRAM, "bench", "--seconds", "600"], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": str(place)})
    retort.wait_until(lambda: list(place.glob("*/socket")), "its server's socket")
    return child, [p for p in retort.below(child.pid)]


@pytest.mark.parametrize(("how", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 130), (signal.SIGKILL, -9)])
def test_stopped(place, how, status):
    """Its folder and its server go with it, also when it cannot see to that itself."""
    child, below = begun(place)
    assert below
    child.send_signal(how)
    out, err = child.communicate(timeout=retort.SECONDS)
    assert (child.returncode, out) == (status, ""), err
    assert how == signal.SIGKILL or "retort: interrupted" in err
    retort.wait_until(lambda: not any(map(retort.is_alive, below)), "the end of every process", retort.SECONDS)
    retort.wait_until(lambda: list(place.iterdir()) == [], "the end of its folder", retort.SECONDS)


@pytest.mark.once
def test_on_a_server_that_runs():
    with Server("--preload", "numpy,pandas,matplotlib.pyplot", "--memory", "1G", "--max-sessions", "40") as server:
        url = f"http://127.0.0.1:{server.port}/"
        code, out, err = bench("--server", url)
        assert code == 0, err
        assert url in out and "retort " in out.splitlines()[0]
        assert "start of a server to an answer" in out and out.count("not measured: this server ran already") == 2
        assert "every pool of this server parks sandboxes" in out
        assert max(map(len, out.splitlines())) <= 80, out
        for what in ("GET /health", "print(2+2)", "the first plot", "cells a second"):
            assert what in out
        with server.client() as c:
            assert c.get("/v1/sessions").expect(200).json["data"] == []

        key = server.keys("create", "--tenant", "one", "--quiet").strip()
        retort.wait_until(lambda: server.client().get("/v1/sessions").status == 401, "the key to count")
        code, out, err = bench("--server", url)
        assert (code, out) == (2, "") and "set RETORT_KEY to a key of the server" in err
        code, out, err = bench("--server", url, "--json", RETORT_KEY=key)
        assert code == 0, err
        check_document(out, missing=("cold", "answers", "ready"))


# --- servers that are not as they should be ---

class Fake(http.server.BaseHTTPRequestHandler):
    """As much of a server as the bench asks for, without pandas; `odd` spoils one path."""
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # head and body are two writes
    odd = {}

    def answer(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        path = self.path.removeprefix("/below")
        if path in self.odd:
            return self.odd[path](self)
        cell = {"status": "ok", "session": "s1", "stdout": "4\n"}
        known = {"/health": (200, {}), "/v1/execute": (200, cell), "/v1/sessions/s1/execute": (200, cell),
                 "/v1/sessions": (201, {"id": "s1"}), "/v1/sessions/s1": (204, None),
                 "/v1/pools/p": (200, {"parked": 2}),
                 "/v1/pools": (200, {"data": [{"name": "p", "ready": 2, "python": "3.1", "packages": {}},
                                              {"name": "q", "ready": 0, "python": "3.1", "packages": {}}]})}
        return self.say(*known.get(path, (404, {"error": {"message": "no such thing"}})))

    do_GET = do_POST = do_DELETE = answer

    def say(self, status, value, head=()):
        body = b"" if value is None else json.dumps(value, separators=(",", ":")).encode()
        self.send_response(status)
        for name, text in (("Content-Length", str(len(body))), *head):
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


@contextlib.contextmanager
def fake(**odd):
    handler = type("Odd", (Fake,), {"odd": odd})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield f"http://localhost:{server.server_port}/below"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.once
def test_rows_say_what_the_python_lacks():
    with fake() as url:
        code, out, err = bench("--server", url, "--json")
        assert code == 0, err
        _, rows = check_document(out, missing=("first", "plot", "memory", "answers", "ready"))
    assert rows["memory"]["not_measured"] == rows["first"]["not_measured"]
    assert rows["first"]["not_measured"] == "the pool's Python has no pandas"
    assert rows["plot"]["not_measured"] == "the pool's Python has no matplotlib"


@pytest.mark.once
@pytest.mark.parametrize(("path", "answer", "code", "said"), [
    ("/v1/pools", lambda h: h.say(200, {"what": 1}), 3, "not that of a retort server"),
    ("/v1/pools", lambda h: h.say(503, {"error": {"message": "shutting down"}}), 3, "/v1/pools: shutting down"),
    ("/v1/pools", lambda h: h.say(200, {}, [("Transfer-Encoding", "chunked")]), 3, "not a proxy"),
    ("/v1/sessions", lambda h: h.say(201, {}), 3, "the server has given no session"),
    ("/v1/sessions", lambda h: h.say(429, {"error": {"message": "too many sessions"}}), 2, "too many sessions"),
    ("/v1/execute", lambda h: h.say(200, {"status": "raised"}), 3, "a cell did not answer as it should"),
    ("/health", lambda h: h.connection.shutdown(socket.SHUT_RDWR), 3, "closed the connection"),
])
def test_what_is_wrong_is_said(path, answer, code, said):
    with fake(**{path: answer}) as url:
        status, out, err = bench("--server", url)
    assert (status, out) == (code, "") and said in err, err


@pytest.mark.once
@pytest.mark.parametrize(("flags", "code", "said"), [
    (["--server", "https://127.0.0.1:1"], 2, "is not a plain address such as"),
    (["--server", "http://127.0.0.1:1"], 3, "cannot reach the server at 127.0.0.1:1"),
    (["--server", "http://127.0.0.1:word"], 2, "there is no host"),
    (["--python", "/bin/true"], 2, "ended: pool cold: '/bin/true' is not a Python 3 interpreter"),
    (["extra"], 2, "what is 'extra'?"),
])
def test_wrong_arguments(place, flags, code, said):
    status, out, err = bench(*flags, place=place)
    assert (status, out) == (code, "") and said in err, err
    assert list(place.iterdir()) == []


@pytest.mark.once
def test_no_room(place):
    small = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs -o size=16k,mode=1777 none "$TMPDIR" && exec "$0" bench',
             retort.PROGRAM]
    done = subprocess.run(small, capture_output=True, text=True, env={**os.environ, "TMPDIR": str(place)},
                          timeout=retort.SECONDS)
    assert (done.returncode, done.stdout) == (3, "")
    assert f"said nothing; is there room in {place}/retort-bench-" in done.stderr, done.stderr
