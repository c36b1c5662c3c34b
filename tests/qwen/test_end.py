"""The server ends while a worker thread is busy for a call: nothing is touched that has been freed.

A use after free shows in a build with -Db_sanitize=address,undefined. There are two worker threads, so
that one is busy for as long as it takes and the service has the other.
"""

import json
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from support import retort
from support.server import Server, folder

LARGE = "{code: '1', more: [" + "0," * 1_000_000 + "]}"
INTERRUPTED = 130


@pytest.fixture
def place():
    path = folder()
    path.chmod(0o777)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def own(place):
    """The folder in the work dir of those who need no key."""
    path = place / "local"
    path.mkdir()
    path.chmod(0o777)
    return path


@pytest.fixture
def server(place):
    with Server("--qwen-work-dir", place, "--disk", "512M", "--memory", "1G",
                env={"UV_THREADPOOL_SIZE": "2"}) as one:
        yield one
        if one.process is not None:
            one.stop()


def ask(server, body):
    """Sends a call and does not wait for its answer: the connection."""
    s = server.connect()
    body = body.encode()
    s.sendall(b"POST /qwen/code_interpreter HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\n"
              b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    return s


def busy(server):
    """Clock ticks that the threads beside the first have used."""
    tasks = Path(f"/proc/{server.pid}/task")
    stats = [(tasks / t.name / "stat").read_text() for t in tasks.iterdir() if int(t.name) != server.pid]
    return sum(int(n) for s in stats for n in s.rpartition(")")[2].split()[11:13])


def ask_all(server, *bodies):
    """The calls, with a worker at it."""
    before = busy(server)
    calls = [ask(server, body) for body in bodies]
    retort.wait_until(lambda: busy(server) > before + 1, "a worker that is busy")
    return calls


def end_now(server, *calls):
    """A second signal: the server does not wait for what is under way. The clients do not go before."""
    server.remember()
    process, server.process = server.process, None
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGINT)
    try:
        status = process.wait(retort.SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    assert status == INTERRUPTED, f"it ended with {status}:\n{server.log()}"
    assert "Sanitizer" not in server.log(100_000), server.log(100_000)
    server.check_clean()
    for call in calls:
        call.close()


def with_files(*files, code="1"):
    """A call with files, one of which the service keeps until the call is over."""
    return json.dumps({"code": code, "files": ["data:,kept", *files]})


def test_a_body_is_read_to_its_end(server):
    calls = ask_all(server, LARGE, LARGE)
    server.stop()
    assert [c.recv(12)[:9] for c in calls] == 2 * [b"HTTP/1.1 "]


def test_no_time_for_a_body(server):
    end_now(server, *ask_all(server, *4 * [LARGE]))


def test_no_time_for_files(server, own):
    with open(own / "big", "wb") as f:
        f.truncate(60 << 20)
    end_now(server, *ask_all(server, with_files(*8 * ["big"])))


def test_no_time_for_the_work_dir(server, own):
    call = ask(server, with_files(code="for i in range(9): open(f'made{i}', 'wb').write(bytes(30 << 20))"))
    retort.wait_until(lambda: (own / "made0").exists(), "a file in the work dir", retort.SECONDS)
    end_now(server, call)
