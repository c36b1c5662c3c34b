"""Code in, one JSON answer out."""

import base64
import http.server
import threading

import pytest

from support import retort
from support.server import TIME

MEMBERS = {"id", "object", "session", "pool", "kind", "code", "status", "created_at", "started_at",
           "ended_at", "events", "outcome", "key", "door", "stdout", "stderr", "result", "files"}
OUTCOME = {"status", "limits_hit", "state_lost", "exit_code", "message", "wall_ms", "cpu_ms",
           "memory_peak_bytes", "output_bytes", "output_dropped"}


def test_python(session):
    code = "import sys\nprint('out')\nprint('err', file=sys.stderr)\n6 * 7"
    done = session.run(code)
    assert set(done) == MEMBERS and set(done["outcome"]) == OUTCOME
    assert done["id"].startswith("exec_") and done["object"] == "execution"
    assert (done["session"], done["pool"], done["kind"]) == (session.id, "default", "cell")
    assert (done["code"], done["status"], done["result"]) == (code, "ok", "42")
    assert (done["stdout"], done["stderr"], done["files"]) == ("out\n", "err\n", [])
    assert [e["type"] for e in done["events"]] == ["stdout", "stderr", "result"]
    assert all(TIME.fullmatch(done[n]) for n in ("created_at", "started_at", "ended_at"))
    assert done["created_at"] <= done["started_at"] <= done["ended_at"]
    outcome = done["outcome"]
    assert (outcome["status"], outcome["limits_hit"], outcome["state_lost"]) == ("ok", [], False)
    assert outcome["output_bytes"] == 10  # the result counts, too
    assert outcome["output_dropped"] == 0
    assert outcome["wall_ms"] > 0


@pytest.mark.parametrize("mime", [
    "application/javascript", "application/json", "application/geo+json", "application/xml",
    "application/vnd.plotly.v1+json", "application/vnd.vegalite.v5+json", "application/x-ndjson",
    "application/vnd.jupyter.widget-view+json", "application/atom+xml", "application/yaml",
    "image/svg+xml", "image/svg+xml;charset=utf-8", "model/x3d+xml", "text/x-own", "Text/HTML"])
def test_textual_types_are_text(session, mime):
    text = '{"grüße": [1, "<a/>"]}'
    [event] = session.run(f"display({{{mime!r}: {text!r}}}, raw=True)")["events"]
    assert event["data"] == {mime: text}


@pytest.mark.parametrize("mime", [
    "application/octet-stream", "application/pdf", "application/vnd.jsonish", "application/xmlx",
    "image/png", "audio/x-own", "x/json"])
def test_other_types_are_base64(session, mime):
    [event] = session.run(f"display({{{mime!r}: b'<a/>'}}, raw=True)")["events"]
    assert event["data"] == {mime: base64.b64encode(b"<a/>").decode()}


SPIN = "import time\nuntil = time.process_time() + 0.06\nwhile time.process_time() < until: pass"


@pytest.mark.parametrize("kind", ["python", "shell"])
def test_figures_are_of_this_execution_however_short(session, kind):
    """A light one after a heavy one is light: neither carries what the other has used."""
    heavy, light = (SPIN, "1") if kind == "python" else (f"python3 -c '{SPIN}'", "true")
    for code in (heavy, light, light, heavy, light):
        outcome = session.run(code, language=kind)["outcome"]
        if not retort.has_groups():
            assert (outcome["cpu_ms"], outcome["memory_peak_bytes"]) == (None, None)
        elif code is heavy:
            assert 60 <= outcome["cpu_ms"] < 600, outcome
        else:
            assert 0 <= outcome["cpu_ms"] < 50, outcome  # the last of it may be counted a moment later
    if retort.has_groups():
        before = session.run("1")["outcome"]["memory_peak_bytes"]
        assert 1 << 20 < before < 1 << 30
        after = session.run("x = b'x' * (32 << 20)")["outcome"]["memory_peak_bytes"]
        assert after >= 32 << 20 and after > before


def test_state_is_kept(session):
    session.run("def double(x): return 2 * x")
    assert session.run("double(21)")["result"] == "42"


def test_text_of_every_kind(session):
    text = "ü\u2028\U0001f600\x07\x1b[31m\\\"'"
    assert session.run(f"print({text!r})")["stdout"] == text + "\n"
    assert session.run("import os; os.write(1, b'\\xff\\xfe ok')")["stdout"] == "\ufffd\ufffd ok"
    assert session.run("print('a\\0b')")["stdout"] == "a\0b\n"


def test_shell(session):
    done = session.shell("echo out; echo err >&2; exit 3")
    assert (done["kind"], done["status"], done["stdout"], done["stderr"]) == (
        "command", "raised", "out\n", "err\n")
    assert done["outcome"]["exit_code"] == 3
    assert session.shell("true")["status"] == "ok"


def test_raised(session):
    code = "def inner():\n    return 1 / 0\n\ninner()"
    done = session.run(code)
    assert done["status"] == "raised" and done["result"] is None
    error = [e for e in done["events"] if e["type"] == "error"][0]
    assert error["name"] == "ZeroDivisionError" and error["message"] == "division by zero"
    assert [(f["line"], f["function"], f["text"]) for f in error["frames"]] == [
        (4, "<module>", "inner()"), (2, "inner", "return 1 / 0")]
    assert "ZeroDivisionError" in error["traceback"]


def test_plot(session):
    done = session.run("import matplotlib.pyplot as plt\nplt.plot([1, 2, 3]);")
    shown = [e for e in done["events"] if e["type"] == "display"]
    assert len(shown) == 1
    assert base64.b64decode(shown[0]["data"]["image/png"], validate=True)[:8] == b"\x89PNG\r\n\x1a\n"


def test_files_made(session, client):
    done = session.run("open('a.csv', 'w').write('x,y\\n1,2\\n')\nopen('b.txt', 'w').write('b');")
    made = {f["path"]: f for f in done["files"]}
    assert set(made) == {"a.csv", "b.txt"}
    assert set(made["a.csv"]) == {"path", "change", "size", "mime", "url"}
    assert (made["a.csv"]["change"], made["a.csv"]["size"], made["a.csv"]["mime"]) == (
        "created", 8, "text/csv")
    assert client.get(made["a.csv"]["url"]).expect(200).body == b"x,y\n1,2\n"
    done = session.run("import os; os.remove('b.txt'); open('a.csv', 'a').write('3,4\\n');")
    made = {f["path"]: f for f in done["files"]}
    assert made["b.txt"]["change"] == "deleted" and made["b.txt"]["url"] is None
    assert made["a.csv"]["change"] == "changed"
    assert client.get(made["a.csv"]["url"]).expect(200).body == b"x,y\n1,2\n3,4\n"
    client.get(session.file("b.txt")).refused(404)


# --- limits of one execution ---

def test_timeout_keeps_the_variables(session):
    session.run("kept = 1")
    done = session.run("import time; time.sleep(60)", timeout=0.3)
    assert done["status"] == "timeout" and done["outcome"]["limits_hit"] == ["wall_time"]
    assert done["outcome"]["state_lost"] is False and done["outcome"]["message"]
    assert session.run("kept")["result"] == "1"


def test_timeout_of_code_that_will_not_stop(session):
    session.run("open('f', 'w').write('kept'); x = 1")
    done = session.run("import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass",
                       timeout=0.3)
    assert done["status"] == "timeout" and done["outcome"]["state_lost"] is True
    assert session.run("print('x' in globals(), open('f').read())")["stdout"] == "False kept\n"


@pytest.mark.parametrize("timeout", [-1, "1", None, [], 1e300])
def test_timeout_that_cannot_be(session, timeout):
    session.ask("1", timeout=timeout).refused(400, "timeout")


def test_memory(session, server):
    done = session.run("x = b'x' * 1_000_000_000; len(x)")
    assert done["status"] == ("memory" if retort.has_groups() else "raised")  # where malloc itself fails
    assert done["outcome"]["limits_hit"] == ["memory"]
    assert session.run("1 + 1")["result"] == "2"


def test_interpreter_that_dies(session):
    done = session.run("import os; os._exit(1)")
    assert done["status"] == "died" and done["outcome"]["state_lost"] is True
    assert session.run("1 + 1")["result"] == "2"


# --- variables ---

def test_env_of_one_execution(client):
    with client.session(env={"A": "session", "B": "session"}) as made:
        show = "import os; print(os.environ.get('A'), os.environ.get('B'), os.environ.get('C'))"
        assert made.run(show, env={"A": "cell", "C": "cell"})["stdout"] == "cell session cell\n"
        assert made.run(show)["stdout"] == "session session None\n"
        assert made.shell("echo $A $C", env={"C": "x"})["stdout"] == "session x\n"


# --- files given with it ---

def test_files_by_content(session):
    done = session.run("print(open('in/a.txt').read(), open('b.bin', 'rb').read())", files=[
        {"path": "in/a.txt", "content": "ü text"},
        {"path": "b.bin", "content_base64": base64.b64encode(b"\0\xff").decode()}])
    assert done["stdout"] == "ü text b'\\x00\\xff'\n"
    assert session.read("in/a.txt") == "ü text".encode()
    assert done["files"] == []  # these are the caller's own


def test_files_by_data_url(session):
    done = session.run("open('d.txt').read()", files=[
        {"url": "data:text/plain;base64,aGVsbG8=", "path": "d.txt"}])
    assert done["result"] == "'hello'"


def test_files_by_id(session, client):
    made = client.form("/v1/files", ("file", "up.csv", b"a\n1\n")).expect(201).json
    done = session.run("open('up.csv').read(), open('other.csv').read()",
                       files=[{"id": made["id"]}, {"id": made["id"], "path": "other.csv"}])
    assert done["result"] == r"('a\n1\n', 'a\n1\n')"
    client.delete("/v1/files/" + made["id"]).expect(204)
    session.ask("1", files=[{"id": made["id"]}]).refused(404)


class Quiet(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked += 1
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"inside")

    def log_message(self, *words):
        pass


@pytest.fixture
def inside():
    """A web server on loopback: where no stranger's URL may lead."""
    web = http.server.HTTPServer(("127.0.0.1", 0), Quiet)
    web.asked = 0
    threading.Thread(target=web.serve_forever, daemon=True).start()
    yield web
    web.shutdown()
    web.server_close()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "127.1",
                                  "2130706433", "0x7f.1", "0.0.0.0"])
def test_private_addresses_are_not_fetched(session, inside, host):
    url = f"http://{host}:{inside.server_port}/secret.txt"
    answer = session.ask("open('ran', 'w');", files=[{"url": url, "path": "s.txt"}])
    assert "inside" not in answer.refused(400)["message"]
    assert inside.asked == 0
    assert not {"ran", "s.txt"} & set(session.files())


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://example.com/x", "gopher://x/", "x",
                                 "", "http://", "data:nonsense", "http://[::1", "data:;base64,?"])
def test_urls_that_cannot_be(session, url):
    answer = session.ask("open('ran', 'w');", files=[{"url": url, "path": "s.txt"}])
    answer.refused(400)
    assert not {"ran", "s.txt"} & set(session.files())


@pytest.mark.parametrize("one, param", [
    ({"path": "a"}, "files[0]"), ({"path": "a", "content": "x", "url": "data:,x"}, "files[0]"),
    ({"content": "x"}, "files[0].path"), ({"path": "../a", "content": "x"}, "files[0].path"),
    ({"path": "/etc/a", "content": "x"}, "files[0].path"),
    ({"path": "a\0b", "content": "x"}, None),
    ({"path": "a", "content_base64": "!"}, "files[0].content_base64"),
    ({"path": "a", "content": 1}, "files[0].content"), ("a", "files[0]"),
    ({"path": "a", "content": "x", "mode": 1}, "files[0].mode")])
def test_files_that_cannot_be(session, one, param):
    session.ask("1", files=[one]).refused(400, param)


# --- in the background ---

def test_background(session, client):
    begun = session.background("import time\nwhile not __import__('os').path.exists('go'): "
                               "time.sleep(.01)\nprint('went')")
    assert begun["status"] in ("queued", "running") and begun["outcome"] is None
    assert begun["ended_at"] is None and set(begun) == MEMBERS
    assert session.get()["state"] == "running"
    session.put("go", b"")
    done = session.wait(begun)
    assert (done["status"], done["stdout"]) == ("ok", "went\n") and set(done) == MEMBERS
    assert TIME.fullmatch(done["ended_at"])


def test_a_stream_in_the_background_is_not_ended_by_its_reader(session, client):
    code = "import time\nprint('begun')\nwhile not __import__('os').path.exists('go'): time.sleep(.01)\nprint('ended')"
    with session.stream(code, background=True) as stream:
        first = next(stream)
        assert first["type"] == "execution"
        stream.until_said("begun")
    session.put("go", b"")
    record = session.wait(first)
    assert (record["status"], record["stdout"]) == ("ok", "begun\nended\n")
    with session.stream("print(1)", background=True) as stream:
        assert [ev["type"] for ev in stream] == ["execution", "stdout", "done"]


def test_one_after_the_other(session):
    session.run("order = []")
    begun = [session.background(f"order.append({i})") for i in range(10)]
    for one in begun:
        assert session.wait(one)["status"] == "ok"
    assert session.run("order")["result"] == str(list(range(10)))


def test_queue_has_an_end(session):
    begun = [session.background("import time; time.sleep(60)")]
    refused = None
    for _ in range(100):
        answer = session.ask("1", background=True)
        if answer.status != 202:
            refused = answer
            break
        begun.append(answer.json)
    assert refused is not None and len(begun) >= 8
    refused.refused(429)
    assert int(refused.headers["retry-after"]) >= 1
    assert session.get()["queued"] == len(begun) - 1
    session.client.delete(session.path).expect(204)
    for one in begun:
        assert session.wait(one)["status"] == "session_lost"


# --- without a session ---

def test_one_shot(client):
    done = client.post("/v1/execute", {"code": "open('f', 'w').write('x'); x = 1; 6 * 7",
                                       "pool": "default"}).expect(200).json
    assert done["result"] == "42" and done["session"].startswith("sess_")
    path = "/v1/sessions/" + done["session"]
    retort.wait_until(lambda: client.get(path).json["state"] == "asleep", "it to sleep")
    assert client.get(done["files"][0]["url"]).expect(200).body == b"x"
    again = client.post(path + "/execute", {"code": "'x' in globals(), open('f').read()"})
    assert again.expect(200).json["result"] == "(False, 'x')"
    client.delete(path).expect(204)


# --- said wrongly ---

@pytest.mark.parametrize("body, param", [
    ({}, "code"), ({"code": 1}, "code"), ({"code": None}, "code"),
    ({"code": "1", "language": "perl"}, "language"), ({"code": "1", "stream": "xml"}, "stream"),
    ({"code": "1", "stream": 1}, "stream"), ({"code": "1", "background": "yes"}, "background"),
    ({"code": "1", "files": {}}, "files"), ({"code": "1", "extra": 1}, "extra"),
    ({"code": "1", "env": {"A": None}}, "env.A")])
def test_wrong_bodies(session, client, body, param):
    client.post(session.path + "/execute", body).refused(400, param)
    client.post("/v1/execute", body).refused(400, param)


def test_pool_is_for_one_shots_only(session):
    session.ask("1", pool="default").refused(400, "pool")


def test_code_with_nul(session):
    answer = session.ask("print(1)\0")
    answer.refused(400)
    assert session.run("1")["result"] == "1"
