"""What the operator sets: lists, times, how many at once, who is trusted, a sandbox that is down."""

import base64
import hashlib
import hmac
import json
import os
import pwd
import shutil
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from support import retort
from support.server import Server, folder

DENIED = "not allowed by PYTHON_PACKAGES_WHITELIST_IMPORT"


def run(client, code, status=200, files=(), **more):
    return client.post("/prisme/execute_python", {"code": code, "files": list(files)}, **more).expect(status).json


@pytest.fixture(scope="module")
def by_env():
    with Server("--memory", "1G", "--fetch-private",
                env={"PYTHON_PACKAGES_WHITELIST_IMPORT": "numpy", "PYTHON_BUILTIN_MODULES": "os, json",
                     "PYTHON_PACKAGES_AUTO_INSTALL": "sympy==1.11", "KERNEL_POOL_SIZE": "2",
                     "PYTHON_FUNCTIONS_RUN_TIMEOUT": "1500"}) as server:
        yield server


@pytest.fixture
def client(by_env):
    with by_env.client() as one:
        yield one


def test_p16_lists_by_the_environment(client):
    assert run(client, "import os, json, numpy\nreturn 1")["result"] == 1
    assert run(client, "import sympy\nreturn 1")["result"] == 1
    for name in ("csv", "pandas"):
        assert run(client, "import " + name)["error"]["message"].endswith(DENIED)


def test_p19_a_download_holds_no_seat(by_env, client, shelf):
    """As many scripts as run at a time wait for their files, and another one runs meanwhile."""
    gate = shelf.gates["/slow.csv"] = threading.Event()
    shelf.files["/slow.csv"] = b"came"

    def slow():
        with by_env.client() as one:
            return run(one, "return open('slow.csv').read()", files=[shelf.url("/slow.csv")])

    with ThreadPoolExecutor(3) as threads:
        waiting = [threads.submit(slow) for _ in range(3)]
        try:
            retort.wait_until(lambda: shelf.asked.count("/slow.csv") == 3, "three downloads")
            assert run(client, "return 'ran'")["result"] == "ran"
            assert not any(w.done() for w in waiting)
        finally:
            gate.set()
        assert [w.result()["result"] for w in waiting] == ["came"] * 3


def test_p19_a_download_that_fails_or_is_left(by_env, client, shelf):
    gate = shelf.gates["/left.csv"] = threading.Event()
    body = json.dumps({"code": "return 1", "files": [shelf.url("/left.csv"), shelf.url("/nowhere.csv")]}).encode()
    assert run(client, "return 1", files=[shelf.url("/nowhere.csv")])["error"]["code"] == "FileDownloadFailed"
    s = by_env.connect()
    s.sendall(b"POST /prisme/execute_python HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
              b"Content-Length: %d\r\n\r\n" % len(body) + body)
    retort.wait_until(lambda: "/left.csv" in shelf.asked, "the download")
    s.close()
    gate.set()
    assert run(client, "return 2")["result"] == 2


def test_p18_time_limit_by_the_environment(client):
    value = run(client, "while True:\n    pass")
    assert value["error"]["code"] == "ExecutionTimeout" and value["duration"] >= 1500
    assert value["error"]["message"] == "stopped at the time limit of 1.500 s"


def test_nothing_is_said_of_variables_where_none_are_kept(client):
    for code in ("import os\nos._exit(3)", "import os\nos.kill(os.getpid(), 9)"):
        error = run(client, code)["error"]
        assert error["code"] == "InterpreterDied" and error["message"]
        assert "variables" not in error["message"] and "kept" not in error["message"]


def test_p19_the_next_one_waits(by_env):
    """Three scripts where two may run: the third begins when another has ended."""
    code = ("from json import decoder\nt = decoder.scanner.re.enum.sys.modules['time']\n"
            "a = t.monotonic()\nt.sleep(0.6)\nreturn [a, t.monotonic()]")
    spans = []

    def one():
        with by_env.client() as c:
            spans.append(run(c, code)["result"])

    threads = [threading.Thread(target=one) for _ in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(spans) == 3
    for a, _ in spans:
        assert sum(begin <= a < end for begin, end in spans) <= 2


def test_duration_is_without_the_wait(by_env):
    """At most two run at a time, so all of them together take no more than twice what has passed."""
    code = "from json import decoder\ndecoder.scanner.re.enum.sys.modules['time'].sleep(0.2)"
    took = []

    def one():
        with by_env.client() as c:
            took.append(run(c, code)["duration"])

    threads = [threading.Thread(target=one) for _ in range(6)]
    begun = time.monotonic()
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(took) == 6 and min(took) >= 200
    assert sum(took) <= 2 * 1000 * (time.monotonic() - begun)


# --- trusted sources ---

KEY = "0123456789abcdef0123456789abcdef"


def server_uid():
    """Started by root, the server is somebody else, and can tell its own user from others alone."""
    if os.getuid() != 0:
        return os.getuid()
    try:
        return pwd.getpwnam("retort").pw_uid
    except KeyError:
        return 1879048191


SERVER_UID = server_uid()


def token(claims, key=KEY, alg="HS256"):
    def part(value):
        return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=")

    text = part({"alg": alg, "typ": "JWT"}) + b"." + part(claims)
    mac = hmac.new(key.encode(), text, hashlib.sha256).digest()
    return (text + b"." + base64.urlsafe_b64encode(mac).rstrip(b"=")).decode()


@pytest.fixture(scope="module")
def trusting():
    place = folder()
    (place / "key").write_text(KEY + "\n")
    (place / "key").chmod(0o644)
    with Server("--prisme-sources", f"token:agent-factory, unix:{SERVER_UID}=storage, unix:4242=images",
                "--prisme-source-key", str(place / "key"),
                "--listen", f"unix:{place}/socket", "--socket-mode", "666") as server:
        server.socket = f"unix:{place}/socket"
        yield server
    shutil.rmtree(place, ignore_errors=True)


def test_p28_token_of_a_listed_source(trusting):
    now = int(time.time())
    with trusting.client() as c:
        good = token({"iss": "agent-factory", "exp": now + 60})
        assert run(c, "return 1", headers={"x-prisme-token": good})["result"] == 1
        for bad in (token({"iss": "stranger", "exp": now + 60}),
                    token({"iss": "agent-factory", "exp": now - 1}),
                    token({"iss": "agent-factory", "exp": now + 86400}),
                    token({"iss": "agent-factory"}),
                    token({"iss": "agent-factory", "exp": now + 60}, key="x" * 32),
                    token({"iss": "agent-factory", "exp": now + 60}, alg="none"),
                    good[:-2], "a.b.c", "x"):
            answer = run(c, "return 1", 403, headers={"x-prisme-token": bad})
            assert answer["error"] == "UNTRUSTED_SOURCE"


def test_p28_nobody_by_default(trusting):
    with trusting.client() as c:
        assert run(c, "return 1", 403)["error"] == "UNTRUSTED_SOURCE"
        assert c.post("/prisme/mcp", {"jsonrpc": "2.0", "id": 1, "method": "ping"}).status == 403
        assert c.post("/v1/execute", {"code": "1"}).status == 200


ASK = """
import http.client, socket, sys
c = http.client.HTTPConnection("localhost")
c.sock = socket.socket(socket.AF_UNIX)
c.sock.connect(sys.argv[1])
c.request("POST", "/prisme/execute_python", '{"code": "return 2"}', {"content-type": "application/json"})
print(c.getresponse().status)
"""


def ask_as(uid, path):
    own = {"user": uid} if os.getuid() == 0 else {}
    return subprocess.run(["/usr/bin/python3", "-c", ASK, path], check=True, stdout=subprocess.PIPE,
                          **own).stdout.decode().strip()


def test_p28_process_of_a_listed_user(trusting):
    path = trusting.socket.partition(":")[2]
    assert ask_as(SERVER_UID, path) == "200"
    if os.getuid() == 0:  # nobody of these has an id in the server's own namespace
        assert ask_as(4242, path) == "200"
        assert [ask_as(uid, path) for uid in (1, 0, 65534, 4243)] == ["403"] * 4


# --- a sandbox that is down ---

def test_p21_code_sandbox_unreachable():
    # Where no pool works the server ends, so there is one more.
    server = Server(config="[pool default]\npython = /bin/false\n[pool good]\n")
    try:
        server.launch()
        deadline = time.monotonic() + 30
        while True:
            try:
                with server.client() as c:
                    value = run(c, "return 1")
                break
            except OSError:
                assert time.monotonic() < deadline
                time.sleep(0.05)
        assert value["error"]["code"] == "CodeSandboxUnreachable"
    finally:
        server.discard()
