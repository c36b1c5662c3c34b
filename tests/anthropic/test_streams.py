"""Section 4: streams, event by event."""

import http.client
import json
import socket
import time

import pytest

from server import together
from talk import Talk, body, kinds, rebuilt, results, tool


def types(events):
    return [e["type"] for e in events if e["type"] != "ping"]


def test_4_2_the_sequence(talk):
    request = body([[{"text": "Let me look"}, {"bash": "echo hi"}], [{"text": "done"}]])
    events, message = talk.stream(request)
    assert types(events) == [
        "message_start",
        "content_block_start", "content_block_delta", "content_block_stop",
        "content_block_start", "content_block_delta", "content_block_delta", "content_block_stop",
        "content_block_start", "content_block_stop",
        "content_block_start", "content_block_delta", "content_block_stop",
        "message_delta", "message_stop"]
    assert events[5]["delta"] == {"type": "input_json_delta", "partial_json": ""}
    assert events[4]["content_block"]["input"] == {} and events[4]["content_block"]["caller"] == {"type": "direct"}
    whole = talk.message(request)
    assert kinds(message) == kinds(whole) and results(message) == results(whole)
    assert set(message) == set(whole) and message["stop_reason"] == "end_turn"


def test_4_1_headers(talk):
    with talk.begin(body([[{"text": "x"}]])) as events:
        assert events.status == 200 and events.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert events.headers["request-id"].startswith("req_")
        list(events)
    talk.client.close()


def test_4_4_the_container_is_in_both_events(talk):
    events, message = talk.stream(body([[{"bash": "true"}]]))
    assert events[0]["message"]["container"]["id"] == events[-2]["delta"]["container"]["id"]
    assert message["container"]["id"].startswith("container_")


def test_4_3_a_pause_for_a_tool_is_a_regular_stream(talk):
    lookup = {"name": "lookup", "input_schema": {"type": "object"}, "allowed_callers": ["code_execution_20260120"]}
    events, message = talk.stream(body([[{"python": "await lookup({})"}]], tools=[tool("20260120"), lookup]))
    assert kinds(message) == ["server_tool_use", "tool_use"] and message["stop_reason"] == "tool_use"
    assert message["container"] and events[-2]["type"] == "message_delta"


def test_4_5_before_the_first_byte_it_is_an_http_error(talk):
    with talk.begin(body([[{"fail": {"status": 503}}]])) as events:
        assert events.status == 529
    talk.client.close()


def timed(server, key, request):
    """The events of a stream that is silent for long, and the seconds before its head and between them."""
    begun = time.monotonic()
    with Talk(server, key) as talk, talk.begin(request) as events:
        assert events.status == 200
        times, found = [begun, time.monotonic()], []
        for event in events:
            times.append(time.monotonic())
            found.append(event)
    return found, [after - before for before, after in zip(times, times[1:])]


@pytest.fixture(scope="module")
def silent(house, server):
    """All at a time: each takes more than the ten seconds that nothing may be silent for."""
    return together(
        lambda: timed(house, house.key, body([[{"sleep_ms": 11000}, {"fail": {"status": 503}}]])),
        lambda: timed(server, None, body([[{"text": "x"}, {"bash": "sleep 11"}]])),
        lambda: dawdled(server))


def dawdled(server):
    """All events of one who does not read for long while more waits for it than a connection holds."""
    steps = [[{"bash": "head -c 100000 /dev/zero | tr '\\0' '\\1'"}] * 9, [{"sleep_ms": 10000}, {"text": "end"}]]
    with Talk(server) as talk:
        talk.client.connection = http.client.HTTPConnection("localhost", server.port)
        talk.client.connection.sock = wire = socket.socket()
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        wire.connect(("127.0.0.1", server.port))
        events = talk.begin(body(steps))
        time.sleep(8.5)
        return list(events)


def test_9_15_no_ping_stands_in_the_middle_of_an_event(silent):
    message = rebuilt(silent[2])
    assert len(results(message)) == 9 and message["content"][-1]["text"] == "end"


def test_4_5_after_it_it_is_an_event(silent):
    """Who has waited long sees the stream begin; then nothing but an event is left to say it with."""
    found, pauses = silent[0]
    assert found[0]["type"] == "message_start" and found[-1]["type"] == "error" and max(pauses) < 10
    assert found[-1]["error"]["type"] == "overloaded_error" and found[-1]["request_id"].startswith("req_")


def test_9_15_pings_while_a_command_runs(silent):
    found, pauses = silent[1]
    assert {"type": "ping"} in found and max(pauses) < 10, pauses


def test_a_reader_that_does_not_read(talk, house):
    """It takes no more memory than a message has, and the others go on."""
    request = body([[{"bash": "head -c 250000 /dev/zero | tr '\\0' x"}] for _ in range(6)], stream=True)
    data = json.dumps(request).encode()
    head = (f"POST /anthropic/v1/messages HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {house.key}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n").encode()
    with house.connect() as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        slow.sendall(head + data)
        time.sleep(1)
        assert talk.bash("echo on")["stdout"] == "on\n"
        got = b""
        while b"message_stop" not in got:
            piece = slow.recv(1 << 18)
            assert piece
            got = got[-64:] + piece


def test_what_is_long_as_json_pauses_in_time(talk):
    """Control characters are six bytes each there."""
    flood = "head -c 250000 /dev/zero | tr '\\0' '\\1' | tee /dev/stderr"
    _, message = talk.stream(body([[{"bash": flood}] * 9]))
    assert message["stop_reason"] == "pause_turn" and 2 <= len(results(message)) < 9


@pytest.mark.parametrize("text", ["ü" * 1000, 'quote " and \\ and \n', "\U0001F600"])
def test_text_comes_as_it_is(talk, text):
    _, message = talk.stream(body([[{"text": text}]]))
    assert message["content"][0]["text"] == text
