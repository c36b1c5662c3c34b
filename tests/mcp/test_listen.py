"""Changes: who hears of them, in both eras, and what a listener that does not read costs."""

import threading

import pytest

from support import retort
from support.mcp import Legacy, Modern, RpcError
from support.server import Server

pytestmark = pytest.mark.once
BINARY = retort.CONFORMANCE
ID = "io.modelcontextprotocol/subscriptionId"
TOOLS, PROMPTS = "notifications/tools/list_changed", "notifications/prompts/list_changed"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"


def listen(client, id=None, **wanted):
    """An open stream: the exchange, its messages, and what was agreed."""
    exchange = client.begin("subscriptions/listen", {"notifications": wanted}, id=id)
    assert exchange.streams
    messages = iter(exchange)
    first = next(messages)
    assert first["method"] == ACKNOWLEDGED
    return exchange, messages, first["params"]


def test_it_is_acknowledged_first(modern):
    exchange, _, params = listen(modern, id="mine", toolsListChanged=True, promptsListChanged=False)
    with exchange:
        assert params["_meta"] == {ID: "mine"}
        assert params["notifications"] == {"toolsListChanged": True}


def test_only_what_was_asked_for_is_told(modern):
    exchange, messages, _ = listen(modern, id=77, promptsListChanged=True)
    with exchange:
        modern.call("test_trigger_tool_change")
        modern.call("test_trigger_prompt_change")
        told = next(messages)
        assert told["method"] == PROMPTS and told["params"]["_meta"] == {ID: 77}


def test_many_changes_are_told_a_few_times(modern):
    exchange, messages, _ = listen(modern, toolsListChanged=True, promptsListChanged=True)
    with exchange:
        for _ in range(100):
            modern.call("test_trigger_tool_change")
        modern.call("test_trigger_prompt_change")
        told = []
        while PROMPTS not in told:
            told.append(next(messages)["method"])
        assert told.count(TOOLS) < 100


@pytest.mark.parametrize("wanted", [
    {"resourceSubscriptions": ["x"] * 1025}, {"resourceSubscriptions": "x"}, {"resourceSubscriptions": [1]},
    {"resourceSubscriptions": ["x" * 5000]}])
def test_a_filter_has_limits(modern, wanted):
    with pytest.raises(RpcError, match="-32602"):
        modern.request("subscriptions/listen", {"notifications": wanted})


@pytest.mark.parametrize("params", [{}, {"notifications": None}, {"notifications": []}])
def test_there_must_be_a_filter(modern, params):
    with pytest.raises(RpcError, match="-32602"):
        modern.request("subscriptions/listen", params)


def test_there_is_a_limit_to_streams(server):
    client, held = Modern(server), []
    try:
        with pytest.raises(RpcError, match="as many streams"):
            for _ in range(200):
                exchange = client.begin("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
                held.append(exchange)
                if not exchange.streams:
                    exchange.reply().result
        assert len(held) > 100
    finally:
        for exchange in held:
            exchange.close()


def test_one_that_has_gone_makes_room(modern):
    for _ in range(150):
        exchange, _, _ = listen(modern, toolsListChanged=True)
        exchange.close()


def test_the_legacy_era_hears_of_lists_by_itself(server):
    with Legacy(server) as client, client.listen() as stream:
        Modern(server).call("test_trigger_tool_change")
        assert stream.until(TOOLS).get("params", {}) == {}


def test_the_legacy_era_is_told_when_it_comes(server):
    with Legacy(server) as client:
        client.call("test_trigger_prompt_change")
        client.call("test_tool_with_progress")  # takes longer than a change waits to be told
        with client.listen() as stream:
            stream.until(PROMPTS)


def test_subscriptions_have_limits(legacy):
    for uri in (1, None, "x" * 5000):
        with pytest.raises(RpcError, match="-32602"):
            legacy.request("resources/subscribe", {"uri": uri})
    assert legacy.request("resources/subscribe", {"uri": "test://watched-resource"}) == {}
    assert legacy.request("resources/unsubscribe", {"uri": "test://watched-resource"}) == {}
    assert legacy.request("resources/unsubscribe", {"uri": "test://never"}) == {}


def test_the_modern_era_has_none_of_these(modern):
    for method in ("resources/subscribe", "resources/unsubscribe"):
        modern.ask(method, {"uri": "test://watched-resource"}).refused(404, -32601)


def test_a_server_that_ends_says_so():
    with Server(program=BINARY) as server:
        exchange, messages, _ = listen(Modern(server), id="mine", toolsListChanged=True)
        with exchange:
            ending = threading.Thread(target=server.stop)
            ending.start()
            last = next(messages)
            assert last["id"] == "mine" and last["result"]["resultType"] == "complete"
            assert last["result"]["_meta"][ID] == "mine"
            assert next(messages, None) is None
            ending.join()
