"""GET /v1/events: what changes in all sessions of a tenant, as it changes."""

import jsonschema
import pytest

from support import retort
from support.server import Server, Stream

pytestmark = pytest.mark.once  # nothing here depends on the walls

CONFIG = """
[pool default]
[pool asks]
approval = always_ask
approval-by = approver
"""
FLAGS = ["--preload", ""]
TENANT_MAX = 64


def follow(server, key=None, format="sse"):
    """A stream that is open: what is done from now on is told."""
    client = server.client(key)
    stream = Stream(client, client.begin("GET", f"/v1/events?format={format}"))
    assert stream.status == 200 and stream.headers["cache-control"] == "no-store"
    assert next(stream) == {"type": "open"}
    return stream


@pytest.mark.parametrize(("format", "mime"), [("sse", "text/event-stream"), ("ndjson", "application/x-ndjson")])
def test_the_life_of_a_session(server, client, format, mime):
    with follow(server, format=format) as stream:
        assert stream.headers["content-type"] == mime
        made = client.post("/v1/sessions", {"name": f"told in {format}"}).expect(201).json
        path, mine = "/v1/sessions/" + made["id"], {"type": "session", "id": made["id"], "pool": "default"}
        assert stream.until(type="session", state="idle") == {**mine, "state": "idle"}  # it may have been starting
        client.put(path + "/files/a%20b.txt", b"x").expect(201)
        assert next(stream) == {"type": "file", "session": made["id"], "pool": "default", "path": "a b.txt"}
        ran = client.post(path + "/execute", {"code": "import os\nos.remove('a b.txt')\n1 / 0"}).expect(200).json
        found = [stream.until(**{**mine, "state": "running"})]
        while found[-1] != {**mine, "state": "idle"}:
            found.append(next(stream))
        one = {"type": "execution", "id": ran["id"], "session": made["id"], "pool": "default"}
        assert {**one, "status": "raised"} in found
        assert {"type": "file", "session": made["id"], "pool": "default", "path": "a b.txt"} in found
        client.request("PATCH", path, {"name": f"renamed in {format}"}).expect(200)
        assert stream.until(type="session") == {**mine, "state": "idle"}
        client.delete(path).expect(204)
        assert stream.until(type="session") == {**mine, "state": "ended"}


def test_an_execution_that_takes_a_while_is_told_when_it_begins(server, client, session):
    with follow(server) as stream:
        ran = session.background("import os, time\nwhile not os.path.exists('go'): time.sleep(.005)")
        assert stream.until(type="execution") == {
            "type": "execution", "id": ran["id"], "session": session.id, "pool": "default", "status": "queued"}
        session.put("go", b"")
        assert stream.until(type="execution")["status"] == "ok"


def test_approvals(server, client):
    schema = client.get("/v1/openapi.json").expect(200).json["components"]["schemas"]["change"]
    with follow(server) as stream:
        body = {"code": "6 * 7", "pool": "asks"}
        client.post("/v1/execute", body).refused(403, type="approval_required")
        asked = stream.until(type="approval")
        assert asked["state"] == "pending" and asked["pool"] == "asks" and asked["session"] is None
        client.post("/v1/approvals/" + asked["id"], {"decision": "approve"}).expect(200)
        assert stream.until(type="approval") == {**asked, "state": "approved"}
        client.post("/v1/execute", body).expect(200)
        for event in iter(lambda: next(stream), None):
            jsonschema.validate(event, schema)
            if event["type"] == "execution":
                break
        assert asked["id"] in [a["id"] for a in client.get("/v1/approvals?state=used").expect(200).json["data"]]


def test_a_reader_that_is_too_slow_is_told_what_it_missed(server, client, session):
    """Names as long as they may be, so that few events are many bytes."""
    with follow(server) as stream:
        name = "/".join(["x" * 200] * 5)
        session.run(f"import os\nos.makedirs('{name}')\n"
                    f"for i in range(3000): open('{name}/%d' % i, 'w').write('x')")
        assert stream.until(type="missed")["count"] > 0


def test_the_options_and_how_many_there_may_be(server, client):
    client.get("/v1/events?format=xml").refused(400, "format")
    client.get("/v1/events?session=x").refused(400, "session")
    streams = [follow(server) for _ in range(TENANT_MAX)]
    try:
        client.get("/v1/events").refused(429)
    finally:
        for stream in streams:
            stream.close()
    retort.wait_until(lambda: is_free(client), "a free place")


def is_free(client):
    status = client.begin("GET", "/v1/events").status
    client.close()
    return status == 200


def test_a_tenant_and_a_key_of_a_pool_see_their_own():
    with Server(*FLAGS, config=CONFIG) as server, server.client() as first:
        admin = first.post("/v1/keys", {"tenant": "ops", "admin": True}).expect(201).json["secret"]
        with server.client(admin) as ops:
            make = lambda **more: ops.post("/v1/keys", {"tenant": "acme", **more}).expect(201).json["secret"]
            whole, limited, reads = make(), make(pools=["asks"]), make(read_only=True)
            assert server.client().get("/v1/events").status == 401
            with follow(server, admin) as other, follow(server, limited) as part, follow(server, reads) as all, \
                    server.client(whole) as client:
                one = client.post("/v1/sessions", {}).expect(201).json["id"]
                two = client.post("/v1/sessions", {"pool": "asks"}).expect(201).json["id"]
                assert all.until(type="session")["id"] == one
                assert all.until(type="session", id=two)
                assert next(part)["id"] == two
                theirs = ops.post("/v1/sessions", {}).expect(201).json["id"]
                assert next(other)["id"] == theirs


def test_the_end_of_the_server_ends_it():
    with Server(*FLAGS, "--drain", "600") as server, follow(server) as stream:
        server.stop()
        assert list(stream) == []
