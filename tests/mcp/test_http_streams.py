"""Streams of /mcp: coming back for the rest of an answer, what belongs to no call, and going away."""

import contextlib
import socket

import pytest
from support import retort
from support.mcp import Legacy, Modern, text_of
from support.server import Server, together

BINARY = retort.CONFORMANCE
TOKEN = {"_meta": {"progressToken": "p"}}
LONG = "import time\nfor i in range(600): time.sleep(0.1)"


def tool(name, **arguments):
    return {"name": name, "arguments": arguments}


def run(code, **more):
    return {**tool("run_code", code=code, **more), **TOKEN}


def ids(events):
    return [e.id for e in events]


# --- ids ---


def test_a_stream_begins_with_an_id(legacy):
    exchange = legacy.begin("tools/call", {**tool("test_tool_with_progress"), **TOKEN})
    events = list(exchange.events())
    assert events[0].message is None and events[0].id and events[0].retry
    assert len(set(ids(events))) == len(events)
    assert len({e.id.split("-")[0] for e in events}) == 1, "the id names the stream"


def test_streams_of_a_session_have_ids_of_their_own(legacy):
    def one():
        return ids(legacy.begin("tools/call", {**tool("test_tool_with_progress"), **TOKEN}).events())

    found = together(one, one, one)
    assert len(set(sum(found, []))) == sum(map(len, found))


@pytest.mark.parametrize("version", ["2025-06-18", "2025-03-26"])
def test_older_clients_get_no_event_without_a_message(server, version):
    with Legacy(server, version=version) as client:
        events = list(client.begin("tools/call", {**tool("test_tool_with_progress"), **TOKEN}).events())
        assert all(e.message for e in events)
        assert all(e.id for e in events)


def test_modern_streams_have_no_ids(modern):
    events = list(modern.begin("tools/call", {**tool("test_tool_with_progress"), **TOKEN}).events())
    assert len(events) > 3
    assert not any(e.id or e.retry for e in events)


# --- coming back ---


def test_an_answer_is_come_back_for(legacy):
    """The connection ends in the middle of the call, and the call does not."""
    exchange = legacy.begin("tools/call", {**tool("test_tool_with_progress"), **TOKEN}, id="lost")
    exchange.until("notifications/progress")
    exchange.close()
    reply = legacy.listen(exchange.last_id).reply()
    assert reply.response["id"] == "lost"
    assert reply.result["content"]
    assert len(reply.of("notifications/progress")) >= 2


def test_an_answer_can_be_read_again(legacy):
    exchange = legacy.begin("tools/call", {**tool("test_tool_with_progress"), **TOKEN})
    events = list(exchange.events())
    for i, event in enumerate(events):
        again = list(legacy.listen(event.id).events())
        assert [e.message for e in again] == [e.message for e in events[i + 1:]]


def test_only_the_stream_that_is_named_comes_again(legacy):
    first = list(legacy.begin("tools/call", {**tool("test_tool_with_progress"), **TOKEN}, id=1).events())
    list(legacy.begin("tools/call", {**tool("test_tool_with_progress"), **TOKEN}, id=2).events())
    again = list(legacy.listen(first[0].id).events())
    assert [e.message for e in again] == [e.message for e in first[1:]]


@pytest.mark.parametrize("last_id", ["x", "1", "1-", "-1", "99-0", "1-99", "1-1-1", "1 - 1", "00000000000000000000001-1",
                                     "18446744073709551617-1", "0-0", "\x801-1"])
def test_ids_nobody_gave(legacy, last_id):
    list(legacy.begin("tools/call", {**tool("test_tool_with_progress"), **TOKEN}).events())
    assert legacy.listen(last_id).status == 400


def test_the_server_hangs_up_and_is_come_back_to(legacy):
    exchange = legacy.begin("tools/call", tool("test_reconnection"), id="r")
    events = list(exchange.events())
    assert not any(e.message and "result" in e.message for e in events), "it ended before the answer"
    assert events[0].retry
    reply = legacy.listen(exchange.last_id).reply()
    assert reply.response["id"] == "r"
    assert reply.result["content"]


def test_the_newest_reader_has_the_stream(legacy):
    exchange = legacy.begin("tools/call", run("import time; time.sleep(3); print('end')"), id=1)
    priming = next(exchange.events())
    second = legacy.listen(priming.id)
    assert not any("result" in (e.message or {}) for e in exchange.events()), "the first one ended"
    assert "end" in text_of(second.reply().result)


def test_another_session_reads_none_of_it(server, legacy):
    exchange = legacy.begin("tools/call", {**tool("test_tool_with_progress"), **TOKEN})
    last = list(exchange.events())[0].id
    with Legacy(server) as other:
        assert other.listen(last).status == 400


# --- what belongs to no call ---


def test_a_stream_beside(legacy):
    with legacy.listen() as beside:
        assert beside.status == 200
        assert beside.streams
        assert next(beside.events()).id
        reply = legacy.ask("tools/call", tool("test_trigger_tool_change"))
        assert not reply.of("notifications/tools/list_changed"), "it belongs to no call"
        assert beside.until("notifications/tools/list_changed")


def test_a_message_goes_to_one_stream(legacy):
    first = legacy.listen()
    next(first.events())
    with legacy.listen() as second:
        next(second.events())
        assert list(first.events()) == [], "the newer one has taken its place"
        legacy.call("test_trigger_tool_change")
        assert second.until("notifications/tools/list_changed")


def test_what_was_missed_comes_when_the_client_is_back(legacy):
    first = legacy.listen()
    start = next(first.events()).id
    legacy.call("test_trigger_tool_change")
    assert first.until("notifications/tools/list_changed")
    seen = first.last_id
    first.close()
    legacy.call("test_trigger_prompt_change")
    with legacy.listen(seen) as second:
        assert next(iter(second))["method"] == "notifications/prompts/list_changed"
    with legacy.listen(start) as third:
        assert next(iter(third))["method"] == "notifications/tools/list_changed"


def test_the_end_of_a_session_ends_its_streams(server):
    client = Legacy(server).initialize()
    beside = client.listen()
    next(beside.events())
    call = client.begin("tools/call", run(LONG))
    next(call.events())
    client.end()
    assert all("method" in e.message for e in beside.events())
    assert not any("result" in (e.message or {}) for e in call.events())


# --- going away ---


def running(server):
    with server.client() as client:
        return {e["id"] for e in client.all("/v1/executions") if e["status"] == "running"}


@pytest.mark.parametrize("how", ["close", "half"])
def test_a_modern_client_that_goes_has_cancelled(server, modern, how):
    before = running(server)
    s = modern.shoot("tools/call", run(LONG))
    retort.wait_until(lambda: running(server) - before, "the code runs")
    s.shutdown(socket.SHUT_WR if how == "half" else socket.SHUT_RDWR)
    retort.wait_until(lambda: not running(server) - before, "the code is interrupted")
    s.close()


def test_so_has_one_that_has_read_some(server, modern):
    before = running(server)
    exchange = modern.begin("tools/call", run(LONG))
    assert exchange.streams
    exchange.close()
    retort.wait_until(lambda: not running(server) - before, "the code is interrupted")


def test_a_legacy_client_that_goes_has_not(legacy):
    """What takes long gets a stream, so that there is an id to come back with."""
    exchange = legacy.begin("tools/call", tool("run_code", code="import time; time.sleep(3); print('through')"),
                            id="gone")
    priming = next(exchange.events())
    assert priming.message is None
    exchange.close()
    reply = legacy.listen(priming.id).reply()
    assert reply.response["id"] == "gone"
    assert "through" in text_of(reply.result)


def test_nor_has_one_that_goes_early(server, legacy):
    before = running(server)
    s = legacy.shoot("tools/call", tool("run_code", code="import time; time.sleep(1); x = 'through'"))
    retort.wait_until(lambda: running(server) - before, "the code runs")
    s.close()
    retort.wait_until(lambda: not running(server) - before, "the code ends")
    assert "through" in text_of(legacy.call("run_code", code="x"))


def test_cancelled_calls_are_not_answered(server, legacy):
    before = running(server)
    exchange = legacy.begin("tools/call", run(LONG), id="c")
    retort.wait_until(lambda: running(server) - before, "the code runs")
    legacy.cancel("c")
    reply = exchange.reply()
    assert not [m for m in reply.messages if "method" not in m]
    retort.wait_until(lambda: not running(server) - before, "the code is interrupted")


def test_an_id_is_free_again_when_its_call_has_ended(legacy):
    exchange = legacy.begin("tools/call", {**tool("test_tool_with_progress"), **TOKEN}, id="same")
    legacy.ask("ping", id="same").refused(400, -32600)
    exchange.reply()
    assert legacy.request("ping", id="same") == {}


def test_calls_of_a_session_run_side_by_side(legacy):
    exchange = legacy.begin("tools/call", run("import time; time.sleep(1.5); print('slow')"), id="slow")
    assert legacy.request("ping") == {}
    assert legacy.call("test_simple_text")["content"]
    assert "slow" in text_of(exchange.reply().result)


# --- the server ends ---


def test_streams_end_with_the_server():
    with Server(program=BINARY) as server:
        client = Legacy(server).initialize()
        beside = client.listen()
        next(beside.events())
        server.stop()
        assert "what still runs" not in server.log(), "an open stream does not hold it back"
        with contextlib.suppress(OSError):
            assert list(beside.events()) == []
        server.start()
        client.ask("ping").refused(404, -32600)


def test_calls_under_way_end_with_the_server():
    with Server("--drain", "0", program=BINARY) as server:
        client, modern = Legacy(server).initialize(), Modern(server)
        params = {**tool("test_tool_with_progress"), **TOKEN}
        calls = [c.begin("tools/call", params) for c in (client, modern)]
        calls += [c.begin("tools/call", run("import time; time.sleep(60)")) for c in (client, modern)]
        for call in calls:
            next(call.events())
        server.stop()
