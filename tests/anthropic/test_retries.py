"""9.18: a client that tries again does not have its code run again."""

import json
import re
import socket
from contextlib import ExitStack

from support import retort
from support.server import together
from talk import Talk, begun, body, results, running, tool


def begin(house, key, request, retries=None):
    """Sends a request and does not wait for its answer."""
    data = json.dumps(request).encode()
    count = f"x-stainless-retry-count: {retries}\r\n" if retries is not None else ""
    s = house.connect()
    s.sendall(f"POST /anthropic/v1/messages HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n{count}"
              f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data)
    return s


def counted(talk, tag):
    """A container, and a request in it that leaves a line each time it runs."""
    container = talk.go([[{"bash": "true"}]])["container"]["id"]
    return container, body([[{"bash": f"sleep 0.7; echo {tag} >> log; cat log"}]], container=container)


def connections(client):
    [count] = re.findall(r"(?m)^retort_http_connections (\d+)$", client.get("/metrics").expect(200).text)
    return int(count)


def lose(house, request, *retries):
    """Sends it, hangs up when its code has begun, and returns when the server knows."""
    with house.client(house.key) as client:
        before, open_before = running(client), connections(client)
        with begin(house, house.key, request, *retries):
            begun(client, before)
        retort.wait_until(lambda: connections(client) <= open_before, "the server to see that the client has gone")


def lines(talk, container):
    return talk.bash("cat log", container=container)["stdout"].split()


def test_a_retry_reads_the_run_that_is_under_way(talk, house):
    container, request = counted(talk, "a")
    lose(house, request, 0)
    message = talk.message(request, **{"x-stainless-retry-count": "1"})
    assert results(message)[0]["stdout"] == "a\n" and lines(talk, container) == ["a"]


def test_a_retry_reads_the_run_that_is_over(talk, house):
    """Its reader was lost, and the code has ended since."""
    container, request = counted(talk, "b")
    lose(house, request, 0)
    retort.wait_until(lambda: lines(talk, container) == ["b"], "the end of the code")
    first = talk.message(request, **{"x-stainless-retry-count": "2"})
    assert results(first)[0]["stdout"] == "b\n" and lines(talk, container) == ["b"]


def test_an_answer_that_was_delivered_is_nobody_elses(talk):
    """A client whose first attempt did not reach the server: its retry is a question of its own."""
    request = body([[{"text": "sampled"}]], tools=[])
    first = talk.message(request, **{"x-stainless-retry-count": "0"})
    again = [talk.message(request, **{"x-stainless-retry-count": n})["id"] for n in ("1", "1", "0")]
    assert len({first["id"], *again}) == 4
    _, one = talk.stream(request)
    _, two = talk.stream(request, **{"x-stainless-retry-count": "1"})
    assert one["id"] != two["id"]


def test_an_idempotency_key_names_a_request(talk, stranger):
    request = body([[{"text": "once"}]], tools=[])
    first = talk.message(request, **{"idempotency-key": "one"})
    assert talk.message(request, **{"idempotency-key": "one"})["id"] == first["id"]
    others = [talk.message(request, **{"idempotency-key": "two"}), talk.message(request),
              talk.message({**request, "max_tokens": 9}, **{"idempotency-key": "one"}),
              stranger.message(request, **{"idempotency-key": "one"})]
    assert len({m["id"] for m in (first, *others)}) == 5


def test_a_retry_of_a_stream_begins_at_its_beginning(talk, house):
    container, request = counted(talk, "c")
    with begin(house, house.key, {**request, "stream": True}, 0) as s:
        got = b""
        while b"message_start" not in got:
            piece = s.recv(4096)
            assert piece, got
            got += piece
    events, message = talk.stream(request, **{"x-stainless-retry-count": "1"})
    assert events[0]["type"] == "message_start" and results(message)[0]["stdout"] == "c\n"
    assert lines(talk, container) == ["c"]


def test_without_the_header_only_what_was_left_is_found(talk, house):
    container, request = counted(talk, "d")
    lose(house, request)
    talk.message(request)
    assert lines(talk, container) == ["d"]
    talk.message(request)
    assert lines(talk, container) == ["d", "d"], "a question that is asked twice is answered twice"


def test_two_equal_questions_are_two(talk, house):
    container, request = counted(talk, "e")

    def ask():
        with begin(house, house.key, request, 0) as s:
            return s.recv(65536)

    together(ask, ask)
    assert lines(talk, container) == ["e", "e"]


def test_a_retry_of_another_body_or_key_is_a_question_of_its_own(talk, stranger):
    request, once = body([[{"bash": "echo f"}]]), {"idempotency-key": "f"}
    first = talk.message(request, **once)
    assert talk.message({**request, "max_tokens": 7}, **once)["id"] != first["id"]
    assert stranger.message(request, **once)["id"] != first["id"]
    assert talk.message(request, **once)["id"] == first["id"]


def test_one_tenant_leaves_room_for_another(talk, stranger, house):
    """However many messages it sends, and has kept: the other's is still there for a retry."""
    mine, once = body([[{"text": "mine"}]], tools=[]), {"idempotency-key": "mine"}
    first = talk.message(mine, **once)

    def send(name):
        with Talk(house, house.other_key) as one:
            return {one.ask_model(body([[{"text": f"{name} {i}"}]], tools=[])).status for i in range(550)}

    assert together(*[lambda name=name: send(name) for name in "abcd"]) == [{200}] * 4
    assert talk.message(mine, **once)["id"] == first["id"]


def test_one_tenant_does_not_take_all_places(talk, stranger, house):
    """Those of messages under way: it gets as many as are left for the others."""
    with ExitStack() as stack:
        for i in range(1100):
            stack.enter_context(begin(house, house.other_key, body([[{"sleep_ms": 6000}, {"text": str(i)}]], tools=[])))
        retort.wait_until(lambda: stranger.ask_model(body([[{"text": "x"}]], tools=[])).status == 529, "no place")
        assert talk.go([[{"text": "x"}]], tools=[])["stop_reason"] == "end_turn"


def test_what_failed_is_tried_again(talk):
    request = body([[{"fail": {"status": 503}}]])
    first = talk.ask_model(request).expect(529)
    again = talk.ask_model(request, **{"x-stainless-retry-count": "1"}).expect(529)
    assert first.json["request_id"] != again.json["request_id"]


def test_a_retry_does_not_answer_code_twice(talk, house):
    """Of a request that brings answers to code."""
    lookup = {"name": "lookup", "input_schema": {"type": "object"}, "allowed_callers": ["code_execution_20260120"]}
    request = body([[{"python": "x = await lookup({})\nimport time\nopen('told', 'w').close()\ntime.sleep(0.7)\nprint(x)"}]], tools=[tool("20260120"), lookup])
    with house.client(house.key) as client:
        before = running(client)
        first = talk.message(request)
        waits = begun(client, before)
        told = f"/v1/sessions/{client.get('/v1/executions/' + waits).json['session']}/files/told"
    use = first["content"][1]
    request["messages"] += [{"role": "assistant", "content": first["content"]},
                            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": use["id"], "content": "1"}]}]
    with begin(house, house.key, request, 0), house.client(house.key) as client:
        retort.wait_until(lambda: client.get(told).status == 200, "the code to have its answer")
    message = talk.message(request, **{"x-stainless-retry-count": "1"})
    assert results(message)[0]["stdout"] == "1\n"


def test_a_client_that_hangs_up_half_way(house, talk):
    with begin(house, house.key, body([[{"bash": "sleep 1"}]], stream=True)) as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    assert talk.bash("echo on")["stdout"] == "on\n"
