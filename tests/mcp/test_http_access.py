"""Who may use /mcp: keys, pages of browsers, and where clients get tokens."""

import pytest
from support.mcp import Legacy, Modern
from support.server import Server, refusal

PAGE = "https://app.example"
WELL_KNOWN = "/.well-known/oauth-protected-resource"
OAUTH = ["--public-url", "https://code.example/", "--oauth-servers", "https://login.example, https://other.example/t"]


@pytest.fixture(scope="module")
def server():
    one = Server("--origins", PAGE, *OAUTH)
    one.key = one.keys("create", "--tenant", "a", "--quiet").strip()
    with one:
        yield one


# --- keys ---


@pytest.mark.parametrize("kind", [Legacy, Modern])
def test_a_key_is_needed(server, kind):
    for key in (None, "nonsense"):
        exchange = kind(server, key=key).begin("tools/list")
        assert exchange.status == 401
        assert exchange.headers["www-authenticate"] == \
            'Bearer resource_metadata="https://code.example/.well-known/oauth-protected-resource/mcp"'
        exchange.close()
    client = kind(server, key=server.key)
    if kind is Legacy:
        client.initialize()
    assert client.tools()


@pytest.mark.parametrize("path", ["/mcp", "/mcp/sse", "/mcp/qwen", "/ubik/mcp"])
def test_for_every_verb_in_the_words_of_the_protocol(server, path):
    """Clients show their users the message of a JSON-RPC error, and of any other body nothing."""
    with server.client() as client:
        for verb in ("GET", "POST", "DELETE")[:2 if path.endswith("sse") else 3]:
            answer = client.request(verb, path).expect(401)
            error = answer.json["error"]
            assert answer.json == {"jsonrpc": "2.0", "id": None, "error": error}
            assert error["code"] == -32600 and "a valid key is needed" in error["message"]
            assert error["data"] == {"type": "unauthorized", "request_id": answer.headers["x-request-id"]}


def test_other_doors_point_nowhere(server):
    with server.client() as client:
        assert client.get("/v1/sessions").headers["www-authenticate"] == "Bearer"


# --- where tokens come from ---


@pytest.mark.parametrize("path", [WELL_KNOWN, WELL_KNOWN + "/mcp"])
def test_the_document_is_open(server, path):
    with server.client() as client:
        answer = client.get(path).expect(200)
    assert answer.json == {"resource": "https://code.example/mcp",
                           "authorization_servers": ["https://login.example", "https://other.example/t"],
                           "bearer_methods_supported": ["header"], "resource_name": "retort"}


def test_without_servers_there_is_none():
    one = Server("--public-url", "https://code.example")
    one.keys("create", "--tenant", "a")
    with one, one.client() as client:
        client.get(WELL_KNOWN).expect(404)
        client.get(WELL_KNOWN + "/mcp").expect(404)
        answer = client.post("/mcp", {})
        assert answer.status == 401
        assert answer.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("flags, said", [
    (["--oauth-servers", "https://login.example"], "public-url"),
    (["--oauth-servers", "login.example", "--public-url", "https://a.example"], "login.example"),
    (["--oauth-servers", "https://a.example", "--public-url", 'https://a"b.example'], "public-url"),
    (["--oauth-servers", "https://a.example", "--public-url", "https://a.example,https://b.example"], "one only"),
    (["--public-url", "ftp://a.example"], "ftp"),
    (["--public-url", "https://a.example/?x"], "public-url"),
])
def test_settings_that_cannot_be(flags, said):
    code, err = refusal(*flags)
    assert code == 2
    assert said in err


# --- pages ---


def test_a_page_of_another_origin_is_refused(server):
    for kind in (Legacy, Modern):
        exchange = kind(server, key=server.key, headers={"Origin": "https://evil.example"}).begin("tools/list")
        assert exchange.status == 403
        exchange.close()


def test_a_browser_asks_first(server):
    wanted = "authorization, content-type, mcp-method, mcp-name, mcp-protocol-version, mcp-session-id, last-event-id"
    with server.client() as client:
        answer = client.request("OPTIONS", "/mcp", headers={
            "Origin": PAGE, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": wanted})
    assert answer.status == 204
    assert answer.headers["access-control-allow-origin"] == PAGE
    assert answer.headers["access-control-allow-headers"] == wanted
    methods = {m.strip() for m in answer.headers["access-control-allow-methods"].split(",")}
    assert methods >= {"GET", "POST", "DELETE"}


def test_a_page_that_may_reads_the_session(server):
    client = Legacy(server, key=server.key, headers={"Origin": PAGE})
    reply = client.ask("initialize", {"protocolVersion": "2025-11-25"})
    assert reply.headers["access-control-allow-origin"] == PAGE
    exposed = {h.strip() for h in reply.headers["access-control-expose-headers"].split(",")}
    assert exposed >= {"mcp-session-id", "www-authenticate"}
    assert reply.headers["mcp-session-id"]


def test_a_page_without_a_key_learns_how(server):
    exchange = Modern(server, headers={"Origin": PAGE}).begin("tools/list")
    assert exchange.status == 401
    assert exchange.headers["access-control-allow-origin"] == PAGE
    exchange.close()


def test_streams_are_for_pages_too(server):
    client = Legacy(server, key=server.key, headers={"Origin": PAGE}).initialize()
    with client.listen() as stream:
        assert stream.status == 200
        assert stream.headers["access-control-allow-origin"] == PAGE
