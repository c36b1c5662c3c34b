"""Nodes with one database and one bucket: a request is answered wherever it goes, a tenant lives on one of them, and
what one of them has acknowledged is there whatever becomes of it."""

import hashlib
import os
import signal
import socket
from concurrent.futures import ThreadPoolExecutor

import pytest

from support import retort, ways
from support.mcp import Legacy, text_of
from support.nodes import Gate, Nodes
from support.web import CERTIFICATE
from support.workers import Cells, Files, Uploads, wait_for_more

pytestmark = pytest.mark.once

LARGE = 8 << 20


@pytest.fixture(scope="module")
def nodes(postgres, blobs):
    with Nodes(postgres, blobs, 2, lease=20) as some:
        yield some


@pytest.fixture
def here(nodes):
    with nodes[0].client() as one:
        one.get("/v1/sessions").expect(200)  # from here on "local" lives here
        assert nodes.home("local") == 0
        yield one


@pytest.fixture
def there(nodes, here):
    with nodes[1].client() as one:
        yield one


def test_a_session_is_one(here, there):
    session = here.session()
    session.run("x = 6")
    assert there.post(session.path + "/execute", {"code": "x * 7"}).expect(200).json["result"] == "42"
    assert there.get(session.path).expect(200).json["id"] == session.id
    other = there.session()
    assert here.post(other.path + "/execute", {"code": "1 + 1"}).expect(200).json["result"] == "2"


def test_the_list_of_nodes_is_the_same_everywhere(nodes, here, there):
    for client in here, there:
        retort.wait_until(lambda: len(client.get("/v1/nodes").json["data"]) == 2, "both nodes", retort.SECONDS)
        listed = client.get("/v1/nodes").expect(200).json["data"]
        assert {n["url"] for n in listed} == {f"http://{nodes[i].listen}" for i in range(2)}
        assert all(n["lease_left"] <= 20 and n["tenants"] >= 0 for n in listed)


def test_bodies_both_ways(here, there):
    data = os.urandom(LARGE)
    made = there.form("/v1/files", ("file", "a.bin", data)).expect(201).json
    path = f"/v1/files/{made['id']}/content"
    for client in here, there:
        assert hashlib.sha256(client.get(path).expect(200).body).digest() == hashlib.sha256(data).digest()
    part = there.get(path, headers={"Range": "bytes=100-299"}).expect(206)
    assert part.body == data[100:300] and part.headers["content-range"] == f"bytes 100-299/{LARGE}"
    head, same = there.request("HEAD", path), here.request("HEAD", path)
    assert (head.status, head.body) == (200, b"") and head.headers["content-length"] == str(LARGE)
    assert set(head.headers) == set(same.headers)
    assert there.get(path, headers={"If-None-Match": same.headers["etag"]}).status == 304


def test_a_body_in_chunks(here, there):
    session = here.session()
    pieces = [os.urandom(70_000) for _ in range(40)]
    made = there.request("PUT", session.path + "/files/chunks", body=iter([b"%x\r\n%s\r\n" % (len(p), p) for p in pieces] + [b"0\r\n\r\n"]),
                         headers={"Transfer-Encoding": "chunked"})
    assert made.status == 201, made
    assert here.get(session.path + "/files/chunks").expect(200).body == b"".join(pieces)


def test_errors_and_ids_are_those_of_the_other(here, there):
    for client in here, there:
        client.get("/v1/sessions/sess_none").refused(404)
        client.post("/v1/sessions", {"nothing": 1}).refused(400)
    missing = there.get("/anthropic/v1/files/file_none", headers={"anthropic-version": "2023-06-01"})
    assert missing.json["type"] == "error" and missing.headers["request-id"]
    names = [n.lower() for n in missing.headers]
    assert len(names) == len(set(names))


def test_an_answer_in_the_middle_of_a_body(here, there):
    """It is refused by its head over there, while the body is still on its way."""
    answer = there.request("PUT", "/v1/sessions/sess_none/files/x", body=os.urandom(LARGE))
    assert answer.status == 404, answer
    large = there.request("POST", "/v1/sessions", body=b"{" * (3 << 20), headers={"Content-Type": "application/json"})
    assert large.status == 413
    there.get("/v1/sessions").expect(200)


def test_events_come_as_they_happen(here, there):
    session = here.session()
    with there.stream(session.path + "/execute", {"code": "print(1)\nopen('go').read()"}) as stream:
        kinds = [event["type"] for event in stream]
    assert "stdout" in kinds and kinds[-1] == "done"
    code = "import os, time\nprint('begun')\nwhile not os.path.exists('go'): time.sleep(.01)\nprint('gone on')"
    with there.stream(session.path + "/execute", {"code": code}) as stream:
        first = next(e for e in stream if e["type"] == "stdout")
        assert "begun" in str(first)  # while it runs
        here.put(session.path + "/files/go", b"")
        assert any("gone on" in str(e) for e in stream)


def test_a_client_that_leaves_takes_its_code_with_it(nodes, here):
    session = here.session()
    there = nodes[1].client()
    with there.stream(session.path + "/execute", {"code": "print(1)\nimport time\ntime.sleep(600)"}) as stream:
        next(e for e in stream if e["type"] == "stdout")
    there.close()
    retort.wait_until(lambda: session.get()["state"] == "idle", "its end", retort.SECONDS)


def test_a_slow_reader_slows_the_code_down(nodes, here):
    """Nothing piles up in either node."""
    session = here.session()
    there = nodes[1].client()
    code = "for i in range(3000): print('x' * 10000)"
    response = there.begin("POST", session.path + "/execute", {"code": code, "stream": True, "max_output": 100 << 20})
    before = [node.resident() for node in nodes.servers]
    got = response.read(1000)
    assert got
    after = [node.resident() for node in nodes.servers]
    assert all(b < a + 60_000 for a, b in zip(before, after))
    there.close()


def test_mcp_from_node_to_node(nodes, here):
    """What a door remembers is there whichever node is asked: one session of MCP, and the variables of its tool."""
    with Legacy(nodes[1]) as client:
        for number, node in enumerate([nodes[1], nodes[0], nodes[1]]):
            client.server = node
            result = client.call("run_code", code=f"seen = [*globals().get('seen', []), {number}]; seen")
            assert str(list(range(number + 1))) in text_of(result), result


def test_a_header_of_a_strangers(here, there):
    for value in "x", "1;1;1;1;0;req_a;;6c6f63616c;" + "0" * 64:
        there.get("/v1/sessions", headers={"retort-peer": value}).refused(403, type="forbidden")


def test_peers_over_tls(postgres, blobs):
    with Nodes(postgres, blobs, 2, lease=20, certificate=CERTIFICATE) as nodes:
        for node in nodes.servers:
            with node.client() as client:
                assert client.post("/v1/sessions", {}).status == 201, nodes[0].log()
        assert nodes.home("local") == 0


class Keyed:
    """A node as the owner of a key sees it."""

    def __init__(self, node, key):
        self.node, self.key = node, key

    def client(self):
        return self.node.client(self.key)


def test_keys_and_decisions_of_another_node(postgres, blobs):
    """A key is good everywhere as soon as it is made; an approver is heard wherever the request goes."""
    flags = ["--approval", "always_ask", "--approval-by", "approver", "--model-script", "-",
             "--anthropic-approval-wait", "100"]
    nodes = Nodes(postgres, blobs, 2, *flags, lease=20)
    key = nodes.key("acme", "--admin")
    with nodes, nodes[0].client(key) as admin:
        admin.get("/v1/sessions").expect(200)
        assert nodes.home("acme") == 0
        for door in "/v1/sessions", "/azure/pools/default/files?identifier=abcd":
            made = admin.post("/v1/keys", {"tenant": "acme", "approver": True}).expect(201).json["secret"]
            with nodes[1].client(made) as other:
                other.get(door).expect(200)
        with nodes[1].client(made) as approver, ThreadPoolExecutor() as threads:
            asked = threads.submit(ways.anthropic("2025-05-22", ("code_execution", {"code": "print(%s)"})).run,
                                   Keyed(nodes[0], key), None)
            pending = "/v1/approvals?state=pending"
            retort.wait_until(lambda: approver.get(pending).expect(200).json["data"], "a question", retort.SECONDS)
            [question] = approver.get(pending).json["data"]
            approver.post("/v1/approvals/" + question["id"], {"decision": "approve"}).expect(200)
            assert ways.RESULT in asked.result(retort.SECONDS)


def test_one_server_alone_is_refused(nodes, blobs):
    """Beside nodes no other server may come."""
    code, _, err = retort.call("serve", "--listen", "127.0.0.1:0", "--state", nodes.place / "alone", "--store",
                               nodes.url)
    assert code != 0 and "another retort serves from this database" in err


# --- ends ---

class Patient(Files):
    """Files as the tenant's node changes: it may be told to come back."""

    def visit(self, client):
        while not self.ended.is_set():
            data = self.data()
            made = client.form("/v1/files", ("file", "f", data))
            if made.status != 201:
                assert made.status in (502, 503), made
                return
            self.keep(made.json["id"], hashlib.sha256(data).hexdigest())


def check_all(workers, nodes, alive):
    """What was acknowledged is there."""
    for worker in workers:
        worker.ended.set()
    for worker in workers:
        worker.join()
    for worker in workers:
        assert not worker.wrong, worker.wrong[0]
        with nodes[alive].client() as client:
            worker.check(client)
    assert sum(w.acknowledged for w in workers) > 0


def started(*workers):
    for worker in workers:
        worker.start()
    for worker in workers:
        wait_for_more(worker, retort.SECONDS)
    return workers


def test_killed(postgres, blobs):
    with Nodes(postgres, blobs, 2, lease=2) as nodes:
        with nodes[0].client() as client:
            session = client.session(name="kept")
            session.run("x = 1")
            session.put("f", b"kept")
            running = session.background("import time; time.sleep(600)")
        assert nodes.home("local") == 0
        nodes[0].kill()
        with nodes[1].client() as client:
            def is_back():
                answer = client.get(session.path + "/files/f")
                assert answer.status in (200, 503), answer
                return answer.status == 200 and answer.body == b"kept"
            retort.wait_until(is_back, "its tenant", retort.SECONDS)
            assert nodes.home("local") == 1
            record = client.get("/v1/executions/" + running["id"]).expect(200).json
            assert record["status"] == "session_lost"
            answer = client.post(session.path + "/execute", {"code": "x"}).expect(200).json
            assert "NameError" in str(answer) and "started anew" in str(answer)
        nodes[0].start()
        with nodes[0].client() as client:
            assert client.get(session.path + "/files/f").expect(200).body == b"kept"
        assert nodes.home("local") == 1


def test_paused_past_its_lease(postgres, blobs):
    """It wakes up, finds that another has taken over, writes nothing and ends."""
    with Nodes(postgres, blobs, 2, lease=2) as nodes:
        with nodes[0].client() as client:
            session = client.session()
            session.put("f", b"old")
            queued = [session.background("open('never', 'a').write('x')" if i else "import time; time.sleep(2)")
                      for i in range(2)]
        nodes[0].process.send_signal(signal.SIGSTOP)
        nodes.wait_gone(0)
        # What it would answer is waiting in its socket.
        late = socket.create_connection(("127.0.0.1", nodes[0].port))
        late.sendall(b"PUT " + session.path.encode() + b"/files/f HTTP/1.1\r\nHost: localhost\r\n"
                     b"Content-Length: 5\r\n\r\nstale")
        with nodes[1].client() as client:
            client.put(session.path + "/files/f", b"new").expect(201)
            for one in queued:
                assert client.get("/v1/executions/" + one["id"]).expect(200).json["status"] == "session_lost"
        nodes[0].process.send_signal(signal.SIGCONT)
        assert nodes[0].process.wait(retort.SECONDS) != 0
        assert "another node has taken over" in nodes[0].log()
        late.settimeout(retort.SECONDS)
        try:
            said = late.recv(100)
        except ConnectionResetError:
            said = b""
        assert b" 201 " not in said and b" 200 " not in said
        nodes[0].process = None
        with nodes[1].client() as client:
            assert client.get(session.path + "/files/f").expect(200).body == b"new"
            assert client.get(session.path + "/files/never").status == 404


def test_started_again_at_once(postgres, blobs):
    """It need not wait for the end of its own lease."""
    with Nodes(postgres, blobs, 2, lease=600) as nodes:
        with nodes[0].client() as client:
            session = client.session()
            session.put("f", b"kept")
        nodes[0].kill()
        nodes[0].start()
        for node in nodes.servers:
            with node.client() as client:
                assert client.get(session.path + "/files/f").expect(200).body == b"kept"


def test_the_database_was_away(postgres, blobs):
    """Every lease is over then, and who is connected first takes over from nobody: all of them go on."""
    with Gate(postgres) as gate:
        nodes = Nodes(postgres, blobs, 3, lease=2)
        for node in nodes.servers:
            node.store = ["--store", gate.url(nodes.url)]
        with nodes, nodes[0].client() as client:
            session = client.session()
            session.run("x = 6")
            gate.open.clear()
            for node in nodes.servers:
                with node.client() as one:
                    retort.wait_until(lambda: "longer than its lease" in one.get("/v1/sessions").text,
                                      "the end of the lease", retort.SECONDS)
            gate.open.set()
            for node in nodes.servers:
                node.wait_ready()
            with nodes[1].client() as other:
                retort.wait_until(lambda: other.get(session.path).status == 200, "the session", retort.SECONDS)
                assert other.post(session.path + "/execute", {"code": "x * 7"}).expect(200).json["result"] == "42"


def test_drained(postgres, blobs):
    """Each of two nodes is restarted under load: nobody hears anything but an answer or to come back."""
    with Nodes(postgres, blobs, 2, lease=5) as nodes:
        workers = started(Cells(nodes[0], 1), Uploads(nodes[1], 2), Patient(nodes[1], 3))
        for node in nodes.servers:
            node.stop()
            node.start()
            for worker in workers:
                wait_for_more(worker, retort.SECONDS)
        check_all(workers, nodes, 0)
        assert nodes.sql("SELECT count(*) FROM execs WHERE status IN ('queued', 'running')") == "0"
