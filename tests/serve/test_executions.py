"""What was executed stays on record: one, many, output by range, the audit log."""

import json
import time

import pytest

pytestmark = pytest.mark.once  # nothing here depends on the walls

BRIEF = {"id", "object", "session", "pool", "kind", "status", "created_at", "started_at",
         "ended_at", "outcome", "key", "door"}
WHOLE = BRIEF | {"code", "stdout", "stderr", "result", "files", "events"}
# Without what is only a convenience, made of the events.
AUDIT = WHOLE - {"stdout", "stderr", "result"} | {"tenant", "key", "request_id", "door", "approval"}


def test_record_is_what_was_answered(session, client):
    done = session.run("print('x')\n1 / 0")
    assert client.get("/v1/executions/" + done["id"]).expect(200).json == done


def test_a_long_record(session, client):
    done = session.run("for i in range(20000): print(i)\nimport sys; print('e' * 100000, file=sys.stderr)")
    record = client.get("/v1/executions/" + done["id"]).expect(200).json
    assert record == done
    assert record["stdout"] == "".join(f"{i}\n" for i in range(20000))


def test_while_it_runs(session, client):
    begun = session.background("print('so far', flush=True)\nimport os, time\n"
                               "while not os.path.exists('go'): time.sleep(.01)\nprint('rest')")
    path = "/v1/executions/" + begun["id"]
    while True:
        now = client.get(path).expect(200).json
        if now["stdout"]:
            break
        time.sleep(0.01)
    assert (now["status"], now["stdout"], now["outcome"]) == ("running", "so far\n", None)
    assert set(now) == WHOLE
    assert client.get(path + "/output").expect(200).text == "so far\n"
    session.put("go", b"")
    session.wait(begun)
    assert client.get(path + "/output").expect(200).text == "so far\nrest\n"


def test_interrupt(session, client):
    begun = session.background("import time; time.sleep(60)")
    waits = session.background("print('next')")
    answer = client.post(f"/v1/executions/{begun['id']}/interrupt").expect(200).json
    assert answer["id"] == begun["id"]
    assert session.wait(begun)["status"] == "interrupted"
    assert session.wait(waits)["stdout"] == "next\n"
    # One that has ended is not an error.
    assert client.post(f"/v1/executions/{begun['id']}/interrupt").expect(200).json["id"] == begun["id"]


def test_interrupt_of_what_waits(session, client):
    first = session.background("import os, time\nwhile not os.path.exists('go'): time.sleep(.01)")
    waits = session.background("open('ran', 'w')")
    client.post(f"/v1/executions/{waits['id']}/interrupt").expect(200)
    assert session.wait(waits)["status"] == "interrupted"
    session.put("go", b"")
    assert session.wait(first)["status"] == "ok"
    assert "ran" not in session.files()


@pytest.mark.parametrize("id", ["exec_aaaaaaaaaaaaaaaaaaaaaaaaaaaa", "x", "sess_x", "exec_" + "a" * 2000])
def test_no_such_execution(client, id):
    for method, rest in (("GET", ""), ("GET", "/output"), ("POST", "/interrupt")):
        client.request(method, f"/v1/executions/{id}{rest}").refused(404)


# --- output ---

@pytest.fixture(scope="module")
def said(server):
    """The path of an execution that has said something."""
    with server.client() as c, c.session() as s:
        done = s.run("import sys\nprint('0123456789', flush=True)\n"
                     "print('error', file=sys.stderr, flush=True)\nprint('ü')")
        yield f"/v1/executions/{done['id']}/output"


@pytest.mark.parametrize("query, text", [
    ("", "0123456789\nerror\nü\n"), ("?stream=all", "0123456789\nerror\nü\n"),
    ("?stream=stdout", "0123456789\nü\n"), ("?stream=stderr", "error\n")])
def test_output(client, said, query, text):
    answer = client.get(said + query).expect(200)
    assert answer.text == text and answer.headers["content-type"] == "text/plain; charset=utf-8"


@pytest.mark.parametrize("range, part, shown", [
    ("bytes=0-3", b"0123", "bytes 0-3/20"), ("bytes=4-", b"456789\nerror\n\xc3\xbc\n", "bytes 4-19/20"),
    ("bytes=-3", b"\xc3\xbc\n", "bytes 17-19/20"), ("bytes=19-99", b"\n", "bytes 19-19/20"),
    ("bytes=-99", b"0123456789\nerror\n\xc3\xbc\n", "bytes 0-19/20")])
def test_output_by_range(client, said, range, part, shown):
    answer = client.get(said, headers={"Range": range}).expect(206)
    assert answer.body == part and answer.headers["content-range"] == shown


def test_output_beyond(client, said):
    answer = client.get(said, headers={"Range": "bytes=20-"})
    answer.refused(416)
    assert answer.headers["content-range"] == "bytes */20"


@pytest.mark.parametrize("range", ["bytes=x", "lines=1-2", "bytes=5-3", "bytes=0-1,3-4", "bytes="])
def test_ranges_that_are_none(client, said, range):
    assert len(client.get(said, headers={"Range": range}).expect(200).body) == 20


def test_output_asked_wrongly(client, said):
    client.get(said + "?stream=stdin").refused(400, "stream")


# --- lists ---

def test_list(session, client):
    done = [session.run(f"{i}") for i in range(5)]
    ids = [d["id"] for d in done][::-1]
    page = client.get(f"/v1/executions?session={session.id}&limit=2").expect(200).json
    assert [e["id"] for e in page["data"]] == ids[:2]
    assert page["has_more"] is True and page["last_id"] == ids[1]
    assert all(set(e) == BRIEF for e in page["data"])
    page = client.get(f"/v1/executions?session={session.id}&after={ids[1]}").expect(200).json
    assert [e["id"] for e in page["data"]] == ids[2:] and page["has_more"] is False
    assert ids[0] in [e["id"] for e in client.all("/v1/executions")]
    assert client.get("/v1/executions?session=sess_aaaaaaaaaaaaaaaaaaaaaaaaaaaa").json["data"] == []


def test_list_by_status_and_key(session, client):
    good, bad = session.run("1"), session.run("1 / 0")
    base = f"/v1/executions?session={session.id}"
    for status, found in (("ok", [good]), ("raised", [bad]), ("timeout", [])):
        rows = client.get(f"{base}&status={status}").expect(200).json["data"]
        assert [r["id"] for r in rows] == [f["id"] for f in found], status
        assert all((r["key"], r["door"]) == (None, "rest") for r in rows)
    assert client.get(f"{base}&key=key_nobody").expect(200).json["data"] == []
    assert client.get(f"{base}&status=raised&key=key_nobody").expect(200).json["data"] == []
    client.get(f"{base}&status=odd").refused(400, "status")


def test_list_by_time(session, client):
    done = []
    for i in range(3):
        done.append(session.run(f"{i}"))
        time.sleep(0.01)
    base = f"/v1/executions?session={session.id}"
    since = client.get(f"{base}&since={done[1]['created_at']}").expect(200).json["data"]
    assert [e["id"] for e in since] == [done[2]["id"], done[1]["id"]]
    until = client.get(f"{base}&until={done[1]['created_at']}").expect(200).json["data"]
    assert [e["id"] for e in until] == [done[0]["id"]]


@pytest.mark.parametrize("query, param", [
    ("since=yesterday", "since"), ("until=2026-13-01T00:00:00Z", "until"), ("format=xml", "format"),
    ("limit=0", "limit"), ("sessions=x", "sessions")])
def test_list_asked_wrongly(client, query, param):
    client.get("/v1/executions?" + query).refused(400, param)


def test_audit_log(session, client):
    done = [session.run(f"print({i})") for i in range(3)]
    answer = client.get(f"/v1/executions?session={session.id}&format=jsonl").expect(200)
    assert answer.headers["content-type"] == "application/x-ndjson"
    lines = [json.loads(line) for line in answer.text.splitlines()]
    assert [line["id"] for line in lines] == [d["id"] for d in done]  # oldest first
    for line, one in zip(lines, done):
        assert set(line) == AUDIT
        assert all(line[k] == one[k] for k in WHOLE & AUDIT)
        assert line["door"] == "rest" and line["request_id"].startswith("req_") and line["tenant"]


def test_audit_log_of_more_than_a_page(session, client):
    begun = [session.run("x = 1")["id"] for _ in range(120)]
    answer = client.get(f"/v1/executions?session={session.id}&format=jsonl").expect(200)
    assert [json.loads(line)["id"] for line in answer.text.splitlines()] == begun


def test_secrets_are_not_in_it(client):
    with client.session(env={"PASSWORD": "hunter2-of-session"}) as made:
        made.run("import os; len(os.environ['PASSWORD'])", env={"OTHER": "hunter2-of-cell"})
        made.shell("true", env={"OTHER": "hunter2-of-cell"})
        log = client.get("/v1/executions?format=jsonl").expect(200).text
        assert made.id in log and "hunter2" not in log


def test_records_outlive_their_session(client):
    made = client.session()
    done = made.run("print('kept')")
    client.delete(made.path).expect(204)
    assert client.get("/v1/executions/" + done["id"]).expect(200).json["stdout"] == "kept\n"
