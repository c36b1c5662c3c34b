"""The server's life: how it starts and greets, whom it refuses, what signals do."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from support import retort
from support.server import folder
from terminal import Server, keys, make_key

pytestmark = pytest.mark.once

WITHOUT = retort.REPO / "tests/doctor/without.py"
TLS = Path(__file__).parent / "tls"


@pytest.fixture(scope="module")
def server():
    with Server() as s:
        yield s


@pytest.fixture
def place():
    path = folder()
    yield path
    shutil.rmtree(path, ignore_errors=True)


def refused(*args, status=2, **options):
    found, out, err = retort.call("serve", *args, **options)
    assert (found, out) == (status, b""), (found, out, err)
    return err


# --- starting ---

def test_answers(server):
    assert server.get("/health").status == 200
    answer = server.run("6 * 7")
    assert answer.status == 200 and answer.json["result"] == "42"


def test_greets_with_commands_that_work(server):
    assert len(server.addresses) == 1 and server.addresses[0].startswith("http://127.0.0.1:")
    assert len(server.commands) == 3
    answers = [subprocess.run(["bash", "-c", command], capture_output=True, timeout=60, check=True).stdout
               for command in server.commands]
    assert json.loads(answers[0])["data"][0]["name"] == "default"
    assert json.loads(answers[1])["result"] == "42"
    assert b"event: done" in answers[2]


def test_one_server_per_state(server):
    error = refused("--state", server.state, "--listen", "127.0.0.1:0")
    assert "another server uses" in error and str(server.state) in error
    for file in Path(server.state).glob("*lock*"):  # someone tidies up
        file.unlink()
    error = refused("--state", server.state, "--listen", "127.0.0.1:0")
    assert "another server uses" in error and str(server.state) in error
    assert server.run("6 * 7").json["result"] == "42"


def test_address_in_use(server, place):
    error = refused("--state", place / "s", "--listen", server.addresses[0].removeprefix("http://"))
    assert "cannot listen on" in error and "in use" in error and "give another port with --listen" in error


def test_state_that_cannot_be(place):
    (place / "file").write_text("")
    assert "state directory" in refused("--state", place / "file/below", "--listen", "127.0.0.1:0")


@pytest.mark.parametrize("option", ["--qwen-pool", "--prisme-pool", "--anthropic-pool", "--ubik-pool"])
def test_a_pool_that_is_not_there(place, option):
    assert f"{option}: there is no pool nope" in refused("--state", place / "s", "--listen", "127.0.0.1:0", option, "nope")


def test_two_addresses(place):
    with Server("--listen", f"unix:{place}/s.sock", "--listen", "[::1]:0", "--socket-mode", "0640") as s:
        assert len(s.addresses) == 3
        assert (place / "s.sock").stat().st_mode & 0o777 == 0o640
        for address in s.addresses:
            assert s.get("/health", address=address).status == 200
    again = Server("--listen", f"unix:{place}/s.sock", listen=None)  # whatever was left behind
    with again as s:
        assert s.commands[0].startswith("curl -s --unix-socket")
        assert s.get("/health").status == 200


# --- who can reach it ---

def test_open_address_needs_decisions(place):
    state = place / "state"
    error = refused("--state", state, "--listen", "0.0.0.0:0")
    assert "--tls-cert" in error and "--plain-http" in error
    error = refused("--state", state, "--listen", "0.0.0.0:0", "--plain-http")
    assert "no key yet" in error and f"retort keys create --tenant NAME --state {state}" in error
    key = make_key(state)
    with Server("--plain-http", state=state, listen="0.0.0.0:0", key=key) as s:
        assert "Authorization: Bearer $KEY" in s.commands[0]
        assert s.run("6 * 7").json["result"] == "42"
        assert s.ask("GET", "/v1/pools", key="rt_wrong").status == 401
    [one] = json.loads(keys("list", "--json", state=state))
    keys("revoke", one["id"], state=state)
    assert "no key yet" in refused("--state", state, "--listen", "0.0.0.0:0", "--plain-http")


def test_tls(place):
    closed = place / "key.pem"  # a key that only its owner reads
    shutil.copy(TLS / "key.pem", closed)
    closed.chmod(0o400)
    with Server("--tls-cert", TLS / "cert.pem", "--tls-key", closed) as s:
        assert s.addresses[0].startswith("https://")
        assert s.run("6 * 7").json["result"] == "42"
    assert "absent.pem" in refused("--state", place / "s", "--listen", "127.0.0.1:0", "--tls-cert",
                                   place / "absent.pem", "--tls-key", closed)


def test_below_the_floor(place):
    program = [sys.executable, str(WITHOUT), "seccomp=ENOSYS", "prctl:22=EINVAL", "--", retort.PROGRAM]
    done = subprocess.run([*program, "serve", "--state", place / "s", "--listen", "127.0.0.1:0"],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 3 and "isolation floor" in done.stderr, done.stderr
    assert not (place / "s").exists()


# --- keys while it runs ---

def test_keys_take_effect_at_once():
    with Server() as s:
        assert s.get("/v1/pools").status == 200
        key = make_key(s.state)
        s.process.send_signal(signal.SIGHUP)
        retort.wait_until(lambda: s.get("/v1/pools").status == 401, "the key to be seen")
        assert s.get("/v1/pools", key=key).status == 200
        [one] = json.loads(keys("list", "--json", state=s.state))
        keys("revoke", one["id"], state=s.state)
        s.process.send_signal(signal.SIGHUP)
        retort.wait_until(lambda: s.get("/v1/pools", key=key).status == 401, "the key to be gone")


# --- signals ---

def test_reload(place):
    config = place / "retort.ini"
    config.write_text("log-level = info\ndrain = 5\n")
    with Server("--config", config) as s:
        config.write_text("log-level = debug\nlog-format = json\ndrain = 6\n[pool default]\n[pool b]\n")
        s.process.send_signal(signal.SIGHUP)
        s.wait_for("log", "these take a restart: drain, pool b")
        line = next(x for x in s.log.splitlines() if "these take a restart" in x)
        assert json.loads(line)["level"] == "warn"
        config.write_text("drain = often\n")
        s.process.send_signal(signal.SIGHUP)
        s.wait_for("log", "retort.ini:1: drain: 'often' is not a number of seconds")
        assert s.run("6 * 7").json["result"] == "42"
        assert s.end() == 0


def test_end_lets_what_runs_come_to_its_end():
    with Server() as s:
        session = s.ask("POST", "/v1/sessions", {}).json["id"]
        answers = []
        asker = threading.Thread(target=lambda: answers.append(s.ask(
            "POST", f"/v1/sessions/{session}/execute",
            {"code": "import time, pathlib; pathlib.Path('on').touch(); time.sleep(2); 'done'"})))
        asker.start()
        retort.wait_until(lambda: s.get(f"/v1/sessions/{session}").json["state"] == "running",
                          "the cell to run")
        assert s.end(signal.SIGTERM) == 0
        asker.join(retort.SECONDS)
        assert answers[0].json["result"] == "'done'"


def test_end_is_bounded_and_the_second_signal_at_once():
    for args, ends, status in ((("--drain", "0.2"), 1, 0), ((), 2, 130)):
        with Server(*args) as s:
            session = s.ask("POST", "/v1/sessions", {}).json["id"]
            asker = threading.Thread(target=lambda s=s, i=session: suppressed(
                lambda: s.ask("POST", f"/v1/sessions/{i}/execute", {"code": "import time; time.sleep(50)"})))
            asker.start()
            retort.wait_until(lambda s=s, i=session: s.get(f"/v1/sessions/{i}").json["state"] == "running",
                              "the cell to run")
            for _ in range(ends - 1):
                s.process.send_signal(signal.SIGINT)
                s.wait_for("log", "no new requests")
            assert s.end(signal.SIGINT) == status
            asker.join(retort.SECONDS)


def suppressed(call):
    try:
        return call()
    except OSError:
        return None


def test_nothing_is_left_behind():
    with Server() as s:
        s.run("1")
        below = retort.below(s.pid)
        assert below
        assert s.end() == 0
        retort.wait_until(lambda: not any(map(retort.is_alive, below)), "its processes to end")


# --- the service manager ---

def test_tells_the_service_manager(place):
    path = place / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told:
        told.bind(str(path))
        told.settimeout(retort.SECONDS)
        path.chmod(0o777)
        with Server(env={**os.environ, "NOTIFY_SOCKET": str(path)}) as s:
            assert told.recv(100) == b"READY=1"
            assert s.end() == 0
            assert told.recv(100) == b"STOPPING=1"


def test_takes_over_sockets():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        own = folder()
        process = subprocess.Popen(
            ["sh", "-c", 'LISTEN_FDS=1 LISTEN_PID=$$ exec "$@" 3<&0 </dev/null', "sh", retort.PROGRAM,
             "serve", "--state", own / "state", "--preload", "", "--ready", "0"],
            stdin=listener, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            first = process.stdout.readline().decode()
            assert first.split()[-1] == f"http://127.0.0.1:{port}", first
            with socket.create_connection(("127.0.0.1", port), timeout=retort.SECONDS) as client:
                client.sendall(b"GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
                assert client.recv(100).startswith(b"HTTP/1.1 200")
            process.send_signal(signal.SIGTERM)
            assert process.wait(retort.SECONDS) == 0
        finally:
            retort.end(process)
            shutil.rmtree(own, ignore_errors=True)
