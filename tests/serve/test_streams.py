"""Answers that come while the code runs."""

import json
import time

import pytest

from support import retort
from support.server import REQUEST_ID, together

pytestmark = pytest.mark.once

FLAGS = ["--output", "200M", "--memory", "400M"]
WAIT = "import os, time\nwhile not os.path.exists('go'): time.sleep(.005)\n"
FORMS = {"sse": "text/event-stream", "ndjson": "application/x-ndjson"}


@pytest.fixture(params=FORMS)
def shape(request):
    return request.param


def test_everything_in_order(session, shape):
    code = ("import sys\nprint('one', flush=True)\nprint('two', file=sys.stderr, flush=True)\n"
            "display('three')\nopen('f.txt', 'w').write('x')\nprint('ü\u2028', flush=True)\n6 * 7")
    with session.stream(code, stream=shape) as stream:
        assert stream.status == 200
        assert stream.headers["content-type"] == FORMS[shape]
        assert stream.headers["cache-control"] == "no-store"
        assert REQUEST_ID.fullmatch(stream.headers["x-request-id"])
        found = list(stream)
    assert [f["type"] for f in found] == ["execution", "stdout", "stderr", "display", "stdout",
                                          "result", "file", "done"]
    assert found[0]["session"] == session.id
    assert found[0]["status"] in ("queued", "running")  # nothing is before it
    assert found[4]["text"] == "ü\u2028\n"
    assert found[6]["path"] == "f.txt" and found[6]["url"] == session.file("f.txt")
    done = found[-1]
    assert (done["id"], done["session"], done["status"]) == (found[0]["id"], session.id, "ok")
    assert done["outcome"]["status"] == "ok"
    record = session.client.get("/v1/executions/" + done["id"]).expect(200).json
    assert [e["type"] for e in record["events"]] == [f["type"] for f in found[1:-1]]


def test_metadata_of_a_display_outlives_its_frame(session, shape):
    """What is held until it is on record, three megabytes of it, still has its metadata when it is told."""
    code = ("for n in range(3): display({'text/plain': str(n) * 1_000_000}, raw=True, metadata={'n': n, 'text': 'x' * 5000})\n"
            "display({'text/plain': 'y' * 3_000_000}, raw=True, metadata={'n': 3})")
    with session.stream(code, stream=shape) as stream:
        *told, done = list(stream)
    told = told[1:]
    assert [(e["metadata"]["n"], len(e["data"]["text/plain"])) for e in told] == [(0, 1_000_000), (1, 1_000_000), (2, 1_000_000), (3, 3_000_000)]
    assert all(e["metadata"].get("text", "x" * 5000) == "x" * 5000 for e in told)
    record = session.client.get("/v1/executions/" + done["id"]).expect(200).json
    assert [e["metadata"] for e in record["events"]] == [e["metadata"] for e in told]


def test_true_is_sse(session):
    with session.stream("1", stream=True) as stream:
        assert stream.headers["content-type"] == "text/event-stream"
        assert [f["type"] for f in stream] == ["execution", "result", "done"]


def test_connection_is_kept_after_a_stream(session, client, shape):
    with client.stream(session.path + "/execute", {"code": "1", "stream": shape}) as stream:
        list(stream)
        assert client.get("/health").status == 200


def test_headers_before_anything_runs(session, shape):
    first = session.background(WAIT)
    with session.stream("print('ran')", stream=shape) as stream:
        assert next(stream)["status"] == "queued"  # while the one before it waits for us
        assert session.client.get("/v1/executions/" + first["id"]).json["ended_at"] is None
        session.put("go", b"")
        assert stream.until(type="done")["status"] == "ok"


def test_output_comes_while_it_runs(session, shape):
    code = "print('before', flush=True)\n" + WAIT + "print('after')"
    with session.stream(code, stream=shape) as stream:
        stream.until_said("before")
        session.put("go", b"")
        stream.until_said("after")


def test_output_of_commands_comes_while_they_run(session, shape):
    line = "echo before; while [ ! -e go ]; do sleep .01; done; echo after"
    with session.stream(line, language="shell", stream=shape) as stream:
        stream.until_said("before")
        session.put("go", b"")
        stream.until_said("after")
        assert stream.until(type="done")["status"] == "ok"


def test_raised(session, shape):
    with session.stream("1 / 0", stream=shape) as stream:
        found = list(stream)
    assert [f["type"] for f in found] == ["execution", "error", "done"]
    assert found[1]["name"] == "ZeroDivisionError" and found[2]["status"] == "raised"


def test_pings_while_silent(server):
    def one(shape):
        with server.client() as c, c.session() as s, \
                s.stream("import time; time.sleep(17)", stream=shape) as stream:
            assert stream.until(type="done")["status"] == "ok"
            return stream.pings

    assert together(lambda: one("sse"), lambda: one("ndjson")) == [1, 1]


def test_what_keeps_it_from_running(session, shape):
    files = [{"url": "http://127.0.0.1:1/x", "path": "x"}]
    with session.stream("open('ran', 'w')", stream=shape, files=files) as stream:
        assert stream.status == 200
        last = list(stream)[-1]
        assert last["type"] == "error"
        assert set(last["error"]) == {"type", "message", "param", "request_id"}
        assert last["error"]["request_id"] == stream.headers["x-request-id"]
    assert session.files() == {}


def test_refused_before_it_begins(client, shape):
    answer = client.post("/v1/sessions/sess_aaaaaaaaaaaaaaaaaaaaaaaaaaaa/execute",
                         {"code": "1", "stream": shape})
    answer.refused(404)


# --- clients that leave ---

NOTICE = """
import json
import time
try:
    print('up', flush=True)
    time.sleep(60)
except KeyboardInterrupt:
    open('interrupted', 'w').write('yes')
    raise
"""


def test_a_client_that_leaves_interrupts(session, shape):
    session.run("kept = 1")
    with session.stream(NOTICE, stream=shape) as stream:
        begun = next(stream)
        stream.until_said("up")
    done = session.wait(begun)
    assert done["status"] == "interrupted"
    assert session.read("interrupted") == b"yes"
    assert session.run("kept")["result"] == "1"


def test_a_client_that_leaves_while_it_waits_for_json(server, session):
    body = json.dumps({"code": NOTICE.replace("print('up', flush=True)", "open('up', 'w').close()")}).encode()
    with server.connect() as s:
        s.sendall(b"POST %s/execute HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                  b"Content-Length: %d\r\n\r\n%s" % (session.path.encode(), len(body), body))
        retort.wait_until(lambda: session.get()["state"] == "running", "the cell to run")
        retort.wait_until(lambda: "up" in session.files(), "the cell to be under way")
    retort.wait_until(lambda: session.get()["state"] == "idle", "the cell to end")
    assert session.read("interrupted") == b"yes"


def test_a_client_that_leaves_while_queued(session):
    first = session.background(WAIT)
    with session.stream("open('ran', 'w')") as stream:
        queued = next(stream)
    assert session.wait(queued)["status"] == "interrupted"
    session.put("go", b"")
    assert session.wait(first)["status"] == "ok"
    assert "ran" not in session.files()


def test_the_background_needs_no_client(server, session):
    with server.client() as other:
        begun = other.post(session.path + "/execute",
                           {"code": WAIT + "print('went')", "background": True}).expect(202).json
    session.put("go", b"")
    assert session.wait(begun)["stdout"] == "went\n"


# --- a slow reader ---

def test_a_slow_reader_is_waited_for(server, session, shape):
    """It takes nothing; the code waits with its output, and the server's memory does not grow."""
    session.run("import sys\nline = 'x' * 9999")
    before = server.resident()
    total = 80_000_000
    with session.stream(f"for i in range({total // 10000}): print(line)\nprint('e' + 'nd')",
                        stream=shape) as stream:
        begun = next(stream)
        seen = 0
        for _ in range(30):  # what is buffered on the way is soon full; then nothing moves
            time.sleep(0.1)
            seen = max(seen, server.resident())
        record = session.client.get(session.path).expect(200).json
        assert record["state"] == "running"
        assert seen - before < 24 * 1024
        got = 0
        for found in stream:
            got += len(found["text"]) if found["type"] == "stdout" else 0
        assert found["type"] == "done" and found["status"] == "ok", found
    assert got == total + 4
    assert begun["id"] == found["id"]


def test_neighbours_of_a_slow_reader(server, session):
    session.run("line = 'x' * 9999")
    with session.stream("while True: print(line)") as stream:
        next(stream)
        time.sleep(0.5)
        with server.client() as other, other.session() as neighbour:
            assert neighbour.run("6 * 7")["result"] == "42"
