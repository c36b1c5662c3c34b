"""Strangers at /mcp: bytes that are no messages, and clients that mean no good."""

import contextlib
import json

import pytest
from support import retort
from support.mcp import LEGACY, MODERN, Legacy, Modern
from support.server import Server, answers

BINARY = retort.CONFORMANCE
PARSE, INVALID = -32700, -32600


def post(client, body):
    return client.post(None, body=body).reply()


@pytest.fixture(autouse=True)
def afterwards(server):
    """Whatever a test did, the server is well."""
    yield
    assert Modern(server).call("test_simple_text")["content"]


# --- bytes ---


@pytest.mark.parametrize("body", [
    b"", b" ", b"{", b"nonsense", b"\xff\xfe", b'{"jsonrpc": "2.0", "id": 1, "method": "ping"} x',
    b'{"jsonrpc": "2.0", "id": 1, "method": "p\xffing"}',
    b'{"jsonrpc": "2.0", "id": 1, "method": "\\ud800"}',
    b'{"jsonrpc": "2.0", "id": 1, "method": "a\\u0000b"}',
    b'{"jsonrpc": "2.0", "id": 1, "id": 2, "method": "ping"}',
    b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "method": "tools/list"}',
    b'{"jsonrpc": "2.0", "id": 1e999, "method": "ping"}',
    b'{"jsonrpc": "2.0", "id": 9223372036854775808, "method": "ping"}',
    b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    b"[" * 1_000_000,
    b'{"a":' * 10_000 + b"1" + b"}" * 10_000,
    b"\x00" * 1000, b"\x1b[31m", "{“jsonrpc”: 1}".encode(), b"NaN", b"\xef\xbb\xbf{}",
])
def test_what_is_no_json(legacy, body):
    error = post(legacy, body).refused(400, PARSE)
    assert len(error["message"]) < 300, "it does not quote everything"


@pytest.mark.parametrize("body", [
    b"7", b'"ping"', b"null", b"true", b"{}", b'{"jsonrpc": "1.0", "id": 1, "method": "ping"}',
    b'{"id": 1, "method": "ping"}', b'{"jsonrpc": 2.0, "id": 1, "method": "ping"}',
    b'{"jsonrpc": "2.0", "id": 1}', b'{"jsonrpc": "2.0", "id": 1, "method": 7}',
    b'{"jsonrpc": "2.0", "id": 1, "method": null}', b'{"jsonrpc": "2.0", "result": {}}',
    b'{"jsonrpc": "2.0", "id": null, "method": "ping"}', b'{"jsonrpc": "2.0", "id": 1.5, "method": "ping"}',
    b'{"jsonrpc": "2.0", "id": true, "method": "ping"}', b'{"jsonrpc": "2.0", "id": [], "method": "ping"}',
    b'{"jsonrpc": "2.0", "id": {}, "method": "ping"}',
    b'{"jsonrpc": "2.0", "id": "' + b"x" * 1025 + b'", "method": "ping"}',
    b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": []}',
    b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": [1, 2]}',
    b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": "x"}',
    b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": null}',
    b'{"jsonrpc": "2.0", "method": "notifications/initialized", "params": 7}',
])
def test_what_is_no_message(legacy, body):
    reply = post(legacy, body)
    reply.refused(400, INVALID)
    sent = json.loads(body)
    if isinstance(sent, dict) and sent.get("id") == 1 and sent["id"] is not True:
        assert reply.response["id"] == 1
    else:
        assert "id" not in reply.response, "no id that was not one"


def test_a_message_has_a_size(server):
    body = b'{"jsonrpc": "2.0", "id": 1, "method": "' + b"x" * (20 << 20) + b'"}'
    with server.client() as client:
        assert client.request("POST", "/mcp", body=body).status == 413


def test_a_large_message_is_read_beside_the_others(server, legacy):
    """By a worker: it is answered as any other, and nobody waits for it."""
    code = "x = '" + "y" * (6 << 20) + "'"
    reply = legacy.ask("tools/call", {"name": "no_such_tool", "arguments": {"code": code}}, id="large")
    reply.refused(200, -32602)
    assert reply.response["id"] == "large"
    half = b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"x": "' + b"z" * (1 << 20)
    post(legacy, half).refused(400, PARSE)


def test_members_nobody_knows_are_ignored(legacy):
    assert post(legacy, b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "x": {"y": [1]}, "extra": null}').result == {}


def test_a_method_like_no_other(legacy, modern):
    for name in ("", " ", "x" * 100_000, "../../etc/passwd", "tools/call ", "%s%n", "\n", "ü"):
        error = post(legacy, json.dumps({"jsonrpc": "2.0", "id": 1, "method": name}).encode()).refused(200, -32601)
        assert len(error["message"]) < 500


def test_meta_of_any_shape(modern, legacy):
    for meta in (7, [], "x", None, {"progressToken": {}}, {"progressToken": [1]}, {"progressToken": 1.5},
                 {"io.modelcontextprotocol/logLevel": 7}, {"traceparent": 7}):
        assert legacy.ask("tools/call", {"name": "test_tool_with_progress", "_meta": meta}).status == 200
    for meta in ({"progressToken": {}}, {"progressToken": 1.5}, {"progressToken": True}):
        reply = modern.ask("tools/call", {"name": "test_tool_with_progress", "_meta": meta})
        assert not reply.of("notifications/progress")


def test_headers_twice(server):
    head = (f"POST /mcp HTTP/1.1\r\nHost: localhost\r\nMCP-Protocol-Version: {MODERN}\r\nMcp-Method: tools/list\r\n"
            "Mcp-Method: tools/call\r\nContent-Length: 2\r\n\r\n{}").encode()
    assert answers(server.raw(head, half_close=True))[0].status == 400


# --- connections ---


def request(client, method, id):
    body = json.dumps({"jsonrpc": "2.0", "id": id, "method": method}).encode()
    headers = {"Host": "localhost", "Content-Length": len(body), **client.own_headers()}
    return ("POST /mcp HTTP/1.1\r\n" + "".join(f"{k}: {v}\r\n" for k, v in headers.items()) + "\r\n").encode() + body


def test_pipelined_requests_are_answered_in_order(server, legacy):
    sent = b"".join(request(legacy, "ping", i) for i in range(50))
    with server.connect() as s:
        s.sendall(sent)
        got = b""
        while got.count(b'"result"') < 50:
            piece = s.recv(65536)
            assert piece
            got += piece
    assert [a.json["id"] for a in answers(got)] == list(range(50))


def test_a_body_that_never_ends(server, legacy):
    with server.connect() as s:
        s.sendall(request(legacy, "ping", 1)[:-5])
        assert legacy.request("ping") == {}


def test_a_client_that_goes_at_any_moment(server, legacy):
    whole = request(legacy, "tools/list", 1)
    for cut in range(0, len(whole), 7):
        with server.connect() as s:
            s.sendall(whole[:cut])
    for _ in range(20):
        with contextlib.closing(legacy.shoot("tools/call", {"name": "test_tool_with_progress",
                                                            "_meta": {"progressToken": 1}})):
            pass
        with contextlib.closing(Modern(server).shoot("tools/call", {"name": "test_tool_with_progress"})):
            pass
    assert legacy.request("ping") == {}
    server.check_alive()


# --- many ---


def pipelined(server, requests, at_once=250):
    """The answers to many requests on one connection."""
    found = []
    with server.connect() as s:
        for i in range(0, len(requests), at_once):
            some = requests[i:i + at_once]
            s.sendall(b"".join(some))
            got = b""
            while got.count(b"HTTP/1.1 ") < len(some) or len(answers(got)) < len(some) or not is_whole(got):
                piece = s.recv(1 << 20)
                assert piece
                got += piece
            found += answers(got)
    return found


def is_whole(received):
    last = answers(received)[-1]
    return len(last.body) == int(last.headers.get("content-length", 0))


def raw(verb, message=None, session=None):
    body = json.dumps(message).encode() if message else b""
    more = f"Mcp-Session-Id: {session}\r\n" if session else ""
    return f"{verb} /mcp HTTP/1.1\r\nHost: localhost\r\n{more}Content-Length: {len(body)}\r\n\r\n".encode() + body


BEGIN = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": LEGACY}}
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


def test_many_sessions(server):
    """A thousand, none of them ended, each still there, and of little weight."""
    before = server.resident()
    sessions = [a.expect(200).headers["mcp-session-id"] for a in pipelined(server, [raw("POST", BEGIN)] * 1000)]
    assert len(set(sessions)) == 1000
    for answer in pipelined(server, [raw("POST", PING, s) for s in sessions]):
        assert answer.expect(200).json["result"] == {}
    assert server.resident() - before < 20_000
    for answer in pipelined(server, [raw("DELETE", None, s) for s in sessions]):
        answer.expect(204)
    for answer in pipelined(server, [raw("DELETE", None, s) for s in sessions[::100]]):
        answer.expect(404)


def test_the_longest_unused_session_makes_room(server):
    """A tenant has five thousand; clients seldom say goodbye, so nobody is turned away for it."""
    first, used = Legacy(server).initialize(), Legacy(server).initialize()
    for _ in range(6):
        assert used.request("ping") == {}
        assert {a.status for a in pipelined(server, [raw("POST", BEGIN)] * 900)} == {200}
    assert used.request("ping") == {}
    first.ask("ping").refused(404, INVALID)


def test_calls_of_a_session_have_a_number(server):
    """Of a batch of a hundred, three times: some are refused, all are answered."""
    with Legacy(server, version="2025-03-26") as client:
        sockets = []
        for n in range(3):
            body = json.dumps([{"jsonrpc": "2.0", "id": f"{n}-{i}", "method": "tools/call",
                                "params": {"name": "test_tool_with_progress"}} for i in range(100)]).encode()
            s = server.connect()
            headers = {"Host": "localhost", "Content-Length": len(body), **client.own_headers()}
            s.sendall(("POST /mcp HTTP/1.1\r\n" + "".join(f"{k}: {v}\r\n" for k, v in headers.items())
                       + "\r\n").encode() + body)
            sockets.append(s)
        found = []
        for s in sockets:
            got = b""
            while not got.endswith(b"]"):
                piece = s.recv(65536)
                assert piece
                got += piece
            found += answers(got)[0].json
            s.close()
    assert len(found) == 300
    assert 256 <= sum("result" in m for m in found) < 300


# --- who does not read ---


def test_a_client_that_does_not_read_is_not_waited_for(server, legacy):
    """The code runs on, others are served, and the response is there when it reads at last."""
    code = "for i in range(300): print('x' * 100_000)\nprint('the end')"
    s = legacy.shoot("tools/call", {"name": "run_code", "arguments": {"code": code}, "_meta": {"progressToken": 1}})
    for _ in range(10):
        assert legacy.request("ping") == {}
    got = b""
    while b"the end" not in got:
        piece = s.recv(4096)
        assert piece
        got += piece
    s.close()


def test_the_server_ends_well_with_all_that():
    with Server(program=BINARY) as server:
        clients = [Legacy(server).initialize() for _ in range(10)]
        streams = [c.listen() for c in clients]
        sockets = [c.shoot("tools/call", {"name": "test_tool_with_progress", "_meta": {"progressToken": 1}})
                   for c in clients]
        server.stop()
        for one in sockets + streams:
            one.close()
