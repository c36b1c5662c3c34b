"""HTTP+SSE, the transport of 2024-11-05, at the path of every tool set: one stream, and messages beside it."""

import secrets

import pytest
from support import retort
from support.mcp import LEGACY
from support.old_sse import OLDEST, OldSse
from support.server import Server

TOOLS = {"/mcp": "run_code", "/qwen/mcp": "code_interpreter", "/mcp/qwen": "python_executor", "/prisme/mcp": "execute_python",
         "/mcp/azure": "launchShell", "/ubik/mcp": "code_execution"}


@pytest.fixture(scope="module")
def server():
    with Server("--model-script", "-", "--memory", "1G") as one:
        yield one


@pytest.mark.parametrize("suffix", ["/sse", ""])
@pytest.mark.parametrize("path", TOOLS)
def test_every_tool_set(server, path, suffix):
    with OldSse(server, path + suffix) as client:
        assert client.info["protocolVersion"] == OLDEST
        assert TOOLS[path] in [t["name"] for t in client.ask("tools/list")["tools"]]


def test_versions(server):
    with OldSse(server, "/mcp/sse", LEGACY) as newer:
        assert newer.info["protocolVersion"] == LEGACY
    with OldSse(server, "/mcp/sse", "2026-07-28") as modern:
        assert modern.info["protocolVersion"] == LEGACY  # the other era has no such transport
        assert modern.ask("server/discover")["code"] == -32601


def test_state_of_the_conversation(server):
    with OldSse(server, "/qwen/mcp") as one, OldSse(server, "/qwen/mcp") as other:
        one.call("code_interpreter", code="x = 42")
        assert "42" in one.call("code_interpreter", code="x")["content"][0]["text"]
        assert "NameError" in other.call("code_interpreter", code="x")["content"][0]["text"]


def test_answers_come_when_they_are_ready(server):
    with OldSse(server, "/mcp") as client:
        slow = client.send("tools/call", {"name": "run_code", "arguments": {"code": "import time; time.sleep(1)"}})
        quick = client.send("ping")
        assert [client.answer()["id"], client.answer()["id"]] == [quick, slow]


def test_cancelled(server):
    with OldSse(server, "/mcp") as client:
        slow = client.send("tools/call", {"name": "run_code", "arguments": {"code": "import time; time.sleep(600)"}})
        assert client.post({"method": "notifications/cancelled", "params": {"requestId": slow}}).status == 202
        assert client.ask("ping") == {}


def test_the_conversation_ends_with_its_stream(server):
    client = OldSse(server, "/mcp").__enter__()
    client.call("run_code", code="import time\nopen('here', 'w').close()")
    client.close()
    retort.wait_until(lambda: client.post({"id": 99, "method": "ping"}).status == 404, "the end of the conversation")


def test_messages_that_are_refused(server):
    with OldSse(server, "/mcp") as client:
        client.send("tools/call", {"name": "run_code", "arguments": {"code": "import time; time.sleep(600)"}})
        assert client.post({"id": client.last, "method": "ping"}).status == 400
        assert client.post({"jsonrpc": "1.0"}).status == 400
        with server.client() as http:
            assert http.post("/mcp/sse", {}).status == 400
            for wrong in ("nobody", "mcp_" + secrets.token_hex(14)):
                assert http.post(f"/mcp/sse?session_id={wrong}", {}).status == 404
            session = client.endpoint.partition("=")[2]
            assert http.post(f"/qwen/mcp/sse?session_id={session}", {}).status == 404  # of another tool set
            streamable = {"Mcp-Session-Id": session, "Accept": "application/json, text/event-stream"}
            assert http.post("/mcp", {"jsonrpc": "2.0", "id": 1, "method": "ping"}, headers=streamable).status == 404


def test_a_reader_that_does_not_read(server):
    """Answers that nobody reads are bounded: messages are refused until some have been read."""
    with OldSse(server, "/mcp") as client:
        number = 0
        while (status := client.post({"id": (number := number + 1) + 10, "method": "tools/list"}).status) == 202:
            assert number < 5000
        assert status == 429
        client.message()


def test_behind_a_proxy_that_takes_a_prefix_off():
    with Server("--public-url", "https://tools.example/code/") as server, OldSse(server, "/mcp", None) as client:
        assert client.endpoint.startswith("/code/mcp/sse?session_id=mcp_")
