"""What a hostile reader of the code went for: long answers, many files, lost processes, rubbish
that piles up."""

import contextlib
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import pytest

from support import retort
from support.server import Server, together, wait_for

FLAGS = ["--output", "4M", "--disk", "256M"]
LONG = 3 << 20


# --- long answers -------------------------------------------------------------------------------

@pytest.mark.once
@pytest.mark.parametrize("text", ["x", "\\x01", "\\0", "\\u00e9", "\\U0001f600", "\\\\\\\""])
def test_a_long_answer_is_the_same_wherever_it_is_read(session, client, text):
    """Control characters and the like: none is lost on the way to the client or to the record."""
    said = json.loads(f'"{text}"'.replace("\\x01", "\\u0001").replace("\\0", "\\u0000")
                      .replace("\\U0001f600", "\\ud83d\\ude00"))
    count = LONG // len(said.encode())
    done = session.run(f"print({said!r} * {count}, end='')")
    assert done["stdout"] == said * count
    assert "".join(e["text"] for e in done["events"] if e["type"] == "stdout") == said * count
    assert client.get("/v1/executions/" + done["id"]).expect(200).json == done
    output = client.get(f"/v1/executions/{done['id']}/output").expect(200)
    assert output.text == said * count
    end = client.get(f"/v1/executions/{done['id']}/output", headers={"Range": "bytes=-4"}).expect(206)
    assert end.body == output.body[-4:]


@pytest.mark.once
def test_a_nul_is_on_record(session, client):
    done = session.run("print('a\\0b')")
    assert done["stdout"] == "a\0b\n"
    assert client.get("/v1/executions/" + done["id"]).json == done
    lines = client.get(f"/v1/executions?format=jsonl&session={session.id}").text.splitlines()
    assert json.loads(lines[-1])["events"] == done["events"]


@pytest.mark.once
def test_others_are_answered_while_a_long_answer_is_made(server, client):
    """Sixteen megabytes of escapes were seconds of everybody's time."""
    code = f"print('\\x01' * {LONG})"
    ends = threading.Event()

    def ask():
        with server.client() as c:
            while not ends.is_set():
                assert c.get("/health").status == 200

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        answers = together(*[lambda: server.client().post("/v1/execute", {"code": code})] * 6)
    finally:
        ends.set()
        asking.join()
    assert all(len(a.expect(200).json["stdout"]) == LONG + 1 for a in answers)


@pytest.mark.once
def test_a_client_that_leaves_a_long_answer(server, client):
    for _ in range(10):
        with server.client() as c:
            response = c.begin("POST", "/v1/execute", {"code": f"print('x' * {LONG})"})
            response.read(random.choice([1, 1000, 100_000]))
    client.post("/v1/execute", {"code": "6 * 7"}).expect(200)


@pytest.mark.once
def test_long_code(session, client):
    code = "#" * (1 << 20) + "\n6 * 7"
    done = session.run(code)
    assert done["result"] == "42" and done["code"] == code
    assert wait_for(client, session.background(code))["code"] == code


# --- many files ---------------------------------------------------------------------------------

MANY = 4000


def paths(done):
    return {(f["path"], f["change"]) for f in done["files"]}


@pytest.mark.once
def test_many_files(session, client):
    """More than are looked at on the spot: the same is told of them, and kept."""
    done = session.run(f"for i in range({MANY}): open(f'f{{i:05}}', 'w').write('x')")
    assert len(done["files"]) == 200 and "artifact_count" in done["outcome"]["limits_hit"]
    assert len(session.files()) == MANY
    assert session.run("1")["files"] == []
    done = session.run("import os\nos.remove('f00007'); open('f00008', 'w').write('yy'); open('new', 'w')")
    assert paths(done) == {("f00007", "deleted"), ("f00008", "changed"), ("new", "created")}
    found = session.files()
    assert "f00007" not in found and found["f00008"]["size"] == 2 and len(found) == MANY


@pytest.mark.once
def test_uploads_while_many_files_are_looked_at(session):
    """A look that began before an upload must not take it for deleted."""
    session.run(f"for i in range({MANY}): open(f'f{{i:05}}', 'w').write('x')")
    ends = threading.Event()
    put = []

    def upload():
        with session.client.server.client() as c:
            while not ends.is_set():
                name = f"up{len(put):05}"
                c.put(session.file(name), b"u").expect(201)
                put.append(name)

    uploading = threading.Thread(target=upload)
    uploading.start()
    try:
        for i in range(25):
            done = session.run(f"open('mine', 'w').write(str({i}))")
            assert [f for f in done["files"] if f["change"] == "deleted"] == []
    finally:
        ends.set()
        uploading.join()
    assert put and set(put) <= set(session.files())
    seen = session.run("import os; sorted(n for n in os.listdir() if n.startswith('up'))")
    assert seen["status"] == "ok"


@pytest.mark.once
def test_a_session_goes_while_its_files_are_looked_at(client):
    for _ in range(5):
        with client.session() as s:
            s.run(f"for i in range({MANY}): open(f'{{i}}', 'w')")
            made = s.background("open('x', 'w')")
            time.sleep(random.uniform(0, 0.05))
            client.delete(s.path).expect(204)
            wait_for(client, made)


# --- processes that die -------------------------------------------------------------------------

def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as f:
        return [int(word) for word in f.read().split()]


def test_without_its_warden_the_server_ends():
    """It cannot make another one, and a server that can run nothing must not look alive."""
    with Server() as server:
        with server.client() as c:
            c.post("/v1/execute", {"code": "1"}).expect(200)
        server.remember()
        warden, = children(server.pid)
        os.kill(warden, signal.SIGKILL)
        assert server.process.wait(20) == 3
        server.process = None
        server.start()  # which tidies up
        server.check_alive()


def test_a_zygote_that_does_not_come_back_at_once():
    place = Path(tempfile.mkdtemp(prefix="retort-test-serve-", dir="/var/tmp"))  # /tmp is each box's own
    place.chmod(0o755)
    try:
        subprocess.run(["/usr/bin/python3", "-m", "venv", "--system-site-packages", "--without-pip",
                        place / "venv"], check=True)
        python = place / "venv/bin/python3"
        target = os.readlink(python)
        with Server("--python", str(python)) as server, server.client() as c:
            c.post("/v1/execute", {"code": "1"}).expect(200)
            warden, = children(server.pid)
            python.unlink()
            for zygote in children(warden):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(zygote, signal.SIGKILL)
            retort.wait_until(lambda: c.get("/ready").status == 503, "the end of the pool")
            retort.wait_until(lambda: "not replaced" in server.log(), "a try in vain")
            python.symlink_to(target)
            retort.wait_until(lambda: c.get("/ready").status == 200, "another try", 30)
            c.post("/v1/execute", {"code": "1"}).expect(200)
    finally:
        shutil.rmtree(place, ignore_errors=True)


# --- what piles up ------------------------------------------------------------------------------

@pytest.mark.once
def test_more_rubbish_than_one_sweep_takes():
    """Rows that have had their time go as fast as they can come, not so many a minute."""
    with Server("--retention", "60", "--records", "60") as server:
        with server.client() as c:
            c.post("/v1/execute", {"code": "1"}).expect(200)
        server.stop()
        with contextlib.closing(sqlite3.connect(server.state / "retort.db")) as db:
            for i in range(130):
                db.execute("INSERT INTO sessions SELECT ?, tenant, pool, NULL, NULL, NULL, state, 1, 1,"
                           " 1, 1, 1, 0, 0, home FROM sessions LIMIT 1", (f"sess_{i:028}",))
            columns = [row[1] for row in db.execute("PRAGMA table_info(execs)")]
            old = dict(zip(columns, db.execute("SELECT * FROM execs LIMIT 1").fetchone()))
            for i in range(2600):
                old.update(id=f"exec_{i:028}", created_ms=1)
                db.execute(f"INSERT INTO execs ({', '.join(old)}) VALUES ({', '.join('?' * len(old))})",
                           list(old.values()))
            db.commit()
        server.start()
        with server.client() as c:
            # One page, as what a second one would go on after may be gone by then.
            for path in ("/v1/sessions", "/v1/executions"):
                retort.wait_until(lambda: len(c.get(f"{path}?limit=1000").expect(200).json["data"]) == 1,
                                  f"the end of old {path}")


def test_one_shots_that_nobody_waits_for():
    """Their sandboxes go at once: else a few of them are all there may be."""
    with Server("--max-sessions", "4", "--ready", "0", "--idle-timeout", "10m") as server:
        for _ in range(12):
            with server.connect() as s:
                body = b'{"code": "1"}'
                s.sendall(b"POST /v1/execute HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                          b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        with server.client() as c:
            retort.wait_until(lambda: c.post("/v1/execute", {"code": "1"}).status == 200, "room", 30)
            retort.wait_until(lambda: all(s["state"] == "asleep" for s in c.all("/v1/sessions")),
                              "all to sleep")
