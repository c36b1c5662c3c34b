"""What is the same over every transport: ids, levels of the log, progress, cancellation, capabilities."""

import pytest

from support import retort
from support.mcp import LOG_KEY, Legacy, Modern, RpcError, text_of

pytestmark = pytest.mark.once
BINARY = retort.CONFORMANCE
LOGGED, PROGRESS = "notifications/message", "notifications/progress"


@pytest.mark.parametrize("id", [0, -5, 2**62, "", "7", "x" * 1024, "\u00e9\u2028"])
def test_an_id_comes_back_as_it_was(either, id):
    given = either.ask("tools/list", id=id).response["id"]
    assert given == id and type(given) is type(id)


def test_progress_is_told_in_whole_numbers(either):
    reply = either.ask("tools/call", {"name": "test_tool_with_progress", "_meta": {"progressToken": 7}})
    told = reply.of(PROGRESS)
    assert [t["progress"] for t in told] == [0, 50, 100]
    assert all(type(t["progress"]) is int and type(t["total"]) is int for t in told)
    assert all(t["progressToken"] == 7 and type(t["progressToken"]) is int for t in told)


@pytest.mark.parametrize("token", [None, 1.5, {}, ["x"]])
def test_without_a_token_there_is_no_progress(either, token):
    meta = {} if token is None else {"_meta": {"progressToken": token}}
    assert either.ask("tools/call", {"name": "test_tool_with_progress", **meta}).of(PROGRESS) == []


# --- logs ---


@pytest.mark.parametrize("level, told", [("debug", 1), ("info", 1), ("notice", 0), ("emergency", 0)])
def test_the_level_comes_with_each_request(server, level, told):
    client = Modern(server, meta={LOG_KEY: level})
    assert len(client.ask("tools/call", {"name": "test_logging_tool"}).of(LOGGED)) == told
    assert Modern(server).ask("tools/call", {"name": "test_logging_tool"}).of(LOGGED) == []


@pytest.mark.parametrize("level", ["loud", "", 3, None, "INFO"])
def test_another_level_is_an_error(server, level):
    with pytest.raises(RpcError, match="-32602"):
        Modern(server, meta={LOG_KEY: level}).request("tools/list")


@pytest.mark.parametrize("level, told", [("debug", 1), ("info", 1), ("notice", 0)])
def test_the_level_is_set_for_a_conversation(legacy, level, told):
    assert legacy.request("logging/setLevel", {"level": level}) == {}
    reply = legacy.ask("tools/call", {"name": "test_logging_tool"})
    assert len(reply.of(LOGGED)) == told
    with pytest.raises(RpcError, match="-32602"):
        legacy.request("logging/setLevel", {"level": "loud"})


# --- cancellation ---


def test_a_cancelled_call_is_not_answered_and_its_id_is_free(legacy):
    with legacy.begin("tools/call", {"name": "slow_compute", "arguments": {"seconds": 50}}, id="mine") as exchange:
        legacy.ask("tools/list", id="mine").refused(400, -32600)
        legacy.cancel("mine")
        assert exchange.reply().messages == []
    assert legacy.ask("tools/list", id="mine").result["tools"]


def test_what_cannot_be_cancelled_is_left_alone(legacy):
    legacy.cancel("nothing")
    for params in ({}, {"requestId": None}, {"requestId": {}}, {"requestId": 10**15}):
        legacy.notify("notifications/cancelled", params)
    legacy.notify("notifications/unheard_of", {"x": 1})
    assert legacy.request("ping") == {}


# --- who says what ---


def test_capabilities_are_what_is_served(either):
    if isinstance(either, Legacy):
        said = either.info["capabilities"]
        assert "extensions" not in said and "tasks" not in said
    else:
        said = either.request("server/discover")["capabilities"]
        assert "io.modelcontextprotocol/tasks" in said["extensions"]
    for family in ("tools", "prompts", "resources"):
        assert family in said
        assert either.request(f"{family}/list")[family]


def test_a_client_may_begin_again(server):
    with Legacy(server) as client:
        first = client.session
        client.session = None
        client.initialize()
        assert client.session != first
        assert text_of(client.call("test_simple_text"))


def test_unknown_methods_and_tools(either):
    modern = isinstance(either, Modern)
    either.ask("tools/unheard_of").refused(404 if modern else 200, -32601)
    with pytest.raises(RpcError, match="-32602.*unheard_of"):
        either.call("unheard_of")
    assert text_of(either.call("test_simple_text"))
