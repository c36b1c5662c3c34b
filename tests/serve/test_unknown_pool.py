"""A pool that does not exist: every route and tool that takes the name of one says so, in its door's own words and
at once, also where another pool asks a person first."""

from contextlib import nullcontext

import pytest

from support import retort
from support.mcp import Legacy, Modern, text_of
from support.server import Server

pytestmark = pytest.mark.once

CONFIG = "[pool default]\napproval = always_ask\napproval-by = approver\n[pool free]\n[pool once]\napproval = ask_first\n"
NOBODY = "nobody-made-it"


@pytest.fixture(scope="module")
def server():
    with Server(config=CONFIG, program=str(retort.BUILD / "retort-routes")) as one:
        yield one
        assert one.process.poll() is None


def refused(answer, status):
    assert answer.status == status, answer
    assert "pool" in answer.text.lower(), answer


REST = [("POST", "/v1/sessions", {"pool": NOBODY}), ("POST", "/v1/execute", {"pool": NOBODY, "code": "1"}),
        ("POST", "/v1/execute", {"pool": NOBODY, "code": "1", "background": True}),
        ("POST", "/v1/execute", {"pool": NOBODY, "code": "1", "stream": True}),
        ("POST", "/v1/execute", {"pool": NOBODY, "code": "ls", "language": "shell",
                                 "files": [{"path": "x", "content": "y"}]}),
        ("GET", f"/v1/pools/{NOBODY}", None)]


@pytest.mark.parametrize("method, path, body", REST, ids=[f"{m} {p} {n}" for n, (m, p, _) in enumerate(REST)])
def test_rest(client, method, path, body):
    """404 for a path, 400 where the name is a value of the body."""
    refused(client.request(method, path, body), 400 if body else 404)


@pytest.mark.parametrize("era", [Legacy, Modern])
def test_mcp(server, era):
    peer = era(server, capabilities={"elicitation": {}})
    with peer if era is Legacy else nullcontext(peer) as client:
        result = client.call("create_session", pool=NOBODY)
    assert result["isError"] and "pool" in text_of(result)


def azure_rows(server):
    for line in server.log(10**7).splitlines():
        if line.startswith("route azure") and "{pool}" in line:
            yield line.split()[1:4]


def test_azure(server, client):
    rows = list(azure_rows(server))
    assert len(rows) > 60, "the table is not there"
    for door, method, path in rows:
        if path.endswith("{pool}") and method in ("PUT", "DELETE"):
            continue  # makes it; takes away what is not there
        path = path.replace("{pool}", NOBODY).replace("**", "x").replace("{s}", "a").replace("{g}", "b")
        body = None if method == "GET" else {"pythonCode": "1", "code": "1", "shellCommand": "ls"}
        answer = client.request(method, path + "?identifier=abcd", body)
        assert answer.status == 404, (method, path, answer)


def test_azure_mcp(server):
    with server.client() as client:
        refused(client.post(f"/azure/pools/{NOBODY}/mcp", {"jsonrpc": "2.0", "id": 1, "method": "initialize"}), 404)


def test_a_key_for_it_opens_nothing(server, client):
    made = client.request("POST", "/v1/keys", {"tenant": "acme", "admin": True})
    with server.client(made.expect(201).json["secret"]) as admin:
        scoped = admin.post("/v1/keys", {"tenant": "acme", "pools": [NOBODY]})
        with server.client(scoped.expect(201).json["secret"]) as held:
            for body, status in ({"code": "1"}, 400), ({"code": "1", "pool": NOBODY}, 400), ({"code": "1", "pool": "free"}, 403):
                refused(held.post("/v1/execute", body), status)
