"""Questions to the client, in both eras: who is asked, whose answer counts, and that it counts once."""

import threading

import pytest

from support import retort
from support.mcp import Legacy, Modern, RpcError, text_of
from support.server import Server

pytestmark = pytest.mark.once
BINARY = retort.CONFORMANCE
FORM = "elicitation/create"
ALL = {"elicitation": {}, "sampling": {}, "roots": {}}
PARAMS = -32602


def accept(**content):
    return lambda params: {"action": "accept", "content": content}


@pytest.fixture(params=[Legacy, Modern])
def asked(request, server):
    """A client that says who it is when asked."""
    client = request.param(server, capabilities=ALL, answers={FORM: accept(username="ann", name="ann", color="red")})
    if request.param is Legacy:
        with client:
            yield client
    else:
        yield client


def test_an_answer_reaches_the_tool(asked):
    result = asked.call("test_elicitation", message="Who?")
    assert not result["isError"] and "ann" in text_of(result)


def test_one_question_after_another(asked):
    result = asked.call("test_input_required_result_multi_round")
    assert not result["isError"] and "red" in text_of(result)


@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_a_refusal_is_an_answer(asked, action):
    asked.answers[FORM] = lambda params: {"action": action}
    assert action in text_of(asked.call("test_elicitation", message="Who?"))


@pytest.mark.parametrize("capabilities", [{}, {"sampling": {}}, {"elicitation": {"url": {}}}])
@pytest.mark.parametrize("era", [Legacy, Modern])
def test_who_cannot_be_asked_is_not_asked(server, era, capabilities):
    client = era(server, capabilities=capabilities)
    if era is Legacy:
        client.initialize()
    result = client.call("test_elicitation", message="Who?")
    assert result["isError"] and "cannot ask" in text_of(result)


@pytest.mark.parametrize("era", [Legacy, Modern])
def test_forms_may_be_named(server, era):
    client = era(server, capabilities={"elicitation": {"form": {}, "url": {}}}, answers={FORM: accept(username="bea")})
    if era is Legacy:
        client.initialize()
    assert "bea" in text_of(client.call("test_elicitation", message="Who?"))


# --- legacy: the answer is a message of its own ---


def question(client, tool="test_elicitation", **arguments):
    """A call that is waiting for its answer: the exchange, its messages, and the question."""
    exchange = client.begin("tools/call", {"name": tool, "arguments": arguments or {"message": "Who?"}})
    messages = iter(exchange)
    return exchange, messages, next(m for m in messages if m.get("method") == FORM)


def answer(client, id, **more):
    with client.post({"jsonrpc": "2.0", "id": id, **more}) as exchange:
        assert exchange.status == 202


def good(name):
    return {"result": {"action": "accept", "content": {"username": name}}}


def test_an_answer_of_another_conversation_does_not_count(server):
    with Legacy(server, capabilities=ALL) as ann, Legacy(server, capabilities=ALL) as bob:
        exchange, messages, asked = question(ann)
        with exchange:
            answer(bob, asked["id"], **good("bob"))
            answer(ann, "ask_nothing", **good("nobody"))
            answer(ann, asked["id"], **good("ann"))
            answer(ann, asked["id"], **good("late"))
            assert "ann" in text_of(next(messages)["result"])


def test_a_client_that_fails_to_ask_is_told_to_the_model(server):
    with Legacy(server, capabilities=ALL) as client:
        exchange, messages, asked = question(client)
        with exchange:
            answer(client, asked["id"], error={"code": -1, "message": "no screen\x07 here"})
            result = next(messages)["result"]
            assert result["isError"] and "no screen" in text_of(result) and "\x07" not in text_of(result)


def test_a_cancelled_call_asks_no_more(server):
    with Legacy(server, capabilities=ALL) as client:
        exchange, messages, asked = question(client)
        with exchange:
            client.cancel(1 + 1)  # the call is the second request of this client
            assert next(messages, None) is None
        answer(client, asked["id"], **good("late"))
        client.request("ping")


def test_there_is_a_limit_to_open_questions(server):
    with Legacy(server, capabilities=ALL) as client:
        held = [question(client) for _ in range(64)]
        try:
            result = client.call("test_elicitation", message="One more?")
            assert result["isError"] and "too many questions" in text_of(result)
            exchange, messages, asked = held.pop()
            with exchange:
                answer(client, asked["id"], **good("ann"))
                assert "ann" in text_of(next(messages)["result"])
        finally:
            for exchange, _, _ in held:
                exchange.close()


def test_a_session_that_ends_takes_its_questions_along(server):
    client = Legacy(server, capabilities=ALL).initialize()
    exchange, messages, _ = question(client)
    with exchange:
        client.end()
        assert next(messages, None) is None
    server.check_alive()


# --- modern: the call comes again ---


@pytest.fixture
def caller(server):
    return Modern(server, capabilities=ALL)


CONFIRM = {"name": "test_input_required_result_request_state", "arguments": {}}
YES = {"confirm": {"action": "accept", "content": {"ok": True}}}


def first(client, call=CONFIRM):
    result = client.request("tools/call", call)
    assert result["resultType"] == "input_required"
    assert list(result["inputRequests"]) == ["confirm"]
    return result["requestState"]


def again(client, state, answers=YES, call=CONFIRM):
    return client.request("tools/call", {**call, "inputResponses": answers, "requestState": state})


def test_it_completes_with_answer_and_state(caller):
    result = again(caller, first(caller))
    assert result["resultType"] == "complete" and not result["isError"]


def test_a_state_is_good_for_once(caller):
    state = first(caller)
    again(caller, state)
    with pytest.raises(RpcError, match=f"{PARAMS}.*used before"):
        again(caller, state)


def test_two_at_a_time_use_it_once(caller):
    state, ends = first(caller), []

    def use():
        try:
            ends.append(again(caller, state)["resultType"])
        except RpcError as e:
            ends.append(e.code)

    threads = [threading.Thread(target=use) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(map(str, ends)) == sorted(map(str, [PARAMS] * 3 + ["complete"]))


def test_an_answer_without_the_state_is_asked_for_again(caller):
    result = caller.request("tools/call", {**CONFIRM, "inputResponses": YES})
    assert result["resultType"] == "input_required"


@pytest.mark.parametrize("answers", [{}, {"other": {"action": "accept"}}])
def test_a_missing_answer_is_asked_for_again(caller, answers):
    state = first(caller)
    result = again(caller, state, answers)
    assert result["resultType"] == "input_required"
    assert result["requestState"] != state
    assert again(caller, result["requestState"])["resultType"] == "complete"


def test_further_answers_are_ignored(caller):
    assert again(caller, first(caller), {**YES, "more": {"action": "accept"}})["resultType"] == "complete"


@pytest.mark.parametrize("answers", [None, [], "yes", 1, {"confirm": 1}, {"confirm": None}, {"confirm": ["x"]}])
def test_malformed_answers_are_an_error(caller, answers):
    state = first(caller)
    with pytest.raises(RpcError, match=str(PARAMS)):
        again(caller, state, answers)
    assert again(caller, state)["resultType"] == "complete"


@pytest.mark.parametrize("change", [
    lambda s: s + "-TAMPERED", lambda s: s[:-1], lambda s: s[4:], lambda s: "A" * len(s), lambda s: "",
    lambda s: s.swapcase(), lambda s: None, lambda s: 7, lambda s: {"state": s}, lambda s: "A" * 200_000])
def test_another_state_is_an_error(caller, change):
    with pytest.raises(RpcError, match=str(PARAMS)):
        again(caller, change(first(caller)))


@pytest.mark.parametrize("call", [
    {"name": "test_input_required_result_tampered_state", "arguments": {}},
    {"name": CONFIRM["name"], "arguments": {"path": "/"}}])
def test_a_state_is_for_one_request(caller, call):
    state = first(caller)
    with pytest.raises(RpcError, match=str(PARAMS)):
        again(caller, state, call=call)
    assert again(caller, state)["resultType"] == "complete"


def test_a_prompt_may_ask(caller):
    caller.answers = {FORM: accept(context="about whales")}
    result = caller.request("prompts/get", {"name": "test_input_required_result_prompt"})
    assert "whales" in result["messages"][0]["content"]["text"]


def test_a_long_history_of_answers_has_an_end(caller):
    caller.answers = {FORM: accept(name="x" * 70_000)}
    with pytest.raises(RpcError, match="too long"):
        caller.call("test_input_required_result_multi_round")


def test_a_state_is_for_one_key():
    server = Server(program=BINARY)
    keys = [server.keys("create", "--tenant", tenant, "--quiet").strip() for tenant in ("ann", "ann", "bob")]
    with server:
        ann, other, bob = (Modern(server, key=key, capabilities=ALL) for key in keys)
        state = first(ann)
        for stranger in (other, bob):
            with pytest.raises(RpcError, match=str(PARAMS)):
                again(stranger, state)
        assert again(ann, state)["resultType"] == "complete"
