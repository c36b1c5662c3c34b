"""Whoever subscribed hears what changes in a workspace; of another tenant nobody hears, or reads, anything."""

import pytest
from support.mcp import META, Legacy, Modern, RpcError
from support.server import Server

pytestmark = pytest.mark.once

UPDATED, LISTED = "notifications/resources/updated", "notifications/resources/list_changed"


@pytest.fixture(scope="module")
def server():
    with Server() as one, one.client() as client:
        admin = client.post("/v1/keys", {"tenant": "ops", "admin": True}).expect(201).json["secret"]
        with one.client(admin) as root:
            one.mine, one.other = (root.post("/v1/keys", {"tenant": name}).expect(201).json["secret"]
                                   for name in ("mine", "other"))
        yield one


@pytest.fixture
def session(server):
    with server.client(server.mine) as client, client.session() as made:
        yield made


def uri_of(session, path):
    return f"retort://sessions/{session.id}/files/{path}"


def listen(client, **filter):
    stream = client.begin("subscriptions/listen", {"notifications": filter})
    stream.until("notifications/subscriptions/acknowledged")
    return stream


def changes(server, session):
    """Each way a file changes, by its name."""
    return {
        "put": lambda: session.put("a.txt", b"1"),
        "code": lambda: session.run("open('a.txt', 'w').write('2')"),
        "input": lambda: session.run("0", files=[{"path": "a.txt", "content": "Mw=="}]),
        "delete": lambda: session.client.delete(session.file("a.txt")).expect(204),
    }


def test_a_modern_client_hears_of_each_change(server, session):
    client = Modern(server, key=server.mine)
    with listen(client, resourceSubscriptions=[uri_of(session, "a.txt")]) as stream:
        for change in changes(server, session).values():
            change()
            params = stream.until(UPDATED)["params"]
            assert params["uri"] == uri_of(session, "a.txt")
            assert META + "subscriptionId" in params["_meta"]


def test_a_legacy_client_hears_of_each_change(server, session):
    with Legacy(server, key=server.mine) as client:
        assert client.request("resources/subscribe", {"uri": uri_of(session, "a.txt")}) == {}
        with client.listen() as stream:
            for change in changes(server, session).values():
                change()
                assert stream.until(UPDATED)["params"]["uri"] == uri_of(session, "a.txt")


def test_the_list_changes_with_sessions_and_files(server, session):
    with listen(Modern(server, key=server.mine), resourcesListChanged=True) as stream:
        session.put("new.txt", b"1")
        stream.until(LISTED)
        with session.client.session():
            stream.until(LISTED)
        stream.until(LISTED)


def test_the_end_of_an_execution_is_told(server, session):
    running = session.background("import time\nwhile True: time.sleep(0.1)")
    uri = f"retort://executions/{running['id']}/output"
    with listen(Modern(server, key=server.mine), resourceSubscriptions=[uri]) as stream:
        session.client.post(f"/v1/executions/{running['id']}/interrupt").expect(200)
        assert stream.until(UPDATED)["params"]["uri"] == uri


def test_nothing_of_another_tenant_is_told(server, session):
    """What comes first is the stranger's own, though mine changed before."""
    stranger = Modern(server, key=server.other)
    with server.client(server.other) as client, client.session() as own, \
            listen(stranger, resourcesListChanged=False,
                   resourceSubscriptions=[uri_of(session, "a.txt"), uri_of(own, "a.txt")]) as stream:
        session.put("a.txt", b"1")
        own.put("a.txt", b"1")
        assert stream.until(UPDATED)["params"]["uri"] == uri_of(own, "a.txt")


def test_nothing_of_another_tenant_is_shown(server, session):
    session.put("secret.txt", b"1")
    done = session.run("1 / 0")
    stranger, owner = Modern(server, key=server.other), Modern(server, key=server.mine)
    for uri in (uri_of(session, "secret.txt"), f"retort://executions/{done['id']}/output"):
        assert owner.request("resources/read", {"uri": uri})["contents"]
        with pytest.raises(RpcError) as e:
            stranger.request("resources/read", {"uri": uri})
        assert (e.value.code, e.value.data) == (-32602, {"uri": uri})
    assert session.id in str(owner.request("resources/list"))
    assert session.id not in str(stranger.request("resources/list"))
    questions = [({"type": "ref/prompt", "name": "analyze_data"}, "file", "secret", {}),
                 ({"type": "ref/prompt", "name": "fix_error"}, "execution_id", done["id"], {}),
                 ({"type": "ref/resource", "uri": "retort://sessions/{session_id}/files/{+path}"}, "session_id",
                  session.id, {}),
                 ({"type": "ref/resource", "uri": "retort://sessions/{session_id}/files/{+path}"}, "path", "secret",
                  {"session_id": session.id})]
    for ref, name, value, context in questions:
        params = {"ref": ref, "argument": {"name": name, "value": value}, "context": {"arguments": context}}
        assert owner.request("completion/complete", params)["completion"]["values"]
        assert stranger.request("completion/complete", params)["completion"]["values"] == []
