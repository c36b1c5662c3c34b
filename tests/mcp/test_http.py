"""/mcp from outside, in both eras: a request, its answer, what is refused and how."""

import base64
import json

import pytest
from support import retort
from support.mcp import CAPABILITIES_KEY, LEGACY, MODERN, VERSION_KEY, Legacy, Modern, header_text
from support.server import Server

BINARY = retort.CONFORMANCE
INVALID, NO_METHOD, PARAMS, HEADER, CAPABILITY, VERSION = -32600, -32601, -32602, -32020, -32021, -32022


def tool(name, **arguments):
    return {"name": name, "arguments": arguments}


# --- answers ---


def test_tools_are_listed(either):
    assert "run_code" in either.tools()


def test_a_tool_is_called(either):
    result = either.call("test_simple_text")
    assert not result.get("isError")
    assert result["content"]


def test_without_notifications_the_answer_is_json(either):
    reply = either.ask("tools/call", tool("test_simple_text"))
    assert reply.status == 200
    assert reply.headers["content-type"] == "application/json"


@pytest.mark.parametrize("id", [1, 0, -7, 2**53, 2**63 - 1, "a", "", "x" * 1024, "ü\"\\ \n"])
def test_ids_come_back_as_they_were(either, id):
    message = {"jsonrpc": "2.0", "id": id, "method": "tools/list", "params": {}}
    headers = {}
    if isinstance(either, Modern):
        message["params"] = either.params()
        headers = either.headers_of("tools/list", message["params"])
    response = either.post(message, headers).reply().response
    assert response["id"] == id
    assert type(response["id"]) is type(id)


def test_a_modern_result_says_what_it_is(modern):
    result = modern.request("tools/list")
    assert result["resultType"] == "complete"
    assert result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "retort"


def test_a_legacy_result_does_not(legacy):
    assert "resultType" not in legacy.request("tools/list")


def test_notifications_make_a_stream(either):
    params = {**tool("test_tool_with_progress"), "_meta": {"progressToken": "t"}}
    reply = either.ask("tools/call", params)
    assert reply.streamed
    assert reply.headers["x-accel-buffering"] == "no"
    assert "no-" in reply.headers["cache-control"]
    progress = reply.of("notifications/progress")
    assert [p["progressToken"] for p in progress] == ["t"] * len(progress)
    assert len(progress) >= 3
    assert reply.messages[-1] == reply.response


@pytest.mark.parametrize("accept", [None, "application/json", "*/*", "text/html", "application/json;q=0.5"])
def test_any_accept_is_answered(either, accept):
    reply = either.ask("tools/call", {**tool("test_tool_with_progress"), "_meta": {"progressToken": 1}},
                       headers={"Accept": accept})
    assert reply.status == 200
    assert reply.result["content"]
    streams = accept in (None, "*/*")
    assert reply.streamed == streams, "who reads no streams is spared them"


# --- modern: headers against the body ---


def refused(client, status, code, method="tools/call", params=None, **headers):
    reply = client.ask(method, params or tool("test_simple_text"),
                       headers={k.replace("_", "-"): v for k, v in headers.items()}, id="the-id")
    assert reply.response["id"] == "the-id"
    return reply.refused(status, code)


@pytest.mark.parametrize("headers", [
    {"MCP-Protocol-Version": None}, {"MCP-Protocol-Version": LEGACY}, {"MCP-Protocol-Version": "2026-07-2"},
    {"Mcp-Method": None}, {"Mcp-Method": "tools/list"}, {"Mcp-Method": "TOOLS/CALL"}, {"Mcp-Method": ""},
    {"Mcp-Name": None}, {"Mcp-Name": "other"}, {"Mcp-Name": "TEST_SIMPLE_TEXT"}, {"Mcp-Name": ""},
    {"Mcp-Name": "=?base64?dGVzdF9zaW1wbGVfdGV4d!==?="},
    {"Mcp-Name": "=?base64?dGVzdF9zaW1wbGVfdGV4dA?="},  # no padding
    {"Mcp-Name": "=?base64?b3RoZXI=?="},
    {"Mcp-Name": "=?BASE64?dGVzdF9zaW1wbGVfdGV4dA==?="},  # the mark is in small letters
    {"Mcp-Name": "=?base64?dGVzdF9zaW1wbGVfdGV4dA=="},
])
def test_headers_that_differ_from_the_body_are_refused(modern, headers):
    reply = modern.ask("tools/call", tool("test_simple_text"), headers=headers, id="the-id")
    reply.refused(400, HEADER)
    assert reply.response["id"] == "the-id"


@pytest.mark.parametrize("name", [
    "test_simple_text", "  test_simple_text ", "\ttest_simple_text\t",
    "=?base64?dGVzdF9zaW1wbGVfdGV4dA==?=", " =?base64?dGVzdF9zaW1wbGVfdGV4dA==?= "])
def test_a_name_may_be_in_base64_and_among_blanks(modern, name):
    assert modern.ask("tools/call", tool("test_simple_text"), headers={"Mcp-Name": name}).status == 200


def test_header_names_have_no_case(modern):
    headers = {"mcp-method": "tools/call", "MCP-NAME": "test_simple_text", "mcp-PROTOCOL-version": MODERN,
               "Mcp-Method": None, "Mcp-Name": None, "MCP-Protocol-Version": None}
    assert modern.ask("tools/call", tool("test_simple_text"), headers=headers).status == 200


def test_a_name_that_needs_it_comes_in_base64(modern):
    for uri in ("test://ünï", "test://a\nb", " test://a", "=?base64?x?="):
        error = modern.ask("resources/read", {"uri": uri}).response.get("error")
        assert error and error["code"] != HEADER, (uri, error)
        assert header_text(uri).startswith("=?base64?")


def test_what_lacks_a_name_needs_none(modern):
    reply = modern.ask("tools/call", {"arguments": {}})
    reply.refused(200, PARAMS)
    modern.ask("tools/call", {"arguments": {}}, headers={"Mcp-Name": "x"}).refused(400, HEADER)


@pytest.mark.parametrize("value", ["eu", "", "a b", "ü", "=?base64?eA==?="])
def test_a_marked_argument_is_repeated(modern, value):
    params = tool("test_x_mcp_header", region=value)
    assert modern.ask("tools/call", params, headers={"Mcp-Param-Region": header_text(value)}).status == 200
    modern.ask("tools/call", params, headers={"Mcp-Param-Region": "other"}).refused(400, HEADER)
    modern.ask("tools/call", params).refused(400, HEADER)


def test_a_marked_argument_that_is_not_there_has_no_header(modern):
    assert modern.ask("tools/call", tool("test_x_mcp_header")).status == 200
    assert modern.ask("tools/call", tool("test_x_mcp_header", region=None)).status == 200
    modern.ask("tools/call", tool("test_x_mcp_header"),
               headers={"Mcp-Param-Region": "eu"}).refused(400, HEADER)


def test_legacy_needs_none_of_these_headers(legacy):
    assert legacy.call("test_x_mcp_header", region="eu")["content"]


# --- modern: _meta and versions ---


def bare(client, meta, method="tools/list", headers=None):
    message = {"jsonrpc": "2.0", "id": 5, "method": method}
    if meta is not None:
        message["params"] = {"_meta": meta}
    return client.post(message, {"MCP-Protocol-Version": MODERN, "Mcp-Method": method,
                                 **(headers or {})}).reply()


@pytest.mark.parametrize("meta", [None, {}, {VERSION_KEY: MODERN}, {CAPABILITIES_KEY: {}},
                                  {VERSION_KEY: MODERN, CAPABILITIES_KEY: []},
                                  {VERSION_KEY: 1, CAPABILITIES_KEY: {}}])
def test_what_each_request_must_say_of_itself(modern, meta):
    reply = bare(modern, meta)
    reply.refused(400, PARAMS)
    assert reply.response["id"] == 5


def test_no_header_is_told_before_no_meta(modern):
    bare(modern, {}, "server/discover", headers={"MCP-Protocol-Version": None}).refused(400, HEADER)


def test_a_version_nobody_knows(server):
    reply = Modern(server, version="v999.0.0").ask("tools/list")
    data = reply.refused(400, VERSION)["data"]
    assert data["requested"] == "v999.0.0"
    assert MODERN in data["supported"]


def test_a_version_is_known_before_the_method(server):
    Modern(server, version="v999.0.0").ask("no/such", headers={"Mcp-Method": "x"}).refused(400, VERSION)


@pytest.mark.parametrize("method", ["no/such", "initialize", "ping", "logging/setLevel",
                                    "resources/subscribe", "resources/unsubscribe"])
def test_modern_has_no_such_method(modern, method):
    reply = modern.ask(method, {"uri": "x", "level": "info"}, id=77)
    reply.refused(404, NO_METHOD)
    assert reply.response["id"] == 77


def test_legacy_has_no_such_method(legacy):
    for method in ("no/such", "server/discoveries", "tools/List"):
        legacy.ask(method).refused(200, NO_METHOD)


def test_a_capability_is_missing(modern):
    error = modern.ask("tools/call", tool("test_missing_capability")).refused(400, CAPABILITY)
    assert error["data"]["requiredCapabilities"] == {"sampling": {}}


def test_discover(server, modern):
    result = modern.request("server/discover")
    assert result["supportedVersions"][0] == MODERN
    assert set(result["supportedVersions"]) >= {LEGACY, "2025-06-18", "2025-03-26"}
    assert "2024-11-05" not in result["supportedVersions"], "that one is for stdio"


def test_a_modern_request_ignores_a_session(modern):
    assert modern.ask("tools/list", headers={"Mcp-Session-Id": "mcp_nonsense", "Last-Event-ID": "1-1"}).status == 200


# --- legacy: beginning ---


@pytest.mark.parametrize("asked, given", [
    (LEGACY, LEGACY), ("2025-06-18", "2025-06-18"), ("2025-03-26", "2025-03-26"),
    ("2024-11-05", LEGACY), ("1999-01-01", LEGACY), (MODERN, LEGACY), ("", LEGACY)])
def test_a_version_is_agreed_on(server, asked, given):
    with Legacy(server, version=asked) as client:
        assert client.version == given
        assert client.info["serverInfo"]["name"] == "retort"


@pytest.mark.parametrize("header", [None, LEGACY, "2025-03-26", "1999-01-01"])
def test_initialize_may_have_a_header(server, header):
    client = Legacy(server, headers={"MCP-Protocol-Version": header})
    assert client.initialize().session


def test_initialize_with_a_modern_header_is_a_contradiction(server):
    client = Legacy(server)
    client.ask("initialize", {"protocolVersion": LEGACY},
               headers={"MCP-Protocol-Version": MODERN}).refused(400, HEADER)


def test_initialize_needs_a_version(server):
    for params in (None, {}, {"protocolVersion": 7}):
        Legacy(server).ask("initialize", params).refused(200, PARAMS)


def test_session_ids_are_visible_and_random(server):
    seen = {Legacy(server).initialize().session for _ in range(20)}
    assert len(seen) == 20
    assert all(len(s) >= 26 and all(0x21 <= ord(c) <= 0x7e for c in s) for s in seen)


@pytest.mark.parametrize("version", ["2025-06-18", "2025-03-26"])
def test_older_versions_see_no_newer_fields(server, version):
    with Legacy(server, version=version) as client:
        shown = client.tools()["run_code"]
        assert ("title" in shown) == (version == "2025-06-18")
        assert "annotations" in shown


def test_ping(legacy):
    assert legacy.request("ping") == {}


# --- legacy: sessions ---


def test_without_a_session_nothing_goes(legacy):
    reply = legacy.ask("tools/list", headers={"Mcp-Session-Id": None}, id="i")
    reply.refused(400, INVALID)
    assert reply.response["id"] == "i"


@pytest.mark.parametrize("session", ["mcp_nonsense", "x" * 5000, "\x80\xff", "mcp_' OR 1=1", "null"])
def test_a_session_nobody_has(legacy, session):
    legacy.ask("tools/list", headers={"Mcp-Session-Id": session}).refused(404, INVALID)


def test_an_ended_session_is_gone(server):
    client = Legacy(server).initialize()
    session = client.session
    client.end()
    client.session = session
    client.ask("tools/list").refused(404, INVALID)
    assert client.send("DELETE", headers=client.own_headers()).status == 404
    assert client.listen().status == 404
    exchange = client.post({"jsonrpc": "2.0", "method": "notifications/initialized"})
    assert exchange.status == 404


@pytest.mark.parametrize("version", ["1999-01-01", MODERN + "x", "2024-11-05"])
def test_a_session_of_an_unknown_version(legacy, version):
    legacy.ask("tools/list", headers={"MCP-Protocol-Version": version}).refused(400, INVALID)


def test_the_version_need_not_be_repeated(legacy):
    assert legacy.ask("tools/list", headers={"MCP-Protocol-Version": None}).status == 200


def test_a_session_is_that_of_one_tenant_and_key():
    other = Server()
    keys = [other.keys("create", "--tenant", tenant, "--quiet").strip() for tenant in ("a", "a", "b")]
    with other:
        clients = [Legacy(other, key=key).initialize() for key in keys]
        owner = clients[0]
        for thief in clients[1:]:
            thief.session = owner.session
            thief.ask("tools/list").refused(404, INVALID)
            assert thief.send("DELETE", headers=thief.own_headers()).status == 404
            assert thief.listen().status == 404
        assert owner.ask("tools/list").status == 200


# --- what is not answered ---


def test_notifications_are_accepted(legacy, modern):
    for client in (legacy, modern):
        for method in ("notifications/initialized", "notifications/no_such", "notifications/cancelled"):
            exchange = client.post({"jsonrpc": "2.0", "method": method, "params": {"requestId": 99}})
            assert exchange.status == 202
            assert exchange.response.read() == b""


def test_a_response_nobody_waits_for(legacy):
    assert legacy.post({"jsonrpc": "2.0", "id": "ask_1", "result": {}}).status == 202
    assert legacy.post({"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "x"}}).status == 202
    legacy.post({"jsonrpc": "2.0", "id": 1, "result": {}}, {"Mcp-Session-Id": None}).reply().refused(400, INVALID)


# --- batches ---


def batch(client, *messages):
    return client.post(list(messages))


def of(id, method, **params):
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


@pytest.fixture
def old(server):
    with Legacy(server, version="2025-03-26") as client:
        yield client


def test_a_batch_is_answered_with_one_array(old):
    exchange = batch(old, of(1, "ping"), {"jsonrpc": "2.0", "method": "notifications/initialized"},
                     of("b", "tools/list"), of(3, "no/such"))
    assert exchange.status == 200
    body = json.loads(exchange.response.read())
    assert isinstance(body, list)
    by_id = {m["id"]: m for m in body}
    assert set(by_id) == {1, "b", 3}
    assert by_id[1]["result"] == {}
    assert by_id["b"]["result"]["tools"]
    assert by_id[3]["error"]["code"] == NO_METHOD


def test_a_batch_may_hold_what_takes_time(old):
    exchange = batch(old, of(1, "tools/call", **tool("test_tool_with_progress"), _meta={"progressToken": 1}),
                     of(2, "ping"))
    reply = exchange.reply()
    assert len(reply.of("notifications/progress")) >= 3
    assert {m["id"] for m in reply.messages if "result" in m} == {1, 2}


def test_a_batch_without_questions_is_accepted(old):
    exchange = batch(old, {"jsonrpc": "2.0", "method": "notifications/initialized"},
                     {"jsonrpc": "2.0", "id": 4, "result": {}})
    assert exchange.status == 202
    assert exchange.response.read() == b""


def test_what_is_wrong_in_a_batch_spoils_nothing_else(old):
    exchange = batch(old, 7, of(1, "ping"), of(1.5, "ping"), of(2, "initialize"), [], {"jsonrpc": "2.0", "id": 3})
    body = json.loads(exchange.response.read())
    assert [m["result"] for m in body if "result" in m] == [{}]
    assert [m["error"]["code"] for m in body if "error" in m] == [INVALID] * 5


@pytest.mark.parametrize("messages", [[], [of(i, "ping") for i in range(101)]])
def test_batches_have_a_size(old, messages):
    batch(old, *messages).reply().refused(400, INVALID)


def test_a_hundred_is_a_batch(old):
    body = json.loads(batch(old, *[of(i, "ping") for i in range(100)]).response.read())
    assert sorted(m["id"] for m in body) == list(range(100))


def test_the_same_id_twice_in_a_batch(old):
    body = json.loads(batch(old, of(1, "tools/call", **tool("test_tool_with_progress")),
                            of(1, "ping")).response.read())
    assert sorted("error" in m for m in body) == [False, True]


def test_other_versions_have_no_batches(legacy, modern, server):
    with Legacy(server, version="2025-06-18") as newer:
        for client in (legacy, modern, newer):
            batch(client, of(1, "ping")).reply().refused(400, INVALID)


# --- verbs ---


def test_other_verbs(server, client_of_http):
    answer = client_of_http.request("PUT", "/mcp", body=b"{}")
    assert answer.status == 405
    assert {v.strip() for v in answer.headers["allow"].split(",")} >= {"GET", "POST", "DELETE", "OPTIONS"}


def test_get_and_delete_need_a_session(modern, legacy):
    for verb in ("GET", "DELETE"):
        for headers in ({}, {"MCP-Protocol-Version": MODERN},
                        {"MCP-Protocol-Version": MODERN, "Mcp-Session-Id": legacy.session}):
            exchange = modern.send(verb, headers=headers)
            assert exchange.status == 405
            assert exchange.headers["allow"] == "POST"
            exchange.close()


def test_head(legacy):
    exchange = legacy.send("HEAD", headers=legacy.own_headers())
    assert exchange.status == 200
    assert exchange.headers["content-type"] == "text/event-stream"
    assert exchange.response.read() == b""


@pytest.fixture
def client_of_http(server):
    with server.client() as one:
        yield one


def test_base64_of_the_tests_is_what_it_says():
    assert base64.b64encode(b"test_simple_text") == b"dGVzdF9zaW1wbGVfdGV4dA=="
